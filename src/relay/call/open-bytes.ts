// Opens an answer that is no text: speech, passed on while it is being made.
// Never hands it on before its first bytes: until then another channel can make a failure good.
import { Failure } from "../../shared/failures.ts";
import type { BytesAnswer } from "./answer.ts";
import { attemptFailure } from "./attempt.ts";
import type { Opened } from "./attempt.ts";
import { drainingFailure } from "./call.ts";
import type { Call } from "./call.ts";
import type { Plan } from "./plan.ts";
import type { CallServices } from "./services.ts";
import { createByteRelay } from "../wire/stream-bytes.ts";

/** A good answer of bytes never is JSON: that is an error with status 200. */
export function isJson(response: Response): boolean {
  return (response.headers.get("content-type") ?? "").includes("json");
}

export async function openBytes(
  { deps }: Pick<CallServices, "deps">,
  call: Call,
  plan: Plan,
  opened: Opened,
): Promise<BytesAnswer> {
  const { body } = opened.response;
  if (!body || (opened.response.headers.get("content-type") ?? "").includes("html"))
    throw attemptFailure(new Failure("upstream-down", "upstream_bad_answer", { type: "upstream_error" }));
  const relay = createByteRelay(
    { reader: body.getReader(), abort: () => opened.abort() },
    { idleMs: deps.options.get("relay.stream_idle_timeout_seconds") * 1000 },
  );
  try {
    await relay.begin();
  } catch (error) {
    throw opened.explain(error);
  } finally {
    opened.settled();
  }
  call.hangUp = () => relay.endNow(drainingFailure());
  return { kind: "bytes", call, plan, response: opened.response, relay };
}
