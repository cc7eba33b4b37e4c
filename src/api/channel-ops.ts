// Controller of /api/channel's operations: tests, balances, model lists, copies, the state of several keys.
// Refuses to answer any key; what a provider said reaches administrators scrubbed.
import { Elysia, t } from "elysia";
import type { Channel } from "../core/channels/rows.ts";
import type { ChannelProbe, ChannelWatch, RunProgress } from "../core/channels/watch.ts";
import { copyChannel } from "../core/channels/channels.ts";
import type { Deps } from "../core/deps.ts";
import { done, ok } from "../http/envelope.ts";
import { adminFailureText, failureText } from "../http/messages.ts";
import { idOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Role } from "../shared/enums.ts";
import type { Language } from "../shared/enums.ts";
import { Failure, refuse } from "../shared/failures.ts";

/** How far a run is, with the reasons of what it left out in the reader's language. */
function progressJson({ skips, ...progress }: RunProgress, language: Language) {
  return {
    ...progress,
    skips: skips.map(({ id, name, reason }) => ({
      id,
      name,
      code: reason.code,
      message: failureText(reason, language),
    })),
  };
}

/** A provider's failure is the answer of these calls: success false with its words and `rest`, and status 200. */
async function orFailure<T extends object, Rest extends object>(
  language: Language,
  rest: Rest,
  work: () => Promise<T>,
) {
  try {
    return { success: true as const, message: "", ...(await work()) };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return {
      success: false as const,
      message: adminFailureText(error, language),
      code: error.code,
      ...rest,
    };
  }
}

/** One test; of several (`bulk`) one that cannot be made is left out and says why. */
async function testAnswer(
  watch: ChannelWatch,
  channel: Channel,
  { model, bulk, language }: { model?: string | undefined; bulk?: string | undefined; language: Language },
) {
  const skipped = bulk === "true" ? watch.untestable(channel) : undefined;
  if (skipped)
    return {
      success: false as const,
      message: failureText(skipped, language),
      code: skipped.code,
      time: 0,
      skipped: true,
    };
  const { ms, failure } = await watch.test(channel, model);
  const time = Math.round(ms) / 1000;
  if (!failure) return { success: true as const, message: "", time };
  return { success: false as const, message: adminFailureText(failure, language), code: failure.code, time };
}

export function channelOps(deps: Deps, session: SessionSettings, watch: ChannelWatch, probe: ChannelProbe) {
  const channelOf = (text: string): Channel => {
    const id = idOf(text);
    const channel = id === undefined ? undefined : deps.routing.channel(id);
    if (!channel) throw refuse("record_missing");
    return channel;
  };

  const cancel = (kind: "tests" | "balances") => {
    watch.cancel(kind);
    return done();
  };

  return (
    new Elysia({ prefix: "/api/channel" })
      .use(policy(session))
      .get(
        "/test/:id",
        ({ params, query, language }) => testAnswer(watch, channelOf(params.id), { ...query, language }),
        {
          access: "admin",
          query: t.Object({
            model: t.Optional(plainText(255)),
            // † One of several: a channel that cannot be tested is left out, with `skipped` and the reason.
            bulk: t.Optional(plainText(20)),
          }),
        },
      )
      .get(
        "/test",
        async () => {
          await watch.testAll(true);
          return done();
        },
        { access: "admin" },
      )
      // † How far the run is; the console shows it while it lasts.
      .get("/test_progress", ({ language }) => ok(progressJson(watch.progress("tests"), language)), {
        access: "admin",
      })
      // † Ends the run: what is under way is finished, nothing more is begun.
      .post("/test_cancel", () => cancel("tests"), { access: "admin" })
      .get("/balance_progress", ({ language }) => ok(progressJson(watch.progress("balances"), language)), {
        access: "admin",
      })
      .post("/balance_cancel", () => cancel("balances"), { access: "admin" })
      .get(
        "/update_balance/:id",
        ({ params, language }) =>
          orFailure(language, { balance: 0 }, async () => ({
            balance: await watch.balance(channelOf(params.id)),
          })),
        { access: "admin" },
      )
      .get(
        "/update_balance",
        async () => {
          await watch.updateBalances();
          return done();
        },
        { access: "admin" },
      )
      .get(
        "/fetch_models/:id",
        ({ params, language }) =>
          orFailure(language, {}, async () => ({ data: await probe.models(channelOf(params.id)) })),
        { access: "admin" },
      )
      .post(
        "/fetch_models",
        ({ body, actor, language }) =>
          orFailure(language, {}, async () => ({
            data: await probe.typedModels(
              { baseUrl: body.base_url ?? "", type: body.type ?? 1, key: body.key ?? "" },
              actor.role >= Role.root,
            ),
          })),
        {
          access: "admin",
          body: t.Object({
            base_url: given(plainText(2048)),
            type: given(t.Integer({ minimum: 1, maximum: 10_000 })),
            key: given(plainText(1_000_000)),
          }),
        },
      )
      // † A copy with the key, which never leaves the server.
      .post("/copy/:id", async ({ params }) => ok(await copyChannel(deps, channelOf(params.id).id)), {
        access: "admin",
      })
  );
}
