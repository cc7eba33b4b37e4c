// The few words that the document's tables are written in: JSON Schema by hand, and what a row of a table says.

export type Schema = { readonly [keyword: string]: unknown };

/** The areas of the document, in the order that readers meet them. */
export const TAGS = {
  Chat: "Conversations and completions in OpenAI's older form.",
  Responses: "OpenAI's Responses API, for every model.",
  Messages: "Anthropic's Messages API, for every model.",
  Gemini: "Google's generateContent API, for every model.",
  Vectors: "Embeddings, moderation and reranking.",
  Images: "Pictures from words and from pictures.",
  Audio: "Speech and its transcription.",
  Realtime: "Sessions over a WebSocket.",
  Models: "What a key may use.",
  Midjourney: "Drawing tasks in the form of Midjourney's proxies.",
  Suno: "Songs and lyrics as tasks.",
  Billing: "What a key may spend and has spent.",
  Site: "Status, notices, first-run setup and options of the site.",
  Account: "Sign-in and the own account.",
  Wallet: "Codes, invitations and the own settings.",
  Plans: "What is sold for a time: quota for each period, and a group.",
  Keys: "The caller's own API keys.",
  Usage: "The usage log and its figures.",
  Tasks: "Drawing and song tasks of the console.",
  Catalogue: "Models, groups and prices.",
  Prices: "Changes of prices: planned, applied, undone.",
  Users: "Administration of users.",
  Channels: "Administration of upstream channels.",
  Codes: "Administration of redemption codes.",
} as const;

type Tag = keyof typeof TAGS;

/** In whose form a call's errors are written; one entry each in errors.ts. */
export type ErrorForm =
  "openai" | "anthropic" | "gemini" | "anyModelList" | "midjourney" | "suno" | "picture";

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required?: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
}

export interface Content {
  readonly schema: Schema;
  readonly example?: unknown;
}

/** A call of the console. Its answer comes from the route's types, its body's schema from the route. */
export interface ConsoleOperation {
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** A body that the route accepts; there is one exactly where the route has a schema for it. */
  readonly body?: unknown;
  /** What may come back. */
  readonly answer?: unknown;
  /** A file in place of JSON: what a line of it is. */
  readonly csv?: string;
  /** How an API key is shown, where the call is open but for one. */
  readonly key?: "apiKey" | "keyInQuery";
  /** What a query field means here, where it differs from its usual meaning in parameters.ts. */
  readonly fields?: Readonly<Record<string, string>>;
}

/** A call of the relay: all of it is said here, because its bytes are passed on and not checked by a schema. */
export interface RelayOperation {
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** The route that serves it, where its path is written otherwise: "POST /v1beta/models/*". */
  readonly route?: string;
  readonly parameters?: readonly Parameter[];
  readonly body?: { readonly type?: string; readonly schema: Schema; readonly example: unknown };
  /** Media type → what comes back with status 200; none: an empty answer. */
  readonly answer: Readonly<Record<string, Content>>;
  readonly errors: ErrorForm;
  /** Status of the good answer where it is not 200. */
  readonly status?: number;
  readonly answerDescription?: string;
}

export interface RelayArea {
  readonly schemas: Readonly<Record<string, Schema>>;
  readonly operations: Readonly<Record<string, RelayOperation>>;
}

export const JSON_TYPE = "application/json";
export const EVENT_STREAM = "text/event-stream";
export const FORM_TYPE = "multipart/form-data";

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });

const described = (description: string | undefined): Schema =>
  description === undefined ? {} : { description };

export const text = (description?: string, more: Schema = {}): Schema => ({
  type: "string",
  ...described(description),
  ...more,
});
export const number = (description?: string, more: Schema = {}): Schema => ({
  type: "number",
  ...described(description),
  ...more,
});
export const integer = (description?: string, more: Schema = {}): Schema => ({
  type: "integer",
  ...described(description),
  ...more,
});
export const flag = (description?: string): Schema => ({ type: "boolean", ...described(description) });
export const list = (items: Schema, description?: string): Schema => ({
  type: "array",
  items,
  ...described(description),
});
/** One certain text: the field that tells kinds of objects apart. */
export const word = (value: string): Schema => ({ type: "string", const: value });
export const oneOf = (values: readonly (string | number)[], description?: string): Schema => ({
  type: typeof values[0] === "number" ? "integer" : "string",
  enum: values,
  ...described(description),
});
/** Anything that the upstream may say. */
export const anything = (description?: string): Schema => described(description);
export const either = (...schemas: readonly Schema[]): Schema => ({ anyOf: schemas });
export const nullable = (schema: Schema): Schema =>
  typeof schema["type"] === "string" && !("enum" in schema) && !("const" in schema)
    ? { ...schema, type: [schema["type"], "null"] }
    : { anyOf: [schema, { type: "null" }] };

/** An object of which the main fields are known; a name that ends in "?" may be absent, and others may stand beside. */
export function open(fields: Readonly<Record<string, Schema>>, description?: string): Schema {
  return { ...members(fields), additionalProperties: true, ...described(description) };
}

/** An object of ours: it has these fields and no others. */
export function exact(fields: Readonly<Record<string, Schema>>, description?: string): Schema {
  return { ...members(fields), ...described(description) };
}

function members(fields: Readonly<Record<string, Schema>>): Schema {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const [name, schema] of Object.entries(fields)) {
    const bare = name.replace(/\?$/, "");
    properties[bare] = schema;
    if (bare === name) required.push(name);
  }
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

/** A whole answer, and the same as a stream of events where the body asks for it. */
export const wholeOrStreamed = (whole: Content, event: Schema): Readonly<Record<string, Content>> => ({
  [JSON_TYPE]: whole,
  [EVENT_STREAM]: { schema: event },
});

export const modelInPath: Parameter = {
  name: "model",
  in: "path",
  required: true,
  description: "Name of the model; its slashes may be written as %2F.",
  schema: { type: "string" },
};

/** The same calls for clients whose base address was given without its version: Codex and others. */
export const withoutVersion = (
  rows: Readonly<Record<string, RelayOperation>>,
): Record<string, RelayOperation> =>
  Object.fromEntries(
    Object.entries(rows).map(([name, row]) => [
      name.replace(" /v1/", " /"),
      { ...row, summary: `${row.summary}, at an address without its version` },
    ]),
  );
