// What programs read of a refusal: one stable code in a header in every dialect and on every surface, and beside it the words
// that the clients of each dialect know.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { DialectName } from "../../../src/protocol/canonical.ts";
import { refuse, sse } from "../../support/fake-upstream.ts";
import type { Script } from "../../support/fake-upstream.ts";
import { MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const HEADER = "x-weir-error-code";
const DIALECTS = ["openai-chat", "openai-responses", "anthropic", "gemini"] as const;
/** Channel types whose upstream speaks the dialect of the key. */
const NATIVE_TYPES: Readonly<Record<DialectName, number>> = {
  "openai-chat": 1,
  "openai-responses": 1,
  anthropic: 14,
  gemini: 24,
};

interface Read {
  status: number;
  code: string | null;
  /** What the dialect's clients branch on. */
  word: unknown;
  message: string;
}

type Body = { error: { message: string; type?: string; status?: string; code?: unknown } };

const WORD: Readonly<Record<DialectName, (body: Body) => unknown>> = {
  "openai-chat": ({ error }) => error.code,
  "openai-responses": ({ error }) => error.code,
  anthropic: ({ error }) => error.type,
  gemini: ({ error }) => error.status,
};

function callOf(dialect: DialectName, model: string, stream = false): [path: string, body: object] {
  const messages = [{ role: "user", content: "hi" }];
  switch (dialect) {
    case "openai-chat":
      return ["/v1/chat/completions", { model, stream, messages }];
    case "openai-responses":
      return ["/v1/responses", { model, stream, input: "hi" }];
    case "anthropic":
      return ["/v1/messages", { model, stream, max_tokens: 50, messages }];
    case "gemini":
      return [
        `/v1beta/models/${model}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
        { contents: [{ parts: [{ text: "hi" }] }] },
      ];
  }
}

let g: Gateway;
let serial = 0;
beforeAll(async () => {
  g = await startGateway();
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(() => g.upstream.reset());

async function read(dialect: DialectName, response: Response): Promise<Read> {
  const body = (await response.json()) as Body;
  const { status, headers } = response;
  return { status, code: headers.get(HEADER), word: WORD[dialect](body), message: body.error.message };
}

async function call(dialect: DialectName, model: string, stream = false): Promise<Read> {
  const [path, body] = callOf(dialect, model, stream);
  return read(dialect, await g.post(path, body));
}

/** A model of its own behind one channel. */
async function channel(fields: Record<string, unknown> = {}): Promise<string> {
  const model = `codes-${++serial}`;
  await g.app.createChannel({ baseUrl: g.upstream.url, models: model, ...fields });
  return model;
}

const each = <T extends readonly unknown[]>(...rows: T[]): T[] => rows;

describe.each(
  each<[DialectName, string, string, string, string]>(
    ["openai-chat", "model_not_found", "model_not_priced", "upstream_auth", "context_length_exceeded"],
    ["openai-responses", "model_not_found", "model_not_priced", "upstream_auth", "context_length_exceeded"],
    ["anthropic", "not_found_error", "invalid_request_error", "api_error", "invalid_request_error"],
    ["gemini", "NOT_FOUND", "INVALID_ARGUMENT", "UNAVAILABLE", "INVALID_ARGUMENT"],
  ),
)("a client of %s", (dialect, notFound, notPriced, auth, tooLong) => {
  test("reads that nobody has the model: 404", async () => {
    expect(await call(dialect, "nobody-has-it")).toMatchObject({
      status: 404,
      code: "model_not_found",
      word: notFound,
    });
  });

  test("reads that the model has no price: 400", async () => {
    const model = await channel();
    await g.setOption("SelfUseModeEnabled", "false");
    const refused = await call(dialect, model);
    await g.setOption("SelfUseModeEnabled", "true");
    expect(refused).toMatchObject({ status: 400, code: "model_not_priced", word: notPriced });
    expect(g.upstream.requests).toHaveLength(0);
  });

  test.each([401, 403])(
    "reads of a %i of our upstream that it is no matter of its key: 502",
    async (status) => {
      for (const from of DIALECTS) {
        const model = await channel({ type: NATIVE_TYPES[from] });
        g.upstream.script(
          refuse(status, { error: { message: "Incorrect API key provided: sk-abcdefghijklmnopqrst" } }),
        );
        const refused = await call(dialect, model);
        expect(refused).toMatchObject({ status: 502, code: "upstream_auth", word: auth });
        expect(refused.message).not.toMatch(/Incorrect|sk-/);
      }
    },
  );

  test("reads in its own words that the conversation is too long, streamed or not", async () => {
    for (const stream of [false, true]) {
      const model = await channel();
      const message =
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.";
      g.upstream.script(
        refuse(400, {
          error: {
            message,
            type: "invalid_request_error",
            param: "messages",
            code: "context_length_exceeded",
          },
        }),
      );
      const refused = await call(dialect, model, stream);
      expect(refused).toMatchObject({ status: 400, code: "context_length", word: tooLong });
      expect(refused.message).toStartWith(
        {
          "openai-chat": message,
          "openai-responses": message,
          anthropic: "prompt is too long: 9001 tokens > 8192 maximum (",
          gemini: "The input token count (9001) exceeds the maximum number of tokens allowed (8192). (",
        }[dialect],
      );
    }
  });

  test("reads GET of an unknown model as 404", async () => {
    const headers: Readonly<Record<DialectName, Record<string, string>>> = {
      "openai-chat": { authorization: `Bearer ${g.key}` },
      "openai-responses": { authorization: `Bearer ${g.key}` },
      anthropic: { "x-api-key": g.key, "anthropic-version": "2023-06-01", authorization: `Bearer ${g.key}` },
      gemini: { "x-goog-api-key": g.key },
    };
    const path = dialect === "gemini" ? "/v1beta/models/nope" : "/v1/models/nope";
    const response = await fetch(g.app.url + path, { headers: headers[dialect] });
    expect(await read(dialect, response)).toMatchObject({
      status: 404,
      code: "model_not_found",
      word: notFound,
    });
  });

  test("reads the code of every other refusal beside its own words", async () => {
    const [path, body] = callOf(dialect, MODEL);
    const stranger = await g.post(path, body, { authorization: "Bearer sk-nobody" });
    expect([stranger.status, stranger.headers.get(HEADER)]).toEqual([401, "token_invalid"]);
    const broken = await g.post(path, "{oops");
    expect([broken.status, broken.headers.get(HEADER)]).toEqual([400, "invalid_json"]);
    const limited = await g.app.createToken(g.user.id, { modelLimitsEnabled: true, modelLimits: "other" });
    const forbidden = await g.post(path, body, { authorization: `Bearer ${limited.key}` });
    expect([forbidden.status, forbidden.headers.get(HEADER)]).toEqual([403, "token_model_forbidden"]);
    const model = await channel();
    g.upstream.script(refuse(429));
    const saturated = await call(dialect, model);
    expect([saturated.status, saturated.code]).toEqual([429, "upstream_saturated"]);
  });
});

describe("the code stands on refusals of", () => {
  const codeOf = async (answer: Promise<Response>): Promise<[number, string | null]> => {
    const response = await answer;
    await response.text();
    return [response.status, response.headers.get(HEADER)];
  };
  const form = (fields: Record<string, string>): FormData => {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.set(name, value);
    return data;
  };

  test("pictures, sound, uploads, embeddings, rerank and moderations", async () => {
    const headers = { authorization: `Bearer ${g.key}` };
    const upload = (path: string) =>
      fetch(g.app.url + path, { method: "POST", headers, body: form({ model: "nobody-has-it" }) });
    const model = "nobody-has-it";
    const answers: [string, Promise<Response>][] = [
      ["pictures", g.post("/v1/images/generations", { model, prompt: "x" })],
      ["edits of pictures", upload("/v1/images/edits")],
      ["speech", g.post("/v1/audio/speech", { model, input: "x", voice: "alloy" })],
      ["transcriptions", upload("/v1/audio/transcriptions")],
      ["embeddings", g.post("/v1/embeddings", { model, input: "x" })],
      ["rerank", g.post("/v1/rerank", { model, query: "x", documents: ["y"] })],
      ["moderations", g.post("/v1/moderations", { model, input: "x" })],
      ["old completions", g.post("/v1/completions", { model, prompt: "x" })],
      ["Gemini's embeddings", g.post(`/v1beta/models/${model}:embedContent`, { content: { parts: [] } })],
    ];
    for (const [name, response] of answers)
      expect([name, ...(await codeOf(response))]).toEqual([name, 404, "model_not_found"]);
  });

  test("tasks, in their families' own forms too", async () => {
    const unknown = await codeOf(g.post("/mj/submit/imagine", { prompt: "x" }));
    expect(unknown).toEqual([404, "model_not_found"]);
    expect(await codeOf(g.post("/mj/submit/imagine", {}))).toEqual([400, "task_request_invalid"]);
    expect(await codeOf(g.post("/suno/submit/music", "{oops"))).toEqual([400, "invalid_json"]);
    const headers = { authorization: `Bearer ${g.key}` };
    expect(await codeOf(fetch(`${g.app.url}/suno/fetch/none`, { headers }))).toEqual([400, "task_not_found"]);
    expect(await codeOf(fetch(`${g.app.url}/mj/image/none`))).toEqual([400, "task_not_found"]);
    const stranger = await codeOf(g.post("/mj/submit/imagine", {}, { authorization: "Bearer sk-nobody" }));
    expect(stranger).toEqual([401, "token_invalid"]);
  });

  test("the playground, billing calls, and addresses that are not served", async () => {
    const play = (body: object, headers: Record<string, string>) =>
      fetch(`${g.app.url}/pg/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      });
    expect(await codeOf(play({}, {}))).toEqual([401, "auth_not_signed_in"]);
    expect(await codeOf(play({}, g.user.headers))).toEqual([400, "playground_model_required"]);
    expect(await codeOf(play({ model: "nobody-has-it" }, g.user.headers))).toEqual([404, "model_not_found"]);
    const billing = fetch(`${g.app.url}/v1/dashboard/billing/usage`, {
      headers: { authorization: "Bearer sk-nobody" },
    });
    expect(await codeOf(billing)).toEqual([401, "token_invalid"]);
    expect(await codeOf(g.post("/v1/images/variations", {}))).toEqual([501, "api_not_implemented"]);
    expect(await codeOf(g.post("/v1/unheard-of", {}))).toEqual([404, "unknown_path"]);
    expect(await codeOf(g.post("/upload/v1beta/files", {}))).toEqual([404, "unknown_path"]);
    expect(await codeOf(g.post("/v1/messages/batches", {}))).toEqual([404, "unknown_path"]);
    expect(await codeOf(g.post("/v1beta/models/x:dance", {}))).toEqual([404, "gemini_action_unknown"]);
  });

  test("nobody: an answer that is none carries no code", async () => {
    const response = await g.chat();
    await response.text();
    expect([response.status, response.headers.get(HEADER)]).toEqual([200, null]);
  });
});

