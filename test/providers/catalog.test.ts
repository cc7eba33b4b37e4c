// The provider rows: complete, consistent with the editor's forms, and turned into the right requests.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { listProviders, providerOf } from "../../src/providers/catalog.ts";
import { assertUsable, patchBody, upstreamHeaders, upstreamUrl } from "../../src/providers/define.ts";
import type { Operation, ProviderRow } from "../../src/providers/define.ts";
import { listPresetModels, modelOwner } from "../../src/providers/owners.ts";
import { Failure } from "../../src/shared/failures.ts";
import { PROVIDER_FORMS, providerForm } from "../../src/shared/provider-forms.ts";

const NEVER_GIVEN = new Set([28, 29, 30, 32]);

function row(type: number): ProviderRow {
  const found = providerOf(type);
  if (!found) throw new Error(`no row ${type}`);
  return found;
}

const channel = { baseUrl: "", other: "", organization: "", createdTime: 1_780_000_000 };
const target = (operation: Operation, model = "m", path = "/v1/chat/completions", search = "") => ({
  operation,
  model,
  path,
  search,
});

test("every type from 1 to 49 has a row and a form, and numbers that were never given out have none", () => {
  for (let type = 1; type <= 49; type++) {
    const expected = !NEVER_GIVEN.has(type);
    expect([type, providerOf(type) !== undefined, providerForm(type) !== undefined]).toEqual([
      type,
      expected,
      expected,
    ]);
  }
  expect(PROVIDER_FORMS.map(({ id }) => id)).toEqual(listProviders().map(({ id }) => id));
});

describe("addresses", () => {
  test.each<[number, string, Operation, string, string, string]>([
    [1, "", "chat", "gpt-4o", "/v1/chat/completions", "https://api.openai.com/v1/chat/completions"],
    [1, "https://proxy.example/", "embeddings", "e", "/v1/embeddings", "https://proxy.example/v1/embeddings"],
    [
      8,
      "https://own.example/call/{model}/x",
      "chat",
      "m 1",
      "/v1/chat/completions",
      "https://own.example/call/m%201/x",
    ],
    [20, "", "chat", "a/b", "/v1/chat/completions", "https://openrouter.ai/api/v1/chat/completions"],
    [27, "", "chat", "sonar", "/v1/chat/completions", "https://api.perplexity.ai/chat/completions"],
    [35, "", "chat", "abab", "/v1/chat/completions", "https://api.minimax.chat/v1/text/chatcompletion_v2"],
    [
      45,
      "",
      "chat",
      "doubao",
      "/v1/chat/completions",
      "https://ark.cn-beijing.volces.com/api/v3/chat/completions",
    ],
    [46, "", "chat", "ernie", "/v1/chat/completions", "https://qianfan.baidubce.com/v2/chat/completions"],
    [
      17,
      "",
      "chat",
      "qwen",
      "/v1/chat/completions",
      "https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions",
    ],
    [43, "", "completions", "deepseek-chat", "/v1/completions", "https://api.deepseek.com/beta/completions"],
    [
      1,
      "https://gateway.ai.cloudflare.com/v1/acc/gw/openai",
      "chat",
      "m",
      "/v1/chat/completions",
      "https://gateway.ai.cloudflare.com/v1/acc/gw/openai/chat/completions",
    ],
  ])("type %d at %p: %s of %s", (type, baseUrl, operation, model, path, url) => {
    expect(upstreamUrl(row(type), { ...channel, baseUrl }, target(operation, model, path))).toBe(url);
  });

  test("Azure names deployment and version: the client's, then the channel's, then ours", () => {
    const azure = { ...channel, baseUrl: "https://r.openai.azure.com" };
    const at = (other: string, search: string) =>
      upstreamUrl(row(3), { ...azure, other }, target("chat", "gpt-4.1", "/v1/chat/completions", search));
    expect(at("", "")).toBe(
      "https://r.openai.azure.com/openai/deployments/gpt-4.1/chat/completions?api-version=2025-04-01-preview",
    );
    expect(at("2024-10-21", "")).toEndWith("api-version=2024-10-21");
    expect(at("2024-10-21", "?api-version=2023-05-15")).toEndWith("api-version=2023-05-15");
    expect(
      upstreamUrl(row(3), { ...azure, createdTime: 1_700_000_000 }, target("chat", "gpt-4.1")),
    ).toContain("/deployments/gpt-41/");
    expect(() => upstreamUrl(row(3), channel, target("chat"))).toThrow(Failure);
  });

  test("the account of Cloudflare is part of the path and cannot break out of it", () => {
    const url = upstreamUrl(row(39), { ...channel, other: "a/../b?x=#" }, target("chat"));
    expect(url).toBe(
      "https://api.cloudflare.com/client/v4/accounts/a%2F..%2Fb%3Fx%3D%23/ai/v1/chat/completions",
    );
  });
});

test("keys travel as each provider asks, and an empty key sends no header at all", () => {
  const inputs = { key: "k", organization: "" };
  expect(upstreamHeaders(row(1), inputs)).toEqual({ authorization: "Bearer k" });
  expect(upstreamHeaders(row(1), { ...inputs, organization: "org" })["openai-organization"]).toBe("org");
  expect(upstreamHeaders(row(3), inputs)).toEqual({ "api-key": "k" });
  expect(upstreamHeaders(row(14), inputs)).toEqual({ "x-api-key": "k", "anthropic-version": "2023-06-01" });
  expect(upstreamHeaders(row(24), inputs)).toEqual({ "x-goog-api-key": "k" });
  for (const each of listProviders()) {
    expect(Object.values(upstreamHeaders(each, { key: "", organization: "" })).join(" ")).not.toMatch(
      /Bearer\s*$|undefined/,
    );
  }
});

test("a retired provider, an unknown type and an operation that is not offered are refused by name", () => {
  const codeOf = (type: number, operation: Operation) => {
    try {
      assertUsable(providerOf(type), type, operation);
      return "usable";
    } catch (error) {
      return (error as Failure).code;
    }
  };
  expect(codeOf(11, "chat")).toBe("provider_retired");
  expect(codeOf(21, "chat")).toBe("provider_retired");
  expect(codeOf(999, "chat")).toBe("provider_unknown");
  expect(codeOf(27, "embeddings")).toBe("provider_operation");
  expect(codeOf(1, "embeddings")).toBe("usable");
});

test("patches never touch the client's body, and keep zero, false and unknown fields", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.constantFrom(...listProviders()),
      (body, each) => {
        const before = JSON.stringify(body);
        patchBody(each, body);
        expect(JSON.stringify(body)).toBe(before);
      },
    ),
  );
  const body = { model: "m", temperature: 0, stream: false, vendor: { x: 1 } };
  expect(patchBody(row(1), body).body).toBe(body);
});

test("Azure's o-series gets its limit under the new name, no temperature, and its effort out of the name", () => {
  const { body, changed } = patchBody(row(3), { model: "o3-mini-high", max_tokens: 5, temperature: 0 });
  expect(body).toEqual({ model: "o3-mini", max_completion_tokens: 5, reasoning_effort: "high" });
  expect(changed).toContain("temperature");
});

test("known models have owners, unknown ones are custom, and none is listed twice", () => {
  expect([modelOwner("gpt-4o"), modelOwner("mj_imagine"), modelOwner("mine")]).toEqual([
    "openai",
    "midjourney",
    "custom",
  ]);
  const names = listPresetModels().map(({ id }) => id);
  expect(new Set(names).size).toBe(names.length);
});
