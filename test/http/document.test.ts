// The OpenAPI document and `bun run routes`: both must say of every route what is true of it.
// Refuses a list of its own: the routes of the running application are the measure.
import { lintFromString, loadConfig } from "@redocly/openapi-core";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import { accessOf } from "../../src/http/session.ts";
import answersOfTypes from "../../src/openapi/console-answers.json" with { type: "json" };
import { documentedNames, NOT_SERVED } from "../../src/openapi/build.ts";
import { documentAt, Measure, operationsOf } from "../openapi/support.ts";
import type { Document } from "../openapi/support.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";

const OWN_ADDRESS = "https://weir.example.org";

let app: TestApp;
let document: Document;

beforeAll(async () => {
  app = await startTestApp({});
  document = await documentAt(app.url);
});
afterAll(() => app.close());

/** As the document writes a path. */
const written = (path: string) => path.replace(/:(\w+)/g, "{$1}");

/** What a route is called in the document: those that take a model's name and an action are several calls. */
function namesOf(method: string, path: string): string[] {
  if (!path.endsWith("/models/*")) return [`${method} ${written(path)}`];
  const model = `${method} ${path.replace("*", "{model}")}`;
  if (method !== "POST") return [model];
  const actions = ["generateContent", "streamGenerateContent", "countTokens", "embedContent"];
  return [...actions, "batchEmbedContents"].map((action) => `${model}:${action}`);
}

/** Open routes that look at a key by themselves, and its form. */
const BY_KEY: Readonly<Record<string, string>> = {
  "GET /api/log/token": "keyInQuery",
  "GET /api/usage/token": "apiKey",
};

