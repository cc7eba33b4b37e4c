// Puts the document together: what the routes declare, what the tables here say of each, and what their types answer.
// Refuses nothing: a call without a row stands in it bare, and test/http/document.test.ts names it.
import { toOpenAPISchema } from "@elysiajs/openapi";
import type { AnyElysia } from "elysia";
import generated from "./console-answers.json" with { type: "json" };
import { channels } from "./console/channels.ts";
import { config } from "./console/config.ts";
import { PARAMETERS } from "./console/parameters.ts";
import { people } from "./console/people.ts";
import { prices } from "./console/prices.ts";
import { site } from "./console/site.ts";
import { usage } from "./console/usage.ts";
import { declaredSchema } from "./declared-schema.ts";
import {
  consoleErrors,
  ERROR_SCHEMAS,
  errorResponses,
  goodHeaders,
  headersFor,
  refusable,
  relayErrors,
  RESPONSES,
} from "./errors.ts";
import { chat, vectors } from "./relay/chat.ts";
import { media } from "./relay/media.ts";
import { gemini, messages, responses } from "./relay/native.ts";
import { billing, models, tasks } from "./relay/others.ts";
import { JSON_TYPE, TAGS } from "./schema.ts";
import type { ConsoleOperation, Parameter, RelayArea, RelayOperation, Schema } from "./schema.ts";
import { byKey, keyed, SECURITY_SCHEMES } from "./security.ts";

/** Everything but the console's calls and the relay's. */
const NOT_AN_API = /^\/(?!api\/|v1|v2\/|pg\/|mj\/|suno\/|dashboard\/|:mode\/mj\/|responses|models$)/;

const CONSOLE: Readonly<Record<string, ConsoleOperation>> = {
  ...people,
  ...site,
  ...prices,
  ...config,
  ...channels,
  ...usage,
};
const AREAS: readonly RelayArea[] = [
  chat,
  vectors,
  responses,
  messages,
  gemini,
  media,
  models,
  billing,
  tasks,
];
const RELAY: Readonly<Record<string, RelayOperation>> = Object.assign(
  {},
  ...AREAS.map((each) => each.operations),
);
const ANSWERS: Readonly<Record<string, Schema>> = generated.answers;

/** What the tables tell of, by the calls' names. */
export const documentedNames = (): string[] => [...Object.keys(CONSOLE), ...Object.keys(RELAY)];

/** Calls that clients know and the gateway refuses, with the status of it: nothing is to be generated for them. */
export const NOT_SERVED: ReadonlyMap<string, number> = new Map([
  ["GET /v1/responses", 405],
  ["GET /responses", 405],
  ["DELETE /v1/models/*", 501],
  ["POST /v1/images/variations", 501],
  ["GET /v1/files", 501],
  ["POST /v1/files", 501],
  ["GET /v1/files/:id", 501],
  ["DELETE /v1/files/:id", 501],
  ["GET /v1/files/:id/content", 501],
  ["GET /v1/fine-tunes", 501],
  ["POST /v1/fine-tunes", 501],
  ["GET /v1/fine-tunes/:id", 501],
  ["POST /v1/fine-tunes/:id/cancel", 501],
  ["GET /v1/fine-tunes/:id/events", 501],
]);

/** What the framework's document says of a call. */
interface Declared {
  security?: Record<string, string[]>[];
  parameters?: Parameter[];
}

export interface DocumentSettings {
  version: string;
  /** As the operator set it; "" = not set. */
  serverAddress: string;
  /** The table of the relay's codes in Markdown, and their names. */
  errorCodes: { table: string; names: readonly string[] };
}

const INTRODUCTION = `One gateway for the clients of OpenAI, Anthropic and Google, and the console's own calls.

**The relay** (/v1, /v1beta, /mj, /suno) takes API keys and answers in the form of the path. Errors have its form, an HTTP
status and the header \`x-weir-error-code\`. Every inference call takes \`X-Max-Cost\` (dollars, at most six decimals) or
\`X-Max-Quota\` (units), above which it is never charged (else 402 \`max_cost_exceeded\`), and \`X-Quote\`, the id of a quote
(\`POST /v1/quote\`) whose prices it keeps; whole answers tell their cost in dollars in \`x-weir-cost\`. **The console** (/api) takes a session or an access token and answers
\`{success, message, data}\`; a refusal of a call's own has status 200, \`success\` false and a \`code\`.`;

