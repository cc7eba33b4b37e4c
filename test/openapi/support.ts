// The document of a running application, and whether real answers are what it says: a field that it does not name fails.
import Ajv2020 from "ajv/dist/2020.js";
import { expect } from "bun:test";

export type Schema = Record<string, unknown>;

interface Content {
  schema: Schema;
  example?: unknown;
}

export interface Operation {
  operationId: string;
  summary?: string;
  tags?: string[];
  security: Record<string, string[]>[];
  parameters: { name: string; in: string; description?: string }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { $ref?: string; content?: Record<string, Content> }>;
}

export interface Document {
  openapi: string;
  servers: { url: string }[];
  info: { description: string };
  components: {
    headers: Record<string, { schema: { enum?: string[] } }>;
    securitySchemes: Record<string, unknown>;
    responses: Record<string, { headers: Record<string, unknown>; content: Record<string, Content> }>;
    schemas: Record<string, Schema>;
  };
  paths: Record<string, Record<string, Operation>>;
}

export async function documentAt(url: string): Promise<Document> {
  return (await (await fetch(`${url}/openapi.json`)).json()) as Document;
}

export interface NamedOperation {
  /** "GET /api/token/{id}" */
  name: string;
  method: string;
  path: string;
  operation: Operation;
}

export function operationsOf(document: Document): NamedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
}

const isObject = (value: unknown): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The schema without a door: whatever is not said to be open holds the fields that it names and no others. */
function closed(schema: unknown, isMember = false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => closed(each));
  if (!isObject(schema)) return schema;
  const own = Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => [
      keyword,
      ["const", "enum", "example", "default"].includes(keyword)
        ? value
        : closed(value, keyword === "properties" || keyword === "schemas"),
    ]),
  );
  const isNamed = !isMember && isObject(schema["properties"]) && schema["type"] === "object";
  return isNamed && !("additionalProperties" in schema) ? { ...own, additionalProperties: false } : own;
}

/** Which answers of which call were looked at, and whether they are what the document says. */
export class Measure {
  readonly seen = new Set<string>();
  private readonly ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });

  private readonly checks = new Map<string, ReturnType<Ajv2020["compile"]>>();

  constructor(readonly document: Document) {
    const schemas = closed(document.components.schemas, true);
    this.ajv.addSchema({ $id: "document", components: { schemas } });
  }

  /** What is wrong with the value; nothing where it is as the schema says. */
  problems(schema: Schema, value: unknown): string[] {
    const text = JSON.stringify(closed(schema)).replaceAll('"#/components/', '"document#/components/');
    const check = this.checks.get(text) ?? this.ajv.compile(JSON.parse(text) as Schema);
    this.checks.set(text, check);
    return check(value) ? [] : (check.errors ?? []).map((each) => `${each.instancePath} ${each.message}`);
  }

  operation(name: string): Operation {
    const [method = "", path = ""] = name.split(" ");
    const found = this.document.paths[path]?.[method.toLowerCase()];
    if (!found) throw new Error(`the document has no ${name}`);
    return found;
  }

  /** The schema of an answer with this status and media type. */
  schemaOf(name: string, status: number, type: string): Schema {
    const response = this.operation(name).responses[String(status)];
    const content = response?.$ref
      ? this.document.components.responses[response.$ref.split("/").at(-1) ?? ""]?.content
      : response?.content;
    const found = content?.[type];
    if (!found) throw new Error(`${name}: the document knows no answer ${status} of ${type}`);
    return found.schema;
  }

  /** Fails unless the document describes this answer of the call. */
  expectAnswer(name: string, status: number, body: unknown, type = "application/json"): void {
    this.seen.add(name);
    const wrong = this.problems(this.schemaOf(name, status, type), body);
    if (wrong.length > 0)
      expect([name, status, wrong.slice(0, 8), JSON.stringify(body).slice(0, 1500)]).toEqual([
        name,
        status,
        [],
        "",
      ]);
  }

  /** Fails unless the document lets this body be sent; a form's fields are texts and files of any kind. */
  expectBody(name: string, body: unknown): void {
    const content = this.operation(name).requestBody?.content ?? {};
    const [type = ""] = Object.keys(content);
    expect([name, body === undefined]).toEqual([name, type === ""]);
    if (body === undefined) return;
    const sent =
      body instanceof FormData ? Object.fromEntries([...body].map(([key]) => [key, "text"])) : body;
    expect([name, this.problems(content[type]?.schema ?? {}, sent)]).toEqual([name, []]);
  }
}
