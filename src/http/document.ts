// The OpenAPI document at /openapi.json, made from what the routes declare: paths, fields, and who may call.
// Refuses pages and files a place in it; its usual viewer is loaded from elsewhere, which this product never does.
import { Elysia } from "elysia";
import type { AnyElysia } from "elysia";
import { errorCodesMarkdown } from "./error-codes.ts";
import { checkedBy } from "./session.ts";

export const DOCUMENT_PATH = "/openapi.json";

/** Everything but the console's calls and the relay's. */
const NOT_AN_API = /^\/(?!api\/|v1|v2\/|pg\/|mj\/|suno\/|dashboard\/|:mode\/mj\/)/;

const SECURITY_SCHEMES = {
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
  apiKey: { type: "http", scheme: "bearer", description: "API key sk-…, as the official clients send it." },
};

interface Operation {
  security?: Record<string, string[]>[];
  parameters?: { name: string; in: string; required?: boolean; schema: object }[];
  responses?: Record<string, { description: string }>;
  [field: string]: unknown;
}

const REFUSALS: Record<string, string> = {
  401: "Not signed in, or the New-Api-User header is missing or another user's.",
  403: "The role is too low, or the user is banned.",
};

/** What the framework does not tell: the answers' common form, bodies that it does not parse, the rest of a path. */
function completed(path: string, operation: Operation, body: unknown): Operation {
  const schemes = operation.security?.map((each) => Object.keys(each)).flat() ?? [];
  const isConsole = path.startsWith("/api/");
  const responses: Operation["responses"] = {
    200: {
      description: isConsole
        ? "{success, message, data}; a refusal of the call's own has success false, a message and a code."
        : "The answer in the protocol of the path; errors have its form and an HTTP status.",
    },
  };
  if (schemes.includes("session"))
    for (const [status, text] of Object.entries(REFUSALS)) responses[status] = { description: text };
  if (schemes.includes("apiKey")) responses[401] = { description: "The API key is missing or not valid." };
  const rest = path.includes("*")
    ? [{ name: "path", in: "path", required: true, schema: { type: "string" } }]
    : [];
  const content = { "application/json": { schema: body } };
  return {
    ...operation,
    parameters: [...(operation.parameters ?? []), ...rest],
    ...(body === undefined ? {} : { requestBody: { required: true, content } }),
    responses,
  };
}

/** The document of the routes that `app` has at the first request. */
async function documentOf(app: AnyElysia, version: string): Promise<object> {
  // Loaded with the first request for it: few servers ever get one.
  const { toOpenAPISchema } = await import("@elysiajs/openapi");
  const { paths, components } = toOpenAPISchema(app, { methods: ["OPTIONS"], paths: [NOT_AN_API] });
  const bodies = new Map<string, unknown>();
  for (const { method, path, hooks } of app.routes)
    bodies.set(`${method} ${path.replace(/:(\w+)/g, "{$1}")}`, (hooks as { body?: unknown }).body);
  const complete: Record<string, Record<string, Operation>> = {};
  for (const [path, item] of Object.entries(paths as Record<string, Record<string, Operation>>)) {
    const operations: Record<string, Operation> = {};
    for (const [method, operation] of Object.entries(item))
      operations[method] = completed(path, operation, bodies.get(`${method.toUpperCase()} ${path}`));
    complete[path.replace("*", "{path}")] = operations;
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Weir",
      version,
      description: `REST calls of the console, and the relay. Every refusal of the relay carries a stable code in the header x-weir-error-code:\n\n${errorCodesMarkdown()}`,
    },
    components: { ...components, securitySchemes: SECURITY_SCHEMES },
    paths: complete,
  };
}

/** `app` is asked when somebody wants the document: it lists routes that are mounted after this plugin, too. */
export function openapiDocument(app: () => AnyElysia, version: string) {
  let text: string | undefined;
  return new Elysia().get(
    DOCUMENT_PATH,
    async () =>
      new Response((text ??= JSON.stringify(await documentOf(app(), version))), {
        headers: {
          "content-type": "application/json;charset=utf-8",
          "cache-control": "no-cache",
          "x-content-type-options": "nosniff",
        },
      }),
    checkedBy("nobody: list of routes"),
  );
}