/** The document of the routes that `app` has now. */
export function buildDocument(app: AnyElysia, settings: DocumentSettings): object {
  const { paths } = toOpenAPISchema(app, { methods: ["OPTIONS"], paths: [NOT_AN_API] });
  const declared = paths as Record<string, Record<string, Declared>>;
  const bodies = new Map<string, Schema | undefined>();
  for (const { method, path, hooks } of app.routes)
    bodies.set(`${method} ${path}`, (hooks as { body?: Schema }).body);
  const rowsOfRoute = Map.groupBy(Object.entries(RELAY), ([name, row]) => row.route ?? name);
  const documented: Record<string, Record<string, object>> = {};
  for (const { method, path } of app.routes) {
    const written = path.replace(/:(\w+)/g, "{$1}");
    const own = declared[written]?.[method.toLowerCase()];
    if (!own || NOT_SERVED.has(`${method} ${path}`)) continue;
    const body = bodies.get(`${method} ${path}`);
    const name = `${method} ${written}`;
    const relayRows = rowsOfRoute.get(name) ?? [];
    for (const [rowName, row] of relayRows) {
      const [, rowPath = ""] = rowName.split(" ");
      (documented[rowPath] ??= {})[method.toLowerCase()] = relayOperation(rowName, row, own);
    }
    if (relayRows.length > 0) continue;
    (documented[written] ??= {})[method.toLowerCase()] = consoleOperation(name, own, body);
  }
  const used = new Set(
    [...JSON.stringify(documented).matchAll(/"\$ref":"([^"]*)"/g)].map(([, name]) => name),
  );
  return {
    openapi: "3.1.0",
    info: {
      title: "Weir",
      version: settings.version,
      description: `${INTRODUCTION}\n\n${settings.errorCodes.table}`,
      license: { name: "Unlicensed", identifier: "LicenseRef-UNLICENSED" },
    },
    servers: [
      { url: "/", description: "This server" },
      ...(settings.serverAddress === ""
        ? []
        : [{ url: settings.serverAddress, description: "As its operator names it" }]),
    ],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    components: {
      securitySchemes: SECURITY_SCHEMES,
      headers: headersFor(settings.errorCodes.names),
      responses: errorResponses((name) => used.has(`${RESPONSES}${name}`)),
      schemas: {
        ...generated.schemas,
        ...ERROR_SCHEMAS,
        ...Object.assign({}, ...AREAS.map((each) => each.schemas)),
      },
    },
    paths: documented,
  };
}

/** `postV1ChatCompletions`, `getApiTokenById`: what generated clients call their functions. */
function operationIdOf(name: string): string {
  const [method = "", path = ""] = name.split(" ");
  const pieces = path.replace(/\{(\w+)\}/g, "/by/$1").split(/[^A-Za-z0-9]+/);
  return method.toLowerCase() + pieces.map((each) => each.slice(0, 1).toUpperCase() + each.slice(1)).join("");
}

function relayOperation(name: string, row: RelayOperation, own: Declared): object {
  const { tag, summary, description, parameters = [], body, answer, errors, status = 200 } = row;
  const [, path = ""] = name.split(" ");
  return {
    operationId: operationIdOf(name),
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: keyed(path, own.security ?? []),
    parameters,
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { [body.type ?? JSON_TYPE]: { schema: body.schema, example: body.example } },
          },
        }),
    responses: {
      [String(status)]: {
        description: row.answerDescription ?? "The answer.",
        headers: goodHeaders(errors, body !== undefined),
        ...(Object.keys(answer).length === 0 ? {} : { content: answer }),
      },
      ...relayErrors(errors, body !== undefined),
    },
  };
}

const exampleOf = (example: unknown) => (example === undefined ? {} : { example });

function consoleOperation(name: string, own: Declared, body: Schema | undefined): object {
  const row = CONSOLE[name];
  const security = row?.key === undefined ? (own.security ?? []) : byKey(row.key);
  // The types know their paths without a slash at the end, and parameters with a colon.
  const answer = ANSWERS[name.replace(/\/$/, "").replace(/\{(\w+)\}/g, ":$1")];
  return {
    operationId: operationIdOf(name),
    ...(row === undefined ? {} : { tags: [row.tag], summary: row.summary }),
    ...(row?.description === undefined ? {} : { description: row.description }),
    security,
    parameters: (own.parameters ?? []).map((each) => ({
      ...each,
      schema: declaredSchema(each.schema),
      description: row?.fields?.[each.name] ?? PARAMETERS[each.name] ?? "",
    })),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: {
              [JSON_TYPE]: { schema: declaredSchema(body), ...exampleOf(row?.body) },
            },
          },
        }),
    responses: {
      200: {
        description: "The answer, or a refusal of the call's own.",
        headers: goodHeaders("console", false),
        ...(row?.csv === undefined
          ? {}
          : { content: { "text/csv": { schema: { type: "string", description: row.csv } } } }),
        ...(row?.file === undefined
          ? {}
          : { content: { [JSON_TYPE]: { schema: { type: "object", description: row.file } } } }),
        ...(answer === undefined
          ? {}
          : { content: { [JSON_TYPE]: { schema: refusable(answer), ...exampleOf(row?.answer) } } }),
      },
      ...consoleErrors(security.length === 0, body !== undefined),
    },
  };
}
