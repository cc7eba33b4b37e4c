// How calls fail, as the document tells it: the forms of errors, their statuses and their headers.
// The codes themselves are explained in docs/error-codes.md.
import { exact, integer, nullable, open, ref, text, word } from "./schema.ts";
import type { ErrorForm, Schema } from "./schema.ts";

/** Headers of answers by their names, but for the one with the code. */
const HEADERS = {
  "X-Oneapi-Request-Id": {
    description: "Id of the call, as the log has it.",
    schema: { type: "string" },
  },
  "x-ratelimit-limit-requests": {
    description: "Requests that the narrowest of our own limits allows; none where there is no limit.",
    schema: { type: "integer" },
  },
  "x-ratelimit-remaining-requests": { description: "What is left of them.", schema: { type: "integer" } },
  "x-ratelimit-reset-requests": {
    description: "When all of them are there again.",
    schema: { type: "string", example: "6m0s" },
  },
  "anthropic-ratelimit-requests-limit": {
    description: "Requests that the narrowest of our own limits allows; none where there is no limit.",
    schema: { type: "integer" },
  },
  "anthropic-ratelimit-requests-remaining": {
    description: "What is left of them.",
    schema: { type: "integer" },
  },
  "anthropic-ratelimit-requests-reset": {
    description: "When all of them are there again.",
    schema: { type: "string", format: "date-time" },
  },
  "Retry-After": { description: "Seconds to wait.", schema: { type: "integer" } },
} as const;

/** `components.headers`. `codes`: what the relay's refusals may be. */
export const headersFor = (codes: readonly string[]) => ({
  "x-weir-error-code": {
    description: "Stable code of the refusal, the same in every form; docs/error-codes.md explains each.",
    schema: { type: "string", enum: codes, example: "model_not_found" },
  },
  ...HEADERS,
});

const RELAY_TEXTS: Readonly<Record<number, string>> = {
  400: "The request cannot be understood or served: a field is missing or wrong, the prompt is too long, the model has no price.",
  401: "The API key is missing or not valid.",
  403: "The key, its user, group or address may not do this, or the balance is too low.",
  404: "No channel of the key's group has this model, or there is no such object.",
  408: "The body did not arrive in time.",
  413: "The body is too large.",
  429: "Too many calls, here or upstream.",
  500: "The gateway failed.",
  502: "The upstream failed, or refused the gateway's credentials.",
  503: "The channels that have this model are all off or resting, or the server is busy.",
  504: "The upstream did not answer in time.",
};

const CONSOLE_TEXTS: Readonly<Record<number, string>> = {
  400: "The body cannot be read.",
  401: "Not signed in, or the New-Api-User header is missing or another user's.",
  403: "The role is too low, the user is banned, or a page of another site asks.",
  408: "The body did not arrive in time.",
  413: "The body is too large.",
  429: "Too many calls.",
  500: "The server failed; the message has the id under which its log tells more.",
  503: "The database does not answer.",
};

export const ERROR_SCHEMAS: Readonly<Record<string, Schema>> = {
  Refusal: exact(
    {
      success: { type: "boolean", const: false },
      message: text("What people read, in the caller's language."),
      code: text("Stable; docs/error-codes.md explains each."),
      "field?": text("The refused field, as a path into the body."),
      "request_id?": text(),
    },
    "How the console's calls refuse. Refusals of the call's own come with status 200.",
  ),
  OpenAIError: open(
    {
      error: open({
        message: text("What people read, in the caller's language."),
        type: text(),
        "param?": nullable(text("The refused field.")),
        "code?": { type: ["string", "integer", "null"] },
      }),
    },
    "How OpenAI's endpoints fail.",
  ),
  AnthropicError: open(
    {
      type: word("error"),
      error: open({ type: text("`invalid_request_error`, `not_found_error`, …"), message: text() }),
    },
    "How Anthropic's endpoints fail.",
  ),
  GeminiError: open(
    {
      error: open({
        code: integer("The status."),
        message: text(),
        status: text("`INVALID_ARGUMENT`, `NOT_FOUND`, …"),
      }),
    },
    "How Google's endpoints fail.",
  ),
  MidjourneyError: open(
    { description: text(), type: text(), code: integer("4: of the request, 5: of the upstream.") },
    "How Midjourney's calls fail; what concerns the key has OpenAI's form.",
  ),
  SunoError: open(
    { code: text(), message: text(), data: { type: "null" } },
    "How Suno's calls fail; what concerns the key has OpenAI's form.",
  ),
  PictureError: exact({ error: text() }),
};

