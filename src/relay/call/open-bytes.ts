// Opens an answer that is no text: speech, passed on while it is being made.
// Refuses to hand it on before its first bytes: until then another channel can make a failure good.
import { Failure } from "../../shared/failures.ts";
import type { BytesAnswer } from "./answer.ts";
import { attemptFailure } from "./attempt.ts";
import type { Opened } from "./attempt.ts";
import type { AttemptsContext } from "./open.ts";
import { drainingFailure } from "./call.ts";
import type { Call } from "./call.ts";
import type { Plan } from "./plan.ts";
import { createByteRelay } from "../wire/stream-bytes.ts";

/** A good answer of bytes never is JSON: that is an error told with status 200. */
export function isJson(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").includes("json");
}

export async function openBytes(
  context: AttemptsContext,
  call: Call,
  plan: Plan,
  opened: Opened,
): Promise<BytesAnswer> {
  const { body } = opened.response;
  if (!body || (opened.response.headers.get("content-type") ?? "").includes("html"))
    throw attemptFailure(new Failure("upstream-down", "upstream_bad_answer", { type: "upstream_error" }));
  const relay = createByteRelay(
    { reader: body.getReader(), abort: () => opened.abort() },
    {
      idleMs: context.deps.options.get("relay.stream_idle_timeout_seconds") * 1000,
      finish: (end) => context.finishBytes(call, plan, end),
    },
  );
  try {
    await relay.begin();
  } catch (error) {
    throw opened.explain(error);
  } finally {
    opened.settled();
  }
  call.hangUp = () => relay.endNow(drainingFailure());
  return { kind: "bytes", plan, response: opened.response, relay };
}
