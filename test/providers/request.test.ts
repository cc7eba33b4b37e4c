// Addresses and headers of upstream calls, type by type: copied by hand from the reference, not from the rows.
// Refuses to call anything; every function here is pure.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { classify } from "../../src/protocol/classify.ts";
import { modelsUrl, upstreamUrl } from "../../src/providers/address.ts";
import { readBalance } from "../../src/providers/balance.ts";
import type { UpstreamAddress } from "../../src/providers/address.ts";
import { listProviders, providerOf } from "../../src/providers/catalog.ts";
import type { Operation, ProviderRow, UpstreamChannel } from "../../src/providers/define.ts";
import { upstreamHeaders } from "../../src/providers/headers.ts";
import { buildUpstreamRequest } from "../../src/providers/request.ts";
import { Failure } from "../../src/shared/failures.ts";

const CHANNEL: UpstreamChannel = { baseUrl: "", other: "", organization: "", createdTime: 1_780_000_000 };

function row(type: number): ProviderRow {
  const found = providerOf(type);
  if (!found) throw new Error(`no row ${type}`);
  return found;
}

function url(type: number, call: Partial<UpstreamAddress>, channel: Partial<UpstreamChannel> = {}): string {
  return upstreamUrl(row(type), { ...CHANNEL, ...channel }, { operation: "chat", model: "m", ...call });
}

