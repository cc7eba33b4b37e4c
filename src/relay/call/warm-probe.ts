// One small streamed call to a channel's model between the calls of clients: hung up on at its first content, charged to nobody,
// and told to key and channel as the one call would be that tries out what rests. Refuses to outrank live calls: where one has
// found out meanwhile, the probe says nothing.
import { upstreamModel } from "../../core/channels/rows.ts";
import type { WarmProbe } from "../../core/channels/warm-probes.ts";
import type { UserAccount } from "../../core/deps.ts";
import { CHANNEL_PROBE } from "../../core/logs/sentences.ts";
import { rootAccount } from "../../core/users/notify.ts";
import { newRequestId } from "../../http/request-id.ts";
import { warmBody } from "../../providers/warm-call.ts";
import { LogType } from "../../shared/enums.ts";
import { Failure } from "../../shared/failures.ts";
import { completionTokens } from "../../shared/usage.ts";
import { TEST_ENDPOINTS } from "../endpoints/test-endpoints.ts";
import { attemptFailure } from "./attempt.ts";
import type { AttemptFailure } from "./attempt.ts";
import { CallFailed, runAttempts } from "./attempts.ts";
import { drainingFailure } from "./call.ts";
import type { Call } from "./call.ts";
import { freeCall } from "./channel-test.ts";
import { detailOf, restKey, tellFailed, tellNothing, tellServed } from "./findings.ts";
import { bodyOf } from "./prepare.ts";
import type { CallServices } from "./services.ts";

/** Whoever has not said a word by then is down: as long as a call that tries a cell out holds others off. */
const SILENT_MS = 30_000;

/** Never throws. */
export async function warmProbe(services: CallServices, probe: WarmProbe): Promise<void> {
  const { deps } = services;
  const { channel, model } = probe;
  const before = resultsOf(services, probe);
  try {
    const root = await rootAccount(deps);
    const failed = root ? await ask(services, probe, root) : "nothing";
    // Live calls know better, and an edited channel is another one.
    const isOutranked = resultsOf(services, probe) !== before || deps.routing.channel(channel.id) !== channel;
    tell(services, probe, isOutranked ? "nothing" : failed);
  } catch (error) {
    tell(services, probe, "nothing");
    deps.logger.warn("channel could not be probed", { channel: channel.id, model, error: String(error) });
  }
}

/** Another value once a live call has found out about what is probed: of one key's cell other keys' calls say nothing. */
function resultsOf({ deps, picker }: CallServices, probe: WarmProbe): number | undefined {
  const { channel, keyIndex, isOfKey, model } = probe;
  return isOfKey
    ? deps.keyring.downUntil(channel, keyIndex, model)
    : picker.traffic.cell(channel, model)?.results;
}

function tell(
  services: CallServices,
  probe: WarmProbe,
  failed: AttemptFailure | "nothing" | undefined,
): void {
  const { deps, picker } = services;
  const { model, channel, beganMs } = probe;
  if (probe.isOfKey) tellKey(services, probe, failed);
  else if (failed === "nothing") tellNothing(services, probe, model);
  else if (!failed) {
    tellServed(services, probe, model, false);
    picker.succeeded(channel, model, beganMs, deps.clock.monotonicMs());
  } else if (restKey(deps, probe, model, failed)) tellNothing(services, probe, model);
  else tellFailed(services, probe, model, failed);
}

/** The key alone: its channel's other keys serve. Where none did, the channel works again with this one. */
function tellKey(
  { deps, picker }: CallServices,
  probe: WarmProbe,
  failed: AttemptFailure | "nothing" | undefined,
): void {
  const { channel, keyIndex, model, beganMs } = probe;
  const { keyring, clock } = deps;
  const nowMs = clock.monotonicMs();
  const isAnswer = failed === undefined || (failed !== "nothing" && failed.verdict === "ok");
  if (failed !== undefined && failed !== "nothing") restKey(deps, probe, model, failed);
  if (failed === undefined) keyring.wake(channel, keyIndex, model, beganMs);
  if (isAnswer) {
    keyring.succeeded(channel, keyIndex, model, beganMs, nowMs);
    if (picker.restsUntil(channel, model) !== 0) picker.succeeded(channel, model, beganMs, nowMs);
  } else if (failed !== "nothing" && failed?.verdict === "down")
    keyring.failed(channel, keyIndex, model, { nowMs, beganMs, detail: detailOf(failed.failure) });
  else keyring.abandoned(channel, keyIndex, model, beganMs);
}

/** Undefined: it answered. "nothing": no word on the channel. */
async function ask(
  services: CallServices,
  probe: WarmProbe,
  root: UserAccount,
): Promise<AttemptFailure | "nothing" | undefined> {
  const { inFlight } = services;
  const call = callOf(services, probe, root);
  inFlight.add(call);
  let isSilent = false;
  const timer = setTimeout(() => {
    isSilent = true;
    call.hangUp?.("draining");
  }, SILENT_MS);
  try {
    const answer = await runAttempts(services, call);
    // Its first content is there: nothing of the rest is wanted.
    if (answer.kind !== "full") answer.relay.endNow(drainingFailure());
    await book(services, probe, call);
    return undefined;
  } catch (error) {
    const failure = isSilent
      ? new Failure("upstream-timeout", "upstream_timeout")
      : error instanceof CallFailed
        ? error.failure
        : error;
    if (!(failure instanceof Failure)) throw error;
    const failed = attemptFailure(failure);
    // What was refused before anybody was asked says nothing.
    return failed.verdict === "ok" && failure.upstreamStatus === undefined ? "nothing" : failed;
  } finally {
    clearTimeout(timer);
    inFlight.remove(call);
  }
}

function callOf(
  { deps }: CallServices,
  { channel, keyIndex, model, usage }: WarmProbe,
  root: UserAccount,
): Call {
  const limit = completionTokens(usage);
  return freeCall(deps, {
    user: root,
    // A test asks the first key: here it is the one that was chosen.
    channel: {
      ...channel,
      keys: channel.keys.slice(keyIndex, keyIndex + 1),
      keyRows: channel.keyRows.slice(keyIndex, keyIndex + 1),
    },
    endpoint: TEST_ENDPOINTS.chat,
    model,
    body: bodyOf(
      warmBody({ type: channel.type, model, upstreamModel: upstreamModel(channel, model), limit }),
    ),
    request: new Request("http://localhost/", { headers: { "content-type": "application/json" } }),
    requestId: newRequestId(deps.clock.nowMs()),
    wantsStream: true,
  });
}

/** A row for the operator, and what the upstream may ask for it: the house's own cost, which is no loss on anybody's call. */
async function book({ deps }: CallServices, probe: WarmProbe, { requestId, caller }: Call): Promise<void> {
  const { channel, model, usage, quota } = probe;
  const { ledger, costs, clock } = deps;
  const entry = {
    type: LogType.system,
    userId: caller.user.id,
    username: caller.user.username,
    channelId: channel.id,
    modelName: model,
    tokenName: CHANNEL_PROBE,
    content: CHANNEL_PROBE,
    requestId,
    isStream: true,
    other: { admin_info: { probe_quota: quota } },
  };
  await ledger.log(entry);
  if (!costs.has(channel.id)) return;
  const nanos = costs.nanos({
    channelId: channel.id,
    upstreamModel: upstreamModel(channel, model),
    model,
    usage,
    facts: {},
    atMs: clock.nowMs(),
  });
  if (nanos !== undefined && nanos > 0) await ledger.bear(entry, { nanos, isLost: false });
}
