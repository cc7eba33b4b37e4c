// One channel asked on purpose: a small test call, the account's balance, the list of its models.
// Refuses to charge anybody, and types that have no call of the kind.
import type { Channel } from "../core/channels/rows.ts";
import type { ChannelProbe, ProbeResult } from "../core/channels/watch.ts";
import type { Deps } from "../core/deps.ts";
import { parseJson } from "../protocol/json.ts";
import { scrub } from "../protocol/classify.ts";
import { modelsUrl, routeFor } from "../providers/address.ts";
import { readBalance } from "../providers/balance.ts";
import { providerOf } from "../providers/catalog.ts";
import type { ProviderRow } from "../providers/define.ts";
import { upstreamHeaders } from "../providers/headers.ts";
import { Failure } from "../shared/failures.ts";
import { askUpstream } from "./call/attempt.ts";
import type { Relay } from "./call/pipeline.ts";
import type { TestCall } from "./endpoints/test-endpoints.ts";

const TIMEOUT_MS = 20_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const FALLBACK_MODEL = "gpt-4o-mini";
const JINA = 38;
const MOKA = 44;
/** An Anthropic-shaped list has its own header and the same form. */
const UNTESTED: ReadonlyMap<number, string> = new Map([
  [2, "midjourney channel test is not supported"],
  [5, "midjourney plus channel test is not supported!!!"],
  [36, "suno channel test is not supported"],
]);

const PICTURE_MODELS =
  /^(?:dall-e|gpt-image|imagen|wanx|cogview|image-0\d)|flux|seedream|kolors|stable-diffusion|image-generation$/;

/** What the model is for, by its name; by what the type serves where it holds no conversations with the model. */
function operationFor(model: string, type: number): TestCall["operation"] {
  const name = model.toLowerCase();
  if (name.includes("rerank")) return "rerank";
  if (/embed|^m3e|bge-/.test(name) || type === MOKA || type === JINA) return "embeddings";
  if (PICTURE_MODELS.test(name)) return "image-generations";
  const row = providerOf(type);
  if (!row || routeFor(row, "chat", model)) return "chat";
  const others = ["embeddings", "rerank", "image-generations"] as const;
  return others.find((operation) => routeFor(row, operation, model)) ?? "chat";
}

/** Which endpoint a model is tested on, and the smallest body that it takes. */
export function testCallFor(model: string, type: number): TestCall {
  const name = model.toLowerCase();
  const operation = operationFor(model, type);
  if (operation === "rerank")
    return { operation, body: { model, query: "hi", documents: ["hello", "world"], top_n: 1 } };
  if (operation === "embeddings") return { operation, body: { model, input: ["hello world"] } };
  if (operation === "image-generations")
    return { operation, body: { model, prompt: "a white square", n: 1 } };
  const body: Record<string, unknown> = { model, messages: [{ role: "user", content: "hi" }] };
  if (/^o\d/.test(name)) body["max_completion_tokens"] = 10;
  else if (name.includes("thinking")) {
    // Claude's budget decides by itself how much room an answer has.
    if (!name.includes("claude")) body["max_tokens"] = 50;
  } else body["max_tokens"] = name.includes("gemini") ? 300 : 10;
  return { operation: "chat", body };
}

function unsupported(code: string): Failure {
  return new Failure("client", code);
}

function modelIds(json: unknown, strip: string): string[] {
  const list = (json as { data?: unknown; models?: unknown } | undefined)?.data;
  if (!Array.isArray(list)) throw new Failure("upstream-down", "models_unreadable");
  const ids = (list as unknown[]).flatMap((item) => {
    const id = typeof item === "object" && item !== null ? (item as { id?: unknown }).id : item;
    return typeof id === "string" && id !== "" ? [id.startsWith(strip) ? id.slice(strip.length) : id] : [];
  });
  return [...new Set(ids)].slice(0, 20_000);
}

export function createProbe(deps: Deps, relay: Pick<Relay, "probe">): ChannelProbe {
  /** GET below a channel's own address: it is called there anyway. */
  async function askChannel(
    channel: Channel,
    url: string,
    headers: Record<string, string>,
  ): Promise<unknown> {
    const { proxy } = channel.setting;
    const answer = await askUpstream({
      url,
      headers,
      proxy: typeof proxy === "string" ? proxy : "",
      reach: (address) => deps.reach.target(address, channel),
      timeoutMs: TIMEOUT_MS,
    });
    return answerOf(answer.status, answer.text);
  }

  function answerOf(status: number, text: string): unknown {
    if (status !== 200)
      throw new Failure("upstream-down", "upstream_status", { params: { status }, internal: scrub(text) });
    const json = parseJson(text);
    if (typeof json !== "object" || json === null)
      throw new Failure("upstream-down", "models_unreadable", { internal: scrub(text.slice(0, 200)) });
    return json;
  }

  function rowOf(type: number): ProviderRow {
    const row = providerOf(type);
    if (!row) throw unsupported("provider_unknown");
    return row;
  }

  return {
    async test(channel, model): Promise<ProbeResult> {
      const startedMs = performance.now();
      const untested = UNTESTED.get(channel.type);
      const asked = model || channel.testModel || channel.models[0] || FALLBACK_MODEL;
      if (untested !== undefined) {
        return {
          ms: 0,
          isFatal: false,
          failure: new Failure("client", "channel_untested", { text: untested }),
        };
      }
      const { failure, isFatal } = await relay.probe(channel, testCallFor(asked, channel.type));
      return { ms: performance.now() - startedMs, isFatal, ...(failure ? { failure } : {}) };
    },
    balance(channel) {
      return readBalance({
        row: rowOf(channel.type),
        channel,
        key: channel.keys[0] ?? "",
        ask: async (url, headers) => (await askChannel(channel, url, headers)) as Record<string, unknown>,
        nowMs: deps.clock.nowMs(),
        currencyPerDollar: deps.options.get("Price"),
      });
    },
    async models(channel) {
      const row = rowOf(channel.type);
      const url = modelsUrl(row, channel);
      if (url === undefined) throw unsupported("models_unsupported");
      const headers = upstreamHeaders(row, { operation: "chat", key: channel.keys[0] ?? "" });
      return modelIds(await askChannel(channel, url, headers), row.modelsListing?.strip ?? "");
    },
    async typedModels({ baseUrl, type, key }, isTrusted) {
      const row = rowOf(type);
      const url = modelsUrl(row, { baseUrl: baseUrl.trim().replace(/\/+$/, "") });
      if (url === undefined) throw unsupported("models_unsupported");
      const [first = ""] = key.split("\n");
      const headers = upstreamHeaders(row, { operation: "chat", key: first });
      const answer = await deps.guard(url, {
        headers,
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: TIMEOUT_MS,
        // Whoever runs the server may look into its own networks.
        allow: isTrusted ? deps.reach.networks(url, { baseUrl: url, setting: {} }) : [],
      });
      const text = new TextDecoder().decode(answer.bytes);
      return modelIds(answerOf(answer.status, text), row.modelsListing?.strip ?? "");
    },
  };
}