describe("addresses", () => {
  const cases: readonly [number, Operation, string, string, string][] = [
    [1, "chat", "gpt-4o", "", "https://api.openai.com/v1/chat/completions"],
    [1, "embeddings", "e", "https://proxy.example/", "https://proxy.example/v1/embeddings"],
    [1, "image-edits", "gpt-image-1", "", "https://api.openai.com/v1/images/edits"],
    [1, "transcriptions", "whisper-1", "", "https://api.openai.com/v1/audio/transcriptions"],
    [4, "chat", "llama3-7b", "", "http://localhost:11434/v1/chat/completions"],
    [4, "embeddings", "llama3-7b", "", "http://localhost:11434/api/embed"],
    [8, "chat", "a b", "https://own.example/call/{model}/x", "https://own.example/call/a%20b/x"],
    [14, "messages", "claude-3", "", "https://api.anthropic.com/v1/messages"],
    [17, "chat", "qwen", "", "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions"],
    [20, "chat", "a/b", "", "https://openrouter.ai/api/v1/chat/completions"],
    [22, "chat", "m", "", "https://fastgpt.run/api/openapi/v1/chat/completions"],
    [26, "chat", "glm-4", "", "https://open.bigmodel.cn/api/paas/v4/chat/completions"],
    [27, "chat", "sonar", "", "https://api.perplexity.ai/chat/completions"],
    [35, "chat", "abab6-chat", "", "https://api.minimax.chat/v1/text/chatcompletion_v2"],
    [38, "rerank", "r", "", "https://api.jina.ai/v1/rerank"],
    [40, "rerank", "r", "", "https://api.siliconflow.cn/v1/rerank"],
    [42, "chat", "open-mistral-7b", "", "https://api.mistral.ai/v1/chat/completions"],
    [43, "completions", "deepseek-chat", "", "https://api.deepseek.com/beta/completions"],
    [43, "completions", "d", "https://api.deepseek.com/beta", "https://api.deepseek.com/beta/completions"],
    [44, "embeddings", "m3e-base", "", "https://api.moka.ai/embeddings"],
    [45, "chat", "doubao", "", "https://ark.cn-beijing.volces.com/api/v3/chat/completions"],
    [45, "chat", "bot-2024", "", "https://ark.cn-beijing.volces.com/api/v3/bots/chat/completions"],
    [46, "chat", "ernie", "", "https://qianfan.baidubce.com/v2/chat/completions"],
    [48, "image-generations", "grok-2-image", "", "https://api.x.ai/v1/images/generations"],
    [53, "completions", "m", "", "https://llm.submodel.ai/v1/completions"],
    [59, "messages", "m", "https://s.example", "https://s.example/v1/messages"],
    [60, "responses", "m", "https://n.example/", "https://n.example/v1/responses"],
  ];
  test.each(cases)("type %d, %s of %s at %p", (type, operation, model, baseUrl, expected) => {
    expect(url(type, { operation, model }, { baseUrl })).toBe(expected);
  });

  test("an address that is remembered is the one that would be made: by row, model, path, version and form", () => {
    const own: UpstreamChannel = { ...CHANNEL, baseUrl: "https://own.example", other: "2024-01-01" };
    const calls: UpstreamAddress[] = [];
    for (const operation of ["chat", "embeddings", "responses", "gemini"] as const)
      for (const model of ["m", "gpt-4.1"])
        for (const more of [{}, { isStream: true }, { path: "/v1/other" }, { geminiVersion: "v1" }])
          calls.push({ operation, model, ...more });
    const rows = listProviders().filter(({ status }) => status !== "retired" && status !== "later");
    const made = (each: ProviderRow, channel: UpstreamChannel, call: UpstreamAddress): string => {
      try {
        return upstreamUrl(each, channel, call);
      } catch (error) {
        return (error as Failure).code;
      }
    };
    for (const each of rows) {
      for (let round = 0; round < 2; round++)
        for (const call of calls) expect(made(each, own, call)).toBe(made(each, { ...own }, call));
    }
    // A query is the client's and is never remembered.
    expect(url(1, { query: "?a=1" }, own)).toEndWith("?a=1");
    expect(upstreamUrl(row(1), own, { operation: "chat", model: "m", query: "?b=2" })).toEndWith("?b=2");
    expect(upstreamUrl(row(1), own, { operation: "chat", model: "m" })).not.toContain("?");
  });

  test("a base URL that ends in /v1 is joined as it stands, and many slashes at its end are one address", () => {
    expect(url(1, {}, { baseUrl: "https://p.example/v1" })).toBe("https://p.example/v1/v1/chat/completions");
    expect(url(1, {}, { baseUrl: " https://p.example/// " })).toBe("https://p.example/v1/chat/completions");
  });

  test("the playground's path and the old embeddings path become the upstream's own", () => {
    expect(url(1, { path: "/pg/chat/completions" })).toBe("https://api.openai.com/v1/chat/completions");
    expect(url(1, { operation: "embeddings", path: "/v1/engines/ada/embeddings" })).toBe(
      "https://api.openai.com/v1/embeddings",
    );
  });

  test("the client's query goes along, its key never does", () => {
    expect(url(1, { query: "?a=1&key=secret&b=%20" })).toBe(
      "https://api.openai.com/v1/chat/completions?a=1&b=%20",
    );
    expect(url(1, { query: "k%65y=secret" })).toBe("https://api.openai.com/v1/chat/completions");
    expect(url(27, { query: "?a=1" })).toBe("https://api.perplexity.ai/chat/completions");
  });

  test("realtime is a socket address and keeps its query", () => {
    expect(url(1, { operation: "realtime", query: "?model=gpt-4o-realtime-preview" })).toBe(
      "wss://api.openai.com/v1/realtime?model=gpt-4o-realtime-preview",
    );
    expect(url(47, { operation: "realtime" }, { baseUrl: "http://x.example" })).toBe(
      "ws://x.example/v1/realtime",
    );
  });

  test("below Cloudflare's gateway OpenAI loses /v1 and Azure its deployments prefix, others nothing", () => {
    const gateway = "https://gateway.ai.cloudflare.com/v1/acc/gw";
    expect(url(1, {}, { baseUrl: `${gateway}/openai` })).toBe(`${gateway}/openai/chat/completions`);
    expect(url(3, { model: "d" }, { baseUrl: `${gateway}/azure-openai/res`, other: "2024-10-21" })).toBe(
      `${gateway}/azure-openai/res/d/chat/completions?api-version=2024-10-21`,
    );
    expect(url(42, {}, { baseUrl: `${gateway}/mistral` })).toBe(`${gateway}/mistral/v1/chat/completions`);
  });

  test("Azure: the client's version, then the channel's, then the installation's, then ours", () => {
    const azure = { baseUrl: "https://r.openai.azure.com" };
    const path = "https://r.openai.azure.com/openai/deployments/gpt-4.1/chat/completions?api-version=";
    const call = { model: "gpt-4.1" };
    expect(url(3, call, azure)).toBe(`${path}2025-04-01-preview`);
    expect(url(3, { ...call, azureDefaultApiVersion: "2099-01-01" }, azure)).toBe(`${path}2099-01-01`);
    expect(url(3, call, { ...azure, other: "2024-10-21" })).toBe(`${path}2024-10-21`);
    expect(url(3, { ...call, query: "?api-version=2023-05-15&x=1" }, { ...azure, other: "2024-10-21" })).toBe(
      `${path}2023-05-15`,
    );
  });

  test("Azure: dots leave the deployment name only for channels made before 10 May 2025", () => {
    const azure = { baseUrl: "https://r.openai.azure.com" };
    expect(url(3, { model: "gpt-4.1" }, { ...azure, createdTime: 1_746_835_199 })).toContain("/gpt-41/");
    expect(url(3, { model: "gpt-4.1" }, { ...azure, createdTime: 1_746_835_200 })).toContain("/gpt-4.1/");
  });

  test("Azure: realtime and responses have addresses of their own", () => {
    const azure = { baseUrl: "https://r.openai.azure.com", other: "v1" };
    expect(url(3, { operation: "realtime", model: "rt" }, azure)).toBe(
      "wss://r.openai.azure.com/openai/realtime?deployment=rt&api-version=v1",
    );
    expect(url(3, { operation: "responses" }, azure)).toBe(
      "https://r.openai.azure.com/openai/v1/responses?api-version=preview",
    );
    expect(
      url(3, { operation: "responses" }, { baseUrl: "https://r.cognitiveservices.azure.com", other: "v1" }),
    ).toBe("https://r.cognitiveservices.azure.com/openai/responses?api-version=v1");
  });

  test("Azure: responses name the deployment in the body, without dots for old channels as well", () => {
    const azure = { ...CHANNEL, baseUrl: "https://r.openai.azure.com" };
    const call = { operation: "responses", model: "gpt-4.1", key: "k", body: { model: "gpt-4.1" } } as const;
    const old = buildUpstreamRequest(row(3), { ...azure, createdTime: 1_746_835_199 }, call);
    expect([old.body, old.changed, old.model]).toEqual([{ model: "gpt-41" }, ["model"], "gpt-4.1"]);
    const young = buildUpstreamRequest(row(3), { ...azure, createdTime: 1_746_835_200 }, call);
    expect([young.body, young.changed]).toEqual([{ model: "gpt-4.1" }, []]);
  });

  test("Gemini: the version of the installation, and another address for streams", () => {
    const base = "https://generativelanguage.googleapis.com";
    const call = { operation: "gemini", model: "gemini-2.0-flash" } as const;
    expect(url(24, call)).toBe(`${base}/v1beta/models/gemini-2.0-flash:generateContent`);
    expect(url(24, { ...call, isStream: true, geminiVersion: "v1" })).toBe(
      `${base}/v1/models/gemini-2.0-flash:streamGenerateContent?alt=sse`,
    );
  });

  test("neither model nor special field can leave its place in the path", () => {
    expect(url(39, { model: "@cf/meta/llama" }, { other: "a/../b?x=#" })).toBe(
      "https://api.cloudflare.com/client/v4/accounts/a%2F..%2Fb%3Fx%3D%23/ai/v1/chat/completions",
    );
    expect(url(39, { operation: "completions", model: "@cf/meta/llama" }, { other: "acc" })).toBe(
      "https://api.cloudflare.com/client/v4/accounts/acc/ai/run/@cf/meta/llama",
    );
    const azure = { baseUrl: "https://r.openai.azure.com" };
    for (const model of ["..", "a/../../b", "a//b", "."])
      expect(() => url(3, { model }, azure)).toThrow(Failure);
    expect(url(3, { model: "a?b#c" }, azure)).toContain("/deployments/a%3Fb%23c/chat");
  });

  test("a type without an address of its own is refused by name until the channel has one", () => {
    for (const type of [3, 8, 47, 59, 60]) {
      try {
        url(type, {});
        expect.unreachable();
      } catch (error) {
        expect((error as Failure).code).toBe("provider_base_url");
        expect((error as Failure).retryable).toBe(true);
      }
    }
  });

  test("every route of every served type gives an address that can be parsed and has nothing left to fill in", () => {
    const channel = { ...CHANNEL, other: "x1" };
    for (const each of listProviders()) {
      if (each.status === "retired" || each.status === "later") continue;
      for (const [operation, route] of Object.entries(each.operations) as [Operation, { url: string }][]) {
        // Bedrock and Vertex make theirs from key and region.
        if (route.url === "{base}" && each.baseUrl === "" && !each.hasFullUrl) continue;
        const own = each.baseUrl === "" ? { ...channel, baseUrl: "https://b.example" } : channel;
        const made = upstreamUrl(each, own, { operation, model: "m" });
        expect([each.id, made]).not.toEqual([each.id, expect.stringMatching(/[{}]/)]);
        expect(new URL(made).protocol).toMatch(/^(https?|wss?):$/);
      }
    }
  });

  test("model lists stand where the provider keeps them", () => {
    expect(modelsUrl(row(1), CHANNEL)).toBe("https://api.openai.com/v1/models");
    expect(modelsUrl(row(17), CHANNEL)).toBe("https://dashscope.aliyuncs.com/compatible-mode/v1/models");
    expect(modelsUrl(row(24), CHANNEL)).toEndWith("/v1beta/openai/models");
    expect(modelsUrl(row(8), { baseUrl: "https://o.example/a/v1/chat/completions" })).toBe(
      "https://o.example/a/v1/models",
    );
    expect(modelsUrl(row(2), CHANNEL)).toBeUndefined();
    expect(modelsUrl(row(14), CHANNEL)).toBe("https://api.anthropic.com/v1/models?limit=1000");
    // A complete address that does not tell where its site begins has none.
    const whole = "https://o.example/paas/v4/chat/completions?api-version=/v1/";
    expect(modelsUrl(row(8), { baseUrl: whole })).toBeUndefined();
  });

  test("a complete address is called as it stands, with the slash at its end", () => {
    const baseUrl = " https://o.example/v1/chat/completions/ ";
    expect(url(8, {}, { baseUrl })).toBe("https://o.example/v1/chat/completions/");
    expect(url(1, {}, { baseUrl: " https://o.example/ " })).toBe("https://o.example/v1/chat/completions");
  });

  test("accounts are asked for beside a complete address, and Moonshot's are kept in dollars outside of China", async () => {
    const asked: string[] = [];
    const left = (type: number, baseUrl: string, answer: Record<string, unknown>): Promise<number> =>
      readBalance({
        row: row(type),
        channel: { ...CHANNEL, baseUrl },
        key: "k",
        ask: (address) => {
          asked.push(address);
          return Promise.resolve(answer);
        },
        nowMs: 0,
        currencyPerDollar: 7,
      });
    const billing = { hard_limit_usd: 20, total_usage: 500 };
    expect(await left(8, "https://o.example/a/v1/chat/completions", billing)).toBe(15);
    expect(asked[0]).toBe("https://o.example/a/v1/dashboard/billing/subscription");
    const nowhere = left(8, "https://o.example/chat", billing).catch(
      (error: unknown) => (error as Failure).code,
    );
    expect(await nowhere).toBe("balance_unsupported");
    const account = { data: { available_balance: 70 } };
    for (const [baseUrl, dollars] of [
      ["", 10],
      ["https://api.moonshot.cn", 10],
      ["https://api.moonshot.ai", 70],
      ["https://moonshot.ai.example", 10],
    ] as const)
      expect([baseUrl, await left(25, baseUrl, account)]).toEqual([baseUrl, dollars]);
  });
});

