// The OpenAPI document and `bun run routes`: both must say of every route what is true of it.
// Refuses a list of its own: the routes of the running application are the measure.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { accessOf } from "../../src/http/session.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";

interface Operation {
  security: Record<string, string[]>[];
  parameters: { name: string; in: string }[];
  responses: Record<string, unknown>;
  requestBody?: { content: Record<string, { schema: { properties: object; required?: string[] } }> };
}
interface Document {
  openapi: string;
  info: { description: string };
  components: { securitySchemes: Record<string, unknown> };
  paths: Record<string, Record<string, Operation>>;
}

let app: TestApp;
let document: Document;

beforeAll(async () => {
  app = await startTestApp({});
  document = (await (await fetch(`${app.url}/openapi.json`)).json()) as Document;
});
afterAll(() => app.close());

/** As the document writes a path. */
const written = (path: string) => path.replace(/:(\w+)/g, "{$1}").replace("*", "{path}");

describe("the OpenAPI document", () => {
  test("tells the codes of refusals", () => {
    expect(document.info.description).toContain("x-weir-error-code");
    expect(document.info.description).toContain("| `model_not_found` | 404 | ");
  });

  test("has every call of the console and the relay, with the permission that the route enforces, and nothing else", async () => {
    const routes = (await createApp(app.services)).routes.filter(
      ({ method, path }) =>
        method !== "OPTIONS" && /^\/(api\/|v1|v2\/|pg\/|mj\/|suno\/|dashboard\/|:mode\/mj\/)/.test(path),
    );
    expect(routes.length).toBeGreaterThan(100);
    const listed = new Set<string>();
    for (const route of routes) {
      const path = written(route.path);
      const operation = document.paths[path]?.[route.method.toLowerCase()];
      expect([route.method, path, operation === undefined]).toEqual([route.method, path, false]);
      listed.add(`${route.method} ${path}`);
      const access = accessOf(route);
      const schemes = operation?.security?.map((each) => Object.keys(each)[0]) ?? [];
      const roles = operation?.security?.flatMap((each) => each["session"] ?? []) ?? [];
      const expected =
        access === "relay key"
          ? [["apiKey"], []]
          : access === "session, by the relay"
            ? [["session"], ["session"]]
            : ["user", "admin", "root"].includes(access)
              ? [["session", "accessToken"], [access]]
              : [[], []];
      expect([route.path, schemes, roles]).toEqual([route.path, ...expected] as [string, string[], string[]]);
    }
    const all = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(new Set(all)).toEqual(listed);
  });

  test("names every parameter of a path, an answer for every call, and every scheme it refers to", () => {
    for (const [path, item] of Object.entries(document.paths)) {
      for (const operation of Object.values(item)) {
        const named = operation.parameters.filter((each) => each.in === "path").map(({ name }) => name);
        expect([path, new Set(named)]).toEqual([
          path,
          new Set([...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "")),
        ]);
        expect(Object.keys(operation.responses)).toContain("200");
        for (const scheme of (operation.security ?? []).flatMap((each) => Object.keys(each)))
          expect(document.components.securitySchemes).toHaveProperty(scheme);
      }
    }
  });

  test("describes bodies by the schemas that check them", () => {
    const body = document.paths["/api/user/manage"]?.["post"]?.requestBody?.content["application/json"];
    expect(Object.keys(body?.schema.properties ?? {})).toEqual(["id", "action"]);
    expect(body?.schema.required).toEqual(["id", "action"]);
  });
});

test("the list of routes names a file for every one", () => {
  const ran = Bun.spawnSync([process.execPath, "scripts/routes.ts"], { stdout: "pipe" });
  const lines = ran.stdout.toString().trim().split("\n");
  expect(ran.exitCode).toBe(0);
  expect(lines.length).toBeGreaterThan(120);
  expect(lines.filter((line) => !/ src\/[\w/.-]+\.tsx?$/.test(line) || / undeclared /.test(line))).toEqual(
    [],
  );
  expect(lines.find((line) => /^POST\s+\/mj\/submit\/:kind /.test(line))).toContain("relay/midjourney.ts");
});
