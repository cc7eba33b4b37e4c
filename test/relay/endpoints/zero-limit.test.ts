// A limit of 0 is how older consoles say that they name none: no upstream of any dialect ever gets it, by whichever way the
// request reaches it, and nothing else of the request changes.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { answerOf, UPSTREAMS } from "../../support/dialect-upstream.ts";
import { answer } from "../../support/fake-upstream.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const NAMES = Object.keys(UPSTREAMS) as DialectName[];
const ZERO_LIMIT =
  /"(?:max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens)"\s*:\s*-?0(?:\.0)?\s*[,}]/;

interface Asked {
  dialect: DialectName;
  path: (model: string) => string;
  /** A body with limits of 0, and the same without them. */
  zero: (model: string) => string;
  none: (model: string) => string;
}

const CONTENTS = '"contents":[{"role":"user","parts":[{"text":"hi"}]}]';
const MESSAGES = '"messages":[{"role":"user","content":"hi"}]';

const CLIENTS: Asked[] = [
  {
    dialect: "openai-chat",
    path: () => "/v1/chat/completions",
    zero: (model) =>
      `{"model":"${model}","max_tokens":0,"temperature":0,"max_completion_tokens":0.0,"parallel_tool_calls":false,${MESSAGES}}`,
    none: (model) => `{"model":"${model}","temperature":0,"parallel_tool_calls":false,${MESSAGES}}`,
  },
  {
    dialect: "openai-responses",
    path: () => "/v1/responses",
    zero: (model) => `{"model":"${model}","max_output_tokens":0,"temperature":0,"input":"hi"}`,
    none: (model) => `{"model":"${model}","temperature":0,"input":"hi"}`,
  },
  {
    dialect: "anthropic",
    path: () => "/v1/messages",
    zero: (model) => `{"model":"${model}","max_tokens":0,"temperature":0,${MESSAGES}}`,
    none: (model) => `{"model":"${model}","temperature":0,${MESSAGES}}`,
  },
  {
    dialect: "gemini",
    path: (model) => `/v1beta/models/${model}:generateContent`,
    zero: () =>
      `{"generationConfig":{"temperature":0,"maxOutputTokens":0,"max_output_tokens":0,"seed":0},${CONTENTS}}`,
    none: () => `{"generationConfig":{"temperature":0,"seed":0},${CONTENTS}}`,
  },
];

describe.each(NAMES)("an %s upstream", (upstream) => {
  const { type, model } = UPSTREAMS[upstream];
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway({
      quota: 1_000_000_000,
      channel: { type, models: model, setting: JSON.stringify({ allow_networks: ["127.0.0.1"] }) },
    });
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  test.each(CLIENTS)("gets from a $dialect client what it gets where no limit is named", async (client) => {
    g.upstream.always(answerOf(upstream));
    const sent: string[] = [];
    for (const body of [client.zero(model), client.none(model)]) {
      const response = await g.post(client.path(model), body);
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
      sent.push(g.upstream.requests.at(-1)?.body.toString() ?? "");
    }
    expect(sent[0]).not.toMatch(ZERO_LIMIT);
    expect(sent[0]).toBe(sent[1] ?? "");
  });
});

describe("the body as it is", () => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway({ channel: { models: `${MODEL},embedder` } });
    await g.setOption("SelfUseModeEnabled", "true");
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  const ask = async (path: string, body: string): Promise<string> => {
    expect((await g.post(path, body)).status).toBe(200);
    return g.upstream.requests.at(-1)?.body.toString() ?? "";
  };

  test("keeps every byte beside the limit: spelling of numbers, order, unknown members", async () => {
    const rest = `"model":"${MODEL}","unknown":{"max_tokens":0,"a":[1.0,12345678901234567890,null]},"messages":[ {"role":"user", "content":"\\u0068i"} ]`;
    expect(await ask("/v1/chat/completions", `{"max_tokens":0,${rest}}`)).toBe(`{${rest}}`);
    expect(await ask("/v1/chat/completions", `{${rest},"max_tokens": 0 }`)).toBe(`{${rest}}`);
    // A limit, however small, is one.
    const limited = `{"max_tokens":1,${rest}}`;
    expect(await ask("/v1/chat/completions", limited)).toBe(limited);
    const spelled = `{"max_tokens":0,"max_completion_tokens":7,${rest}}`;
    expect(await ask("/v1/chat/completions", spelled)).toBe(`{"max_completion_tokens":7,${rest}}`);
  });

  test("loses the limit where everything is passed through raw, and at the endpoints beside the chat", async () => {
    await g.setOption("global.pass_through_request_enabled", "true");
    const body = `{"model":"${MODEL}",${JSON.stringify({ messages: HI }).slice(1, -1)}`;
    expect(await ask("/v1/chat/completions", `${body},"max_tokens":0}`)).toBe(`${body}}`);
    await g.setOption("global.pass_through_request_enabled", "false");
    g.upstream.always(answer("hi"));
    expect(await ask("/v1/completions", `{"model":"${MODEL}","prompt":"hi","max_tokens":0}`)).toBe(
      `{"model":"${MODEL}","prompt":"hi"}`,
    );
    expect(
      JSON.parse(
        await ask("/v1/edits", `{"model":"${MODEL}","instruction":"shorter","input":"hi","max_tokens":0}`),
      ),
    ).not.toHaveProperty("max_tokens");
  });

  test("what is no number, or below 0, is refused as before, and costs nothing", async () => {
    for (const limit of ['"0"', "-1", "0.5", "[]"]) {
      const response = await g.post(
        "/v1/chat/completions",
        `{"model":"${MODEL}",${MESSAGES},"max_tokens":${limit}}`,
      );
      expect([limit, response.status]).toEqual([limit, 400]);
      await response.text();
    }
    expect(g.upstream.requests).toHaveLength(0);
  });
});