describe("headers", () => {
  const head = { operation: "chat", key: "k" } as const;

  test("the key travels as each provider asks", () => {
    expect(upstreamHeaders(row(1), head)).toEqual({ authorization: "Bearer k" });
    expect(upstreamHeaders(row(3), head)).toEqual({ "api-key": "k" });
    expect(upstreamHeaders(row(14), { operation: "messages", key: "k" })).toEqual({
      "x-api-key": "k",
      "anthropic-version": "2023-06-01",
    });
    expect(upstreamHeaders(row(24), { operation: "gemini", key: "k" })).toEqual({ "x-goog-api-key": "k" });
    expect(upstreamHeaders(row(2), head)).toEqual({ "mj-api-secret": "k" });
    expect(upstreamHeaders(row(60), { operation: "messages", key: "k" })).toEqual({
      authorization: "Bearer k",
      "x-api-key": "k",
      "anthropic-version": "2023-06-01",
    });
    expect(upstreamHeaders(row(23), head)).toEqual({});
  });

  test("no type ever sends an empty key", () => {
    for (const each of listProviders()) {
      for (const operation of [...Object.keys(each.operations), "chat"] as Operation[]) {
        for (const key of ["", "  "]) {
          const headers = upstreamHeaders(each, { operation, key, isStream: true });
          for (const name of ["authorization", "x-api-key", "api-key", "x-goog-api-key", "mj-api-secret"])
            expect([each.id, headers[name]]).toEqual([each.id, undefined]);
          for (const value of Object.values(headers)) expect(value.trim()).not.toBe("");
        }
      }
    }
  });

  test("a key that could end its header is refused and not quoted", () => {
    try {
      upstreamHeaders(row(1), { ...head, key: "abc\r\nx-evil: 1" });
      expect.unreachable();
    } catch (error) {
      expect((error as Failure).code).toBe("channel_key_unusable");
      expect(JSON.stringify(error)).not.toContain("abc");
    }
  });

  test("the organisation goes to OpenAI only, and only when the channel has one", () => {
    expect(upstreamHeaders(row(1), { ...head, organization: "org-1" })["openai-organization"]).toBe("org-1");
    expect(upstreamHeaders(row(1), { ...head, organization: "" })["openai-organization"]).toBeUndefined();
    expect(
      upstreamHeaders(row(6), { ...head, organization: "org-1" })["openai-organization"],
    ).toBeUndefined();
  });

  test("providers get the headers they ask for, and none without a value", () => {
    const stream = upstreamHeaders(row(17), { ...head, isStream: true, other: "search" });
    expect(stream["x-dashscope-sse"]).toBe("enable");
    expect(stream["x-dashscope-plugin"]).toBe("search");
    expect(upstreamHeaders(row(17), head)).toEqual({ authorization: "Bearer k" });
    expect(upstreamHeaders(row(20), { ...head, site: "https://me.example" })).toMatchObject({
      "http-referer": "https://me.example",
      "x-title": "Weir",
    });
    expect(upstreamHeaders(row(20), head)["http-referer"]).toBeUndefined();
    expect(upstreamHeaders(row(1), { ...head, isStream: true })["accept"]).toBe("text/event-stream");
    expect(
      upstreamHeaders(row(14), { operation: "messages", key: "k", anthropicVersion: "v2" }),
    ).toMatchObject({
      "anthropic-version": "v2",
    });
  });
});