const FORM_SCHEMAS: Readonly<Record<ErrorForm, Schema>> = {
  openai: ref("OpenAIError"),
  anthropic: ref("AnthropicError"),
  gemini: ref("GeminiError"),
  anyModelList: { anyOf: [ref("OpenAIError"), ref("AnthropicError"), ref("GeminiError")] },
  midjourney: { anyOf: [ref("MidjourneyError"), ref("OpenAIError")] },
  suno: { anyOf: [ref("SunoError"), ref("OpenAIError")] },
  picture: ref("PictureError"),
};

export const RESPONSES = "#/components/responses/";

const capital = (name: string): string => name.slice(0, 1).toUpperCase() + name.slice(1);

const headersOf = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));

const headerNames = (status: number): string[] => [
  "X-Oneapi-Request-Id",
  ...(status === 429 || status === 503 ? ["Retry-After"] : []),
];

/** Headers that tell a client its own limit, by the form that it reads; relay/wire/rate-headers.ts sends them. */
const LIMITS: Partial<Record<string, readonly string[]>> = {
  openai: ["limit", "remaining", "reset"].map((each) => `x-ratelimit-${each}-requests`),
  anthropic: ["limit", "remaining", "reset"].map((each) => `anthropic-ratelimit-requests-${each}`),
};

/** What stands above a good answer. Calls with a body are those that limits count. */
export function goodHeaders(form: ErrorForm | "console", hasBody: boolean) {
  return headersOf(["X-Oneapi-Request-Id", ...(hasBody ? (LIMITS[form] ?? []) : [])]);
}

const entryOf = (prefix: string, status: number): string => `${prefix}${status}`;

/** `components.responses`: one per form and status, those that some call refers to. */
export function errorResponses(isUsed: (name: string) => boolean): Record<string, object> {
  const responses: Record<string, object> = {};
  for (const [form, schema] of Object.entries(FORM_SCHEMAS))
    for (const [status, description] of Object.entries(RELAY_TEXTS))
      responses[entryOf(capital(form), Number(status))] = {
        description,
        headers: headersOf([
          "x-weir-error-code",
          ...headerNames(Number(status)),
          ...(status === "429" ? (LIMITS[form] ?? []) : []),
        ]),
        content: { "application/json": { schema } },
      };
  for (const [status, description] of Object.entries(CONSOLE_TEXTS))
    responses[entryOf("Console", Number(status))] = {
      description,
      headers: headersOf(headerNames(Number(status))),
      content: { "application/json": { schema: ref("Refusal") } },
    };
  return Object.fromEntries(Object.entries(responses).filter(([name]) => isUsed(name)));
}

const refsTo = (prefix: string, statuses: readonly number[]) =>
  Object.fromEntries(
    statuses.map((status) => [String(status), { $ref: `${RESPONSES}${entryOf(prefix, status)}` }]),
  );

/** How a call of the relay fails. */
export function relayErrors(form: ErrorForm, hasBody: boolean): Record<string, object> {
  if (form === "picture") return refsTo(capital(form), [400, 404, 500, 503]);
  return refsTo(
    capital(form),
    hasBody ? Object.keys(RELAY_TEXTS).map(Number) : [400, 401, 403, 404, 429, 500, 502, 503],
  );
}

/** How a call of the console fails: strangers are not turned away where the call is open to them. */
export function consoleErrors(isOpen: boolean, hasBody: boolean): Record<string, object> {
  return refsTo("Console", [
    ...(hasBody ? [400] : []),
    ...(isOpen ? [] : [401]),
    403,
    ...(hasBody ? [408, 413] : []),
    429,
    500,
    503,
  ]);
}

/** Whether the call succeeded stands in its answer. */
export const refusable = (schema: Schema): Schema => ({ anyOf: [schema, ref("Refusal")] });