/** The forms of a key that a path's clients use. */
function keysOf(path: string): string[] {
  if (path.startsWith("/v1/messages")) return ["apiKey", "anthropicKey"];
  if (path === "/v1/realtime") return ["apiKey", "realtimeKey"];
  if (/^\/(mj|\{mode\})\//.test(path)) return ["apiKey", "midjourneySecret"];
  if (path.startsWith("/v1beta") || path.includes(":")) return ["apiKey", "googleKey"];
  return /^(\/v1)?\/models/.test(path) ? ["apiKey", "anthropicKey"] : ["apiKey"];
}

describe("the OpenAPI document", () => {
  test("has every call of the console and the relay, with the permission that the route enforces, and nothing else", async () => {
    const routes = (await createApp(app.services)).routes.filter(
      ({ method, path }) =>
        method !== "OPTIONS" &&
        !NOT_SERVED.has(`${method} ${path}`) &&
        /^\/(api\/|v1|v2\/|pg\/|mj\/|suno\/|dashboard\/|:mode\/mj\/|responses|models$)/.test(path),
    );
    expect(routes.length).toBeGreaterThan(100);
    const operations = new Map(operationsOf(document).map((each) => [each.name, each]));
    const listed = new Set<string>();
    for (const route of routes) {
      for (const name of namesOf(route.method, route.path)) {
        const known = operations.get(name);
        expect([name, known === undefined]).toEqual([name, false]);
        listed.add(name);
        const access = accessOf(route);
        const security = known?.operation.security ?? [];
        const schemes = security.map((each) => Object.keys(each)[0] ?? "");
        const roles = security.flatMap((each) => each["session"] ?? []);
        const expected =
          access === "relay key"
            ? [keysOf(known?.path ?? ""), []]
            : access === "session" || access === "session, by the relay"
              ? [["session"], ["session"]]
              : ["user", "admin", "root"].includes(access)
                ? [["session", "accessToken"], [access]]
                : [name in BY_KEY ? [BY_KEY[name]] : [], []];
        expect([name, schemes, roles]).toEqual([name, ...expected] as [string, string[], string[]]);
      }
    }
    expect(new Set(operations.keys())).toEqual(listed);
    expect(new Set(documentedNames())).toEqual(listed);
  });

  test("leaves out only what is refused, whoever calls", async () => {
    const { key } = await app.createToken((await app.createUser()).id);
    for (const [name, status] of NOT_SERVED) {
      const [method = "", path = ""] = name.split(" ");
      const headers = { authorization: `Bearer ${key}` };
      const answer = await fetch(app.url + path.replace(/:id|\*/, "x"), { method, headers });
      expect([name, answer.status]).toEqual([name, status]);
    }
  });

  // A new route needs a row in src/openapi/console/ or src/openapi/relay/: CONTRIBUTING.md, "Add a route".
  test("says of every call what it is for, who may call it, what it takes with an example, and how it answers and fails", () => {
    const measure = new Measure(document);
    for (const { name, operation, method } of operationsOf(document)) {
      const { summary = "", tags = [], security, requestBody, responses, parameters } = operation;
      const good = Object.entries(responses).filter(([status]) => /^(2|101)/.test(status));
      const bad = Object.keys(responses).filter((status) => /^[45]/.test(status));
      const bodies = Object.values(requestBody?.content ?? {});
      const answers = good.flatMap(([, response]) => Object.values(response.content ?? {}));
      const isEmpty = name === "GET /v1/realtime" || name.endsWith("/notify");
      expect({
        name,
        hasSummary: summary.length > 5 && !summary.endsWith("."),
        tags: tags.length,
        security: Array.isArray(security),
        answers: good.length === 1 && (isEmpty || answers.length > 0),
        tellsAnswers: answers.every(({ schema }) => Object.keys(schema).length > 0),
        refusals: bad.length > 2,
        examples: bodies.map(({ example }) => example !== undefined),
        parameters: parameters.filter((each) => !each.description).map((each) => each.name),
      }).toEqual({
        name,
        hasSummary: true,
        tags: 1,
        security: true,
        answers: true,
        tellsAnswers: true,
        refusals: true,
        examples: bodies.map(() => true),
        parameters: [],
      });
      const isRelay = !name.includes(" /api/");
      if (isRelay && method === "POST") expect([name, bodies.length]).toEqual([name, 1]);
      for (const { schema, example } of [...bodies, ...answers.filter((each) => "example" in each)])
        expect([name, measure.problems(schema, example)]).toEqual([name, []]);
    }
  });

  test("names every parameter of a path, and every scheme it refers to", () => {
    for (const { path, operation } of operationsOf(document)) {
      const named = operation.parameters.filter((each) => each.in === "path").map(({ name }) => name);
      expect([path, new Set(named)]).toEqual([
        path,
        new Set([...path.matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "")),
      ]);
      for (const scheme of operation.security.flatMap((each) => Object.keys(each)))
        expect(document.components.securitySchemes).toHaveProperty(scheme);
    }
  });

  test("tells the header with the code of every refusal of the relay, and what each code means", () => {
    expect(document.components.headers["x-weir-error-code"]?.schema.enum).toContain("model_not_found");
    expect(document.info.description).toContain("| `model_not_found` | 404 | ");
    for (const [name, { headers, content }] of Object.entries(document.components.responses)) {
      expect([name, Object.keys(content)]).toEqual([name, ["application/json"]]);
      expect([name, "x-weir-error-code" in headers]).toEqual([name, !name.startsWith("Console")]);
    }
  });

  test("describes bodies by the schemas that check them", () => {
    const body = document.paths["/api/user/manage"]?.["post"]?.requestBody?.content["application/json"];
    expect(Object.keys(body?.schema["properties"] ?? {})).toEqual(["id", "action"]);
    expect(body?.schema["required"]).toEqual(["id", "action"]);
  });

  test("names the server by its relative address, and by the operator's as soon as there is one", async () => {
    const servers = async () => (await documentAt(app.url)).servers.map(({ url }) => url);
    expect(await servers()).toEqual(["/"]);
    await app.deps.options.set("ServerAddress", OWN_ADDRESS);
    expect(await servers()).toEqual(["/", OWN_ADDRESS]);
    await app.deps.options.set("ServerAddress", "");
    expect(await servers()).toEqual(["/"]);
  });

  test("is clean by redocly's rules, but for those that redocly.yaml names with their reasons", async () => {
    const config = await loadConfig({ configPath: `${import.meta.dir}/../../redocly.yaml` });
    const lint = async (shown: object) =>
      (await lintFromString({ source: JSON.stringify(shown), config })).map(
        ({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer ?? ""}`,
      );
    expect(await lint(document)).toEqual([]);
    const [found] = operationsOf(document);
    const { summary: _, ...bare } = found?.operation ?? {};
    const path = { [found?.method.toLowerCase() ?? ""]: bare };
    const broken = { ...document, paths: { ...document.paths, [found?.path ?? ""]: path } };
    expect((await lint(broken)).join()).toContain("operation-summary");
  });

  test("tells the console's answers as the types of the routes have them: `bun run openapi` writes them anew", () => {
    // A process of its own: the compiler reads every source, which takes seconds and much memory.
    const command = [process.execPath, "scripts/generate-answers.ts", "--print"];
    const ran = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
    expect([ran.exitCode, ran.stderr.toString()]).toEqual([0, ""]);
    expect(JSON.parse(ran.stdout.toString())).toEqual(answersOfTypes);
  }, 180_000);
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