describe("whole requests", () => {
  test("an effort suffix leaves the model before the deployment is addressed", () => {
    const built = buildUpstreamRequest(
      row(3),
      { ...CHANNEL, baseUrl: "https://r.openai.azure.com" },
      {
        operation: "chat",
        model: "o3-mini-high",
        key: "k",
        body: { model: "o3-mini-high", messages: [], max_tokens: 5 },
        ruled: { client: "openai-chat", isConverted: false },
      },
    );
    expect(built.url).toContain("/deployments/o3-mini/chat/completions?");
    expect(built.model).toBe("o3-mini");
    expect(built.body).toEqual({
      model: "o3-mini",
      messages: [],
      max_completion_tokens: 5,
      reasoning_effort: "high",
    });
  });

  test("a converted conversation takes neither path nor query of the client's protocol along", () => {
    const built = buildUpstreamRequest(row(1), CHANNEL, {
      operation: "messages",
      model: "gpt-4o",
      path: "/v1/messages",
      query: "?beta=true",
      key: "k",
    });
    expect(built.operation).toBe("chat");
    expect(built.route.dialect).toBe("openai-chat");
    expect(built.url).toBe("https://api.openai.com/v1/chat/completions");
    expect(built.headers["anthropic-version"]).toBeUndefined();
  });

  test("an operation that the type does not have is refused by name", () => {
    const call = { operation: "embeddings", model: "sonar", key: "k" } as const;
    expect(() => buildUpstreamRequest(row(27), CHANNEL, call)).toThrow("endpoint_unsupported");
    expect(() => buildUpstreamRequest(row(11), CHANNEL, call)).toThrow("provider_retired");
  });

  test("no model name, key or query makes a request to another host", () => {
    const served = listProviders().filter((each) => each.baseUrl !== "" && each.status === "active");
    fc.assert(
      fc.property(
        fc.constantFrom(...served),
        fc.string(),
        fc.string(),
        fc.string(),
        (each, model, query, other) => {
          for (const operation of Object.keys(each.operations) as Operation[]) {
            try {
              const made = upstreamUrl(each, { ...CHANNEL, other }, { operation, model, query });
              if (each.operations[operation]?.url.startsWith("{base}")) {
                expect(new URL(made).host).toBe(new URL(each.baseUrl).host);
              }
            } catch (error) {
              expect(error).toBeInstanceOf(Failure);
            }
          }
        },
      ),
    );
  });
});

test("words that providers of OpenAI's form have for an unpaid bill mean one, whatever the status", () => {
  for (const [status, type, code] of [
    // Moonshot, DashScope and Volcengine answer so.
    [429, "exceeded_current_quota_error", ""],
    [400, "Arrearage", "Arrearage"],
    [403, "Forbidden", "AccountOverdueError"],
    [429, "insufficient_quota", "insufficient_quota"],
  ] as const)
    expect([type, classify({ status, message: "", type, code })]).toEqual([type, "upstream-quota"]);
  expect(classify({ status: 429, message: "", type: "rate_limit_reached_error", code: "" })).toBe(
    "upstream-limit",
  );
});