/** What servers say when the conversation is too long: status, body, and the numbers in it. */
const TOO_LONG: readonly [server: string, status: number, body: object, used?: number, limit?: number][] = [
  [
    "OpenAI",
    400,
    {
      error: {
        message:
          "This model's maximum context length is 128,000 tokens. However, you requested 130,000 tokens (120,000 in the messages, 10,000 in the completion). Please reduce the length of the messages or completion.",
        type: "invalid_request_error",
        param: "messages",
        code: "context_length_exceeded",
      },
    },
    130_000,
    128_000,
  ],
  [
    "OpenAI, by the configured limit",
    400,
    {
      error: {
        message:
          "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 295411 tokens. Please reduce the length of the messages.",
        type: "invalid_request_error",
        code: "context_length_exceeded",
      },
    },
    295_411,
    272_000,
  ],
  [
    "DeepSeek",
    400,
    {
      error: {
        message:
          "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        type: "invalid_request_error",
        param: null,
        code: "invalid_request_error",
      },
    },
    70_000,
    65_536,
  ],
  [
    "vLLM",
    400,
    {
      object: "error",
      message:
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192. Make sure that it is not.",
      type: "BadRequestError",
      param: null,
      code: 400,
    },
    9000,
    8192,
  ],
  [
    "vLLM, newer",
    400,
    {
      error: {
        message:
          "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 tokens and your request has 10 input tokens (5000 > 4096 - 10). None",
        type: "BadRequestError",
        code: 400,
      },
    },
    10,
    4096,
  ],
  [
    "llama.cpp",
    400,
    {
      error: {
        code: 400,
        message: "the request exceeds the available context size, try increasing it",
        type: "exceed_context_size_error",
        n_prompt_tokens: 5051,
        n_ctx: 4096,
      },
    },
    5051,
    4096,
  ],
  [
    "older llama.cpp",
    500,
    {
      error: {
        code: 500,
        message:
          "the request exceeds the available context size. try increasing the context size or enable context shift",
        type: "server_error",
      },
    },
  ],
  [
    "Mistral",
    400,
    {
      object: "error",
      message:
        "Prompt contains 40961 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
      type: "invalid_request_prompt",
      param: null,
      code: "3051",
    },
    40_961,
    32_768,
  ],
  [
    "xAI",
    400,
    {
      code: "Client specified an invalid argument",
      error: "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    },
    537_812,
    131_072,
  ],
  [
    "SGLang",
    400,
    {
      object: "error",
      message: "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
      type: "BadRequestError",
      code: 400,
    },
    5000,
    4096,
  ],
  [
    "Moonshot",
    400,
    {
      error: {
        message: "Invalid request: Your request exceeded model token limit: 8192 (requested: 9100)",
        type: "invalid_request_error",
      },
    },
    9100,
    8192,
  ],
  [
    "DashScope",
    400,
    {
      error: {
        message: "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
        code: "invalid_parameter_error",
      },
    },
    undefined,
    98_304,
  ],
  [
    "a proxy that gives the code alone",
    413,
    { error: { message: "too much", code: "context_length_exceeded" } },
  ],
];

function expected(dialect: DialectName, used?: number, limit?: number): string {
  if (dialect === "anthropic") {
    if (used !== undefined && limit !== undefined)
      return `prompt is too long: ${used} tokens > ${limit} maximum (`;
    return limit === undefined ? "prompt is too long (" : `prompt is too long: ${limit} tokens maximum (`;
  }
  const count = used === undefined ? "" : ` (${used})`;
  const most = limit === undefined ? "" : ` (${limit})`;
  return `The input token count${count} exceeds the maximum number of tokens allowed${most}. (`;
}

describe("a conversation that is too long is recognised in the words of", () => {
  test.each(TOO_LONG.map((row) => [row[0], row] as const))("%s", async (_, [, status, body, used, limit]) => {
    for (const dialect of ["anthropic", "gemini"] as const) {
      const model = await channel();
      g.upstream.script(refuse(status, body));
      const refused = await call(dialect, model);
      expect(refused).toMatchObject({ status: 400, code: "context_length" });
      expect(refused.message).toStartWith(expected(dialect, used, limit));
    }
    for (const dialect of ["openai-chat", "openai-responses"] as const) {
      const model = await channel();
      g.upstream.script(refuse(status, body));
      expect(await call(dialect, model)).toMatchObject({
        status: 400,
        code: "context_length",
        word: "context_length_exceeded",
        message: expect.stringMatching(/maximum context length is [\d,]+|context window of this model/),
      });
    }
  });

  test.each<[string, number, object, string]>([
    [
      "Anthropic",
      14,
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          message: "prompt is too long: 210000 tokens > 200000 maximum",
        },
      },
      "This model's maximum context length is 200000 tokens. However, your messages resulted in 210000 tokens.",
    ],
    [
      "Anthropic, with the answer's limit",
      14,
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          message:
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
        },
      },
      "This model's maximum context length is 200000 tokens. However, your messages resulted in 209573 tokens.",
    ],
    [
      "Gemini",
      24,
      {
        error: {
          code: 400,
          message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
          status: "INVALID_ARGUMENT",
        },
      },
      "This model's maximum context length is 1048575 tokens. However, your messages resulted in 1200000 tokens.",
    ],
  ])("%s", async (_, type, body, sentence) => {
    for (const dialect of ["openai-chat", "openai-responses"] as const) {
      const model = await channel({ type });
      g.upstream.script(refuse(400, body));
      const refused = await call(dialect, model);
      expect(refused).toMatchObject({ status: 400, code: "context_length", word: "context_length_exceeded" });
      expect(refused.message).toStartWith(sentence);
    }
  });

  test("Anthropic's own clients read Anthropic's own sentence: they cut max_tokens by its numbers", async () => {
    const model = await channel({ type: 14 });
    const message =
      "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again";
    g.upstream.script(refuse(400, { type: "error", error: { type: "invalid_request_error", message } }));
    expect((await call("anthropic", model)).message).toStartWith(message);
  });

  test.each<[string, Script]>([
    [
      "a stream's first event",
      {
        headers: { "content-type": "text/event-stream" },
        steps: [
          sse({
            error: {
              message:
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
              code: 400,
            },
          }),
        ],
      },
    ],
    [
      "an answer of status 200",
      {
        headers: { "content-type": "application/json" },
        steps: [JSON.stringify({ error: { message: "x", type: "context_length_exceeded" } })],
      },
    ],
  ])("%s", async (_, script) => {
    for (const dialect of DIALECTS) {
      // A provider of chat completions alone: all four are converted to and from it.
      const model = await channel({ type: 43 });
      g.upstream.script(script);
      expect(await call(dialect, model, true)).toMatchObject({ status: 400, code: "context_length" });
    }
  });

  test("nobody else: a limit of tokens a minute, and an input that is wrong in another way", async () => {
    const model = await channel();
    g.upstream.script(
      refuse(429, {
        error: {
          message: "Request too large: Limit 10000, Requested 12000 tokens",
          code: "rate_limit_exceeded",
        },
      }),
    );
    expect(await call("anthropic", model)).toMatchObject({ status: 429, code: "upstream_saturated" });
    const other = await channel();
    g.upstream.script(
      refuse(400, { error: { message: "max_tokens must be at most 4096", code: "bad_value" } }),
    );
    expect(await call("openai-chat", other)).toMatchObject({ code: "upstream_request", word: "bad_value" });
  });
});

