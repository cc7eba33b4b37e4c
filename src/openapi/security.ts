// Who may call, as the document tells it: the forms in which keys and sessions are shown, and which of them a path expects.
// The gateway takes a key in every form on every path; the document names the one that the path's own clients use.

export const SECURITY_SCHEMES = {
  session: {
    type: "apiKey",
    in: "cookie",
    name: "session",
    description: "Set by POST /api/user/login. The scope is the least role that is let in.",
  },
  userId: {
    type: "apiKey",
    in: "header",
    name: "New-Api-User",
    description: "Id of the signed-in user; must match the session or the access token.",
  },
  accessToken: { type: "http", scheme: "bearer", description: "System access token of GET /api/user/token." },
  apiKey: { type: "http", scheme: "bearer", description: "API key sk-…, as OpenAI's clients send it." },
  anthropicKey: {
    type: "apiKey",
    in: "header",
    name: "x-api-key",
    description: "API key sk-…, as Anthropic's clients send it.",
  },
  googleKey: {
    type: "apiKey",
    in: "header",
    name: "x-goog-api-key",
    description: "API key sk-…, as Google's clients send it.",
  },
  keyInQuery: {
    type: "apiKey",
    in: "query",
    name: "key",
    description:
      "API key sk-…, as scripts for Google's API send it. Every path of the relay takes it; those that also take a header do not name it, so that no generated client puts a key into an address.",
  },
  midjourneySecret: {
    type: "apiKey",
    in: "header",
    name: "mj-api-secret",
    description: "API key sk-…, as clients of Midjourney's proxies send it.",
  },
  realtimeKey: {
    type: "apiKey",
    in: "header",
    name: "Sec-WebSocket-Protocol",
    description: "API key as the sub-protocol openai-insecure-api-key.sk-…, as browsers send it.",
  },
} as const;

type Scheme = keyof typeof SECURITY_SCHEMES;

/** For calls of the console that ask for an API key in place of a session. */
export const byKey = (scheme: Scheme): Record<string, string[]>[] => [{ [scheme]: [] }];

/** Besides the bearer key, by the beginning of the path. */
const OTHER_FORMS: readonly (readonly [RegExp, readonly Scheme[]])[] = [
  [/^\/v1\/messages/, ["anthropicKey"]],
  // Google's header would also choose the form of the answer, and generated clients send a key in every form that is named.
  [/^(\/v1)?\/models(\/\{model\})?$/, ["anthropicKey"]],
  [/^\/(?:v1beta|v1\/models\/\{model\}:)/, ["googleKey"]],
  [/^\/(?:mj|\{mode\})\//, ["midjourneySecret"]],
  [/^\/v1\/realtime$/, ["realtimeKey"]],
];

/** The forms of the key that a path's clients use; what takes no key keeps what its route declares. */
export function keyed(path: string, declared: Record<string, string[]>[]): Record<string, string[]>[] {
  if (!declared.some((each) => "apiKey" in each)) return declared;
  const others = OTHER_FORMS.find(([pattern]) => pattern.test(path))?.[1] ?? [];
  return ["apiKey", ...others].map((scheme) => ({ [scheme]: [] }));
}
