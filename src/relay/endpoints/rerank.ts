// Documents sorted by how well they fit a query, in the shapes of Jina and Cohere; one answer for both.
// Refuses empty queries and lists with the codes that clients of this API know.
import type { JsonObject } from "../../protocol/canonical.ts";
import { asList, asNumber, asObject, rest } from "../../protocol/json.ts";
import { boundedCount, emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { hasRanks } from "./answer-checks.ts";
import { checkNumbers, isObject, refused } from "./endpoint.ts";
import type { AnswerFacts, Endpoint, Json } from "./endpoint.ts";

const RERANK = { refusalCode: "invalid_rerank_request", dialect: "openai-chat" } as const;
const NUMBERS = {
  top_n: { min: 0, max: 1_000_000, whole: true },
  max_chunks_per_doc: { min: 0, max: 1_000_000, whole: true },
  max_chunk_per_doc: { min: 0, max: 1_000_000, whole: true },
  overlap_tokens: { min: 0, max: 1_000_000, whole: true },
};

function textOf(document: unknown): string {
  if (typeof document === "string") return document;
  const object = asObject(document);
  if (!object) return "";
  return typeof object["text"] === "string" ? object["text"] : JSON.stringify(object);
}

/** Tokens as the many servers of this endpoint tell them; null when they say nothing. */
function rerankUsage(json: unknown): Usage | null {
  const answer = asObject(json);
  const usage = asObject(answer?.["usage"]);
  const meta = asObject(answer?.["meta"]);
  const tokens = asObject(meta?.["tokens"]);
  const billed = asObject(meta?.["billed_units"]);
  const input =
    boundedCount(usage?.["total_tokens"]) ||
    boundedCount(usage?.["prompt_tokens"]) ||
    boundedCount(tokens?.["input_tokens"]) ||
    boundedCount(billed?.["input_tokens"]);
  const output =
    boundedCount(usage?.["total_tokens"]) > 0
      ? 0
      : boundedCount(tokens?.["output_tokens"]) || boundedCount(billed?.["output_tokens"]);
  if (input + output === 0) return null;
  const found = emptyUsage();
  found.raw = usage ?? meta;
  found.input.fresh = input;
  found.output.text = output;
  return found;
}

async function ownUsage({ body, count }: AnswerFacts): Promise<Usage> {
  const texts = [String(body["query"]), ...asList(body["documents"]).map(textOf)];
  const usage = emptyUsage();
  usage.input.fresh = await count(texts);
  return usage;
}

/** Documents come back only where they were asked for; servers that forget them get help. What else is said of one stays. */
function resultOf(value: unknown, body: Json): JsonObject {
  const result = asObject(value);
  const index = asNumber(result?.["index"]) ?? 0;
  const score = result?.["relevance_score"] ?? result?.["score"] ?? 0;
  const shown: JsonObject = {
    index,
    relevance_score: score,
    ...rest(result ?? {}, ["index", "relevance_score", "score", "document"]),
  };
  const wants = body["return_documents"];
  const own = result?.["document"] ?? undefined;
  const given = wants === true ? (own ?? asList(body["documents"])[index]) : own;
  if (wants === false || given === undefined) return shown;
  return { ...shown, document: typeof given === "string" ? { text: given } : given };
}

/** `{results, usage}` whatever the upstream's shape; what else it says of itself stays beside. */
function answer(json: unknown, { body, usage }: { body: Json; usage: Usage | undefined }): unknown {
  const wire = asObject(json) ?? {};
  const list = Array.isArray(wire["results"]) ? wire["results"] : asList(wire["data"]);
  const prompt = usage?.input.fresh ?? 0;
  const completion = usage?.output.text ?? 0;
  const told = isObject(wire["usage"]) ? wire["usage"] : {};
  return {
    ...rest(wire, ["results", "data", "usage"]),
    results: list.map((value) => resultOf(value, body)),
    usage: {
      ...told,
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
    },
  };
}

export const rerank: Endpoint = {
  ...RERANK,
  name: "rerank",
  canStream: false,
  isScreened: false,
  isConversation: false,
  isMedia: true,
  readOnce: new Set(["query", "documents"]),
  check(body) {
    checkNumbers(RERANK, body, NUMBERS);
    const { query, documents } = body;
    const isEmpty = query === undefined || query === null || query === "";
    if (isEmpty) throw refused({ refusalCode: "invalid_query" }, "query_empty", "query");
    if (!Array.isArray(documents) || documents.length === 0)
      throw refused({ refusalCode: "invalid_documents" }, "documents_empty", "documents");
  },
  visitPrompt(body, visitor) {
    visitor.text(typeof body["query"] === "string" ? body["query"] : JSON.stringify(body["query"]));
    for (const document of asList(body["documents"])) visitor.text(textOf(document));
  },
  outputLimit: () => 0,
  answersTokens: false,
  holds: hasRanks,
  reportedUsage: rerankUsage,
  ownUsage,
  answer,
};