test("a conversation that is too long is never sent elsewhere, even where a 400 is retried", async () => {
  const model = await channel({ type: 14, priority: 2 });
  await g.app.createChannel({ baseUrl: g.upstream.url, models: model, type: 14, priority: 1 });
  await g.setOption("RetryTimes", "3");
  g.upstream.always(
    refuse(400, {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 2 tokens > 1 maximum" },
    }),
  );
  expect(await call("openai-chat", model)).toMatchObject({ status: 400, code: "context_length" });
  expect(g.upstream.requests).toHaveLength(1);
  await g.setOption("RetryTimes", "0");
  g.upstream.always(undefined);
});

describe("a stream that fails after it began tells its own dialect's clients the same class", () => {
  test("Responses: context_length_exceeded in the failed response", async () => {
    const model = await channel({ type: 43 });
    g.upstream.script({
      headers: { "content-type": "text/event-stream" },
      steps: [
        sse({ id: "x", choices: [{ index: 0, delta: { role: "assistant", content: "Hello" } }] }),
        sse({ error: { message: "the input length exceeds the context length", code: 400 } }),
      ],
    });
    const [path, body] = callOf("openai-responses", model, true);
    const text = await (await g.post(path, body)).text();
    expect(text).toContain('"code":"context_length_exceeded"');
    expect(text).toContain("Your input exceeds the context window of this model.");
  });
});
