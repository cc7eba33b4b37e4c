// One small call to one channel, whatever its status: nobody is charged, and the log says that it was a test.
import type { Channel } from "../../core/channels/rows.ts";
import type { UserAccount } from "../../core/deps.ts";
import { CHANNEL_TEST } from "../../core/logs/sentences.ts";
import { rootAccount } from "../../core/users/notify.ts";
import { newRequestId } from "../../http/request-id.ts";
import { LogType } from "../../shared/enums.ts";
import { newRecord } from "../../observe/record.ts";
import { Failure } from "../../shared/failures.ts";
import type { TestCall } from "../endpoints/test-endpoints.ts";
import { TEST_ENDPOINTS } from "../endpoints/test-endpoints.ts";
import { asFailure } from "../wire/render-failure.ts";
import { CallFailed, runAttempts } from "./attempts.ts";
import type { Call } from "./call.ts";
import { FREE, NO_HOLD } from "./hold.ts";
import { bodyOf } from "./prepare.ts";
import type { CallServices } from "./services.ts";
import { settle } from "./settle-answer.ts";

export interface ChannelTestResult {
  failure?: Failure;
  /** Key or account do not work. */
  isFatal: boolean;
}

const NOBODY = { group: "", model: "" };

/** Never throws. */
export async function testChannel(
  services: CallServices,
  channel: Channel,
  test: TestCall,
): Promise<ChannelTestResult> {
  try {
    const root = await rootAccount(services.deps);
    if (!root) throw new Failure("no-channel", "endpoint_unsupported", { params: NOBODY });
    const call = testCall(services, root, channel, test);
    const answer = await runAttempts(services, call);
    await services.deps.ledger.log({
      type: LogType.system,
      userId: root.id,
      username: root.username,
      channelId: channel.id,
      modelName: call.model,
      tokenName: CHANNEL_TEST,
      content: CHANNEL_TEST,
      requestId: call.requestId,
    });
    if (answer.kind === "stream") {
      await settle(services, answer);
      await new Response(answer.relay.body(call.request.signal)).bytes();
    }
    return { isFatal: false };
  } catch (error) {
    const failure = asFailure(error instanceof CallFailed ? error.failure : error);
    return { failure, isFatal: failure.kind === "upstream-auth" || failure.kind === "upstream-quota" };
  }
}

function testCall(
  { deps }: CallServices,
  user: UserAccount,
  channel: Channel,
  { operation, body: json }: TestCall,
): Call {
  return freeCall(deps, {
    user,
    channel,
    endpoint: TEST_ENDPOINTS[operation],
    model: String(json["model"]),
    body: bodyOf(json),
    request: new Request("http://localhost/", { headers: { "content-type": "application/json" } }),
    requestId: newRequestId(deps.clock.nowMs()),
  });
}

type FreeCall = Pick<Call, "endpoint" | "model" | "body" | "request" | "requestId"> & {
  wantsStream?: boolean;
  user: UserAccount;
  channel: Channel;
};

/** A call of the operator's own to one channel: nothing is held for it. */
export function freeCall(
  deps: CallServices["deps"],
  { user, channel, endpoint, model, body, request, requestId, wantsStream = false }: FreeCall,
): Call {
  return {
    request,
    requestId,
    options: deps.options,
    endpoint,
    caller: {
      user,
      token: undefined,
      tokenName: CHANNEL_TEST,
      group: user.group,
      auto: undefined,
      pinned: String(channel.id),
    },
    body,
    sent: body,
    model,
    prompt: { tokens: 0, mostTokens: 0, fixedTokens: 0, mediaTokens: 0, cacheWrite: "none" },
    group: user.group,
    groups: undefined,
    price: deps.prices.missingCallPrice(model, user.group, user.group),
    asked: undefined,
    unruled: undefined,
    billed: undefined,
    lastFailure: undefined,
    reservation: FREE,
    hold: NO_HOLD,
    wantsStream,
    wantsArray: false,
    wantsUsage: false,
    startedMs: performance.now(),
    record: newRecord(),
    charged: undefined,
    attempts: [],
    pinned: channel,
    pinnedKey: undefined,
    affinity: undefined,
    isTest: true,
    hangUp: undefined,
    isBegun: false,
    release: undefined,
    index: -1,
  };
}
