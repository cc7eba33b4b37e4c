// What rows of the catalogue are built from: routes by form, quirks and rules that several rows share, and the row itself
// with everything a provider does not say about itself. Refuses a row for a type that has no form in the console.
import { DEFAULT_KEY_HINT, PROVIDER_FORMS } from "../shared/provider-forms.ts";
import type { Auth, ModelRule, Operation, ProviderRow, Quirk, Route } from "./define.ts";
import { PRESET_MODELS } from "./preset-models.ts";

const BEARER: Auth = { kind: "header", name: "authorization", prefix: "Bearer " };
export const MJ_SECRET: Auth = { kind: "header", name: "mj-api-secret" };
export const NATIVE_URL = "{base}{path}{query}";

export function openai(url: string, more: Partial<Route> = {}): Route {
  return { dialect: "openai-chat", url, ...more };
}

/** A route whose request and answer an adapter makes. */
export function adapted(adapter: string, url: string, more: Partial<Route> = {}): Route {
  return { dialect: "openai-chat", url, adapter, ...more };
}

/** The same OpenAI-shaped address template for several operations. */
export function routes(
  operations: readonly Operation[],
  url = NATIVE_URL,
): Partial<Record<Operation, Route>> {
  const table: Partial<Record<Operation, Route>> = {};
  for (const operation of operations) {
    table[operation] = {
      dialect:
        operation === "responses"
          ? "openai-responses"
          : operation === "messages"
            ? "anthropic"
            : "openai-chat",
      url,
    };
  }
  return table;
}

export const OPENAI_OPERATIONS: readonly Operation[] = [
  "chat",
  "completions",
  "embeddings",
  "moderations",
  "image-generations",
  "image-edits",
  "speech",
  "transcriptions",
  "translations",
  "rerank",
  "responses",
  "realtime",
];
export const OPENAI = routes(OPENAI_OPERATIONS);
/** OpenAI serves these in the Responses API only (its model pages, November 2026): other dialects are converted to it. */
export const RESPONSES_ONLY: ModelRule = {
  except:
    /^(?:o[13]-pro|codex-|gpt-5(?:\.\d)?-(?:pro|codex)|computer-use-preview|o[34](?:-mini)?-deep-research)/,
};
export const AZURE_URL = "{base}/openai/deployments/{model}/{tail}?api-version={version}";
export const OPENAI_MODELS = { url: "{base}/v1/models" } as const;

/** Gemini's own address; `alt=sse` is the only stream form the relay reads. */
export function geminiRoute(version: string, models?: ModelRule): Route {
  return {
    dialect: "gemini",
    url: `{base}/${version}/models/{model}:generateContent`,
    streamUrl: `{base}/${version}/models/{model}:streamGenerateContent?alt=sse`,
    ...(models ? { models } : {}),
  };
}

const REASONING = /^(?:o\d|gpt-5)/;
/** Reasoning models of OpenAI's: their names may carry the effort, their first message has another role. */
export const REASONING_QUIRKS: readonly Quirk[] = [
  { patch: "effort-suffix", models: REASONING, on: ["chat", "responses"] },
  // o1-mini and o1-preview know neither role.
  { patch: "developer-role", models: /^o(?!1-mini|1-preview)\d/, on: ["chat"] },
];

/** The provider makes one picture a call, whatever is asked. */
export const ONE_PICTURE: Quirk = { patch: "refuse-above", field: "n", max: 1, on: ["image-generations"] };

type RowParts = Partial<
  Omit<ProviderRow, "id" | "label" | "group" | "status" | "baseUrl" | "keyHint" | "fields">
> & {
  owner: string;
};

export function row(id: number, parts: RowParts): ProviderRow {
  const form = PROVIDER_FORMS.find((each) => each.id === id);
  if (!form) throw new Error(`channel type ${id} has no entry in provider-forms.ts`);
  return {
    id,
    label: form.label,
    group: form.group,
    status: form.status,
    baseUrl: form.baseUrl,
    keyHint: form.keyHint ?? DEFAULT_KEY_HINT,
    fields: form.fields ?? [],
    auth: BEARER,
    headers: [],
    operations: {},
    hasFullUrl: false,
    sendsOrganization: false,
    asksForStreamUsage: false,
    inlinesImages: false,
    quirks: [],
    countsReasoningInTotal: false,
    balance: "none",
    presetModels: PRESET_MODELS[id] ?? [],
    ...parts,
  };
}

/** An upstream that takes OpenAI's paths below its base address. */
export function openaiRow(id: number, owner: string, parts: Partial<RowParts> = {}): ProviderRow {
  return row(id, { owner, operations: OPENAI, modelsListing: OPENAI_MODELS, ...parts });
}
