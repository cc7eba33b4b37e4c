// What nobody expected in a console call: the line in the log is found by its request and by the client's own trace.
import { expect, test } from "bun:test";
import { Elysia } from "elysia";
import { createLogger } from "../../src/core/kit/logger.ts";
import type { OptionStore } from "../../src/core/options/store.ts";
import { failures } from "../../src/http/failures.ts";
import { Failure } from "../../src/shared/failures.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

test("each line has the request's id, and the trace where its client named one", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger(
    "error",
    (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  );
  const options = { get: () => "en" } as unknown as Pick<OptionStore, "get">;
  const app = new Elysia()
    .use(failures({ logger, options }, () => new Response()))
    .get("/unexpected", async () => {
      throw new Error("oops");
    })
    .get("/internal", async () => {
      throw new Failure("internal", "internal_error");
    });
  const ask = async (path: string, headers: Record<string, string> = {}) => {
    const answer = await app.handle(new Request(`http://localhost${path}`, { headers }));
    const { request_id: id } = (await answer.json()) as { request_id: string };
    const line = lines.pop();
    expect(id).toBeString();
    expect(line?.["request_id"]).toBe(id);
    return line?.["trace_id"];
  };
  for (const path of ["/unexpected", "/internal"]) {
    expect(await ask(path, { traceparent: `00-${TRACE}-00f067aa0ba902b7-01` })).toBe(TRACE);
    expect(await ask(path)).toBeUndefined();
    expect(await ask(path, { traceparent: "what a client likes" })).toBeUndefined();
  }
});
