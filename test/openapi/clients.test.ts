// Clients that two generators make of the real document: their main calls compile, strictly, and run against the gateway.
// What they call stands in test/fixtures/openapi/use-clients.txt.
import { createClient } from "@hey-api/openapi-ts";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import { startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";
import { answerOf, UPSTREAMS } from "../support/dialect-upstream.ts";
import { documentAt } from "./support.ts";

const PROJECT_DIR = join(import.meta.dir, "../..");
const EMBEDDINGS = "text-embedding-3-small";
/** As strict as a careful program: an answer without a schema would be `unknown` or `never`. */
const COMPILER = {
  strict: true,
  noEmit: true,
  target: "ESNext",
  module: "Preserve",
  lib: ["ESNext", "DOM", "DOM.Iterable"],
  types: [],
  allowImportingTsExtensions: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
};

type Use = (site: object) => Promise<Record<string, unknown>>;

let g: Gateway;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "weir-clients-"));
  const models = `${UPSTREAMS["openai-chat"].model},${EMBEDDINGS}`;
  g = await startGateway({ channel: { models } });
  await g.setOption("SelfUseModeEnabled", "true");
  for (const dialect of ["openai-responses", "anthropic", "gemini"] as const) {
    const { type, model } = UPSTREAMS[dialect];
    await g.app.createChannel({ type, models: model, baseUrl: g.upstream.url });
  }
  const paths = {
    "/responses": "openai-responses",
    "/messages": "anthropic",
    ":generateContent": "gemini",
    "/chat/completions": "openai-chat",
  } as const;
  const vector = { object: "embedding", index: 0, embedding: [0.25] };
  g.upstream.always((request) => {
    for (const [end, dialect] of Object.entries(paths))
      if (request.url.split("?")[0]?.endsWith(end)) return answerOf(dialect)(request);
    const usage = { prompt_tokens: 4, total_tokens: 4 };
    const answer = { object: "list", model: EMBEDDINGS, data: [vector], usage };
    return { headers: { "content-type": "application/json" }, steps: [JSON.stringify(answer)] };
  });
  const document = await documentAt(g.app.url);
  const written = join(folder, "openapi.json");
  writeFileSync(written, JSON.stringify(document));
  writeFileSync(
    join(folder, "schema.ts"),
    astToString(await openapiTS(JSON.parse(JSON.stringify(document)) as never)),
  );
  await createClient({
    input: written,
    output: join(folder, "hey"),
    logs: { level: "silent" },
    plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
  });
  cpSync(join(PROJECT_DIR, "test/fixtures/openapi/use-clients.txt"), join(folder, "use-clients.ts"));
  symlinkSync(join(PROJECT_DIR, "node_modules"), join(folder, "node_modules"));
  const config = { compilerOptions: COMPILER, include: ["*.ts", "hey"] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
}, 120_000);
afterAll(async () => {
  await g.close();
  rmSync(folder, { recursive: true, force: true });
});

test("what both generators make compiles with the main calls, strictly", () => {
  // Bun's own TypeScript: the errors of tsc, in a tenth of the time.
  const command = [process.execPath, "check", "--no-script", "-p", folder];
  const ran = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
  expect([ran.exitCode, ran.exitCode === 0 ? "" : ran.stdout.toString() + ran.stderr.toString()]).toEqual([
    0,
    "",
  ]);
});

test.each(["useOpenapiTypescript", "useHeyApi"])(
  "%s: the calls reach the gateway and bring what their types say",
  async (name) => {
    const used = (await import(join(folder, "use-clients.ts"))) as Record<string, Use>;
    const root = await g.app.createUser({ role: 100 });
    const seen = await used[name]?.({
      url: g.app.url,
      key: g.key,
      session: root.headers,
      models: {
        chat: UPSTREAMS["openai-chat"].model,
        responses: UPSTREAMS["openai-responses"].model,
        messages: UPSTREAMS.anthropic.model,
        gemini: UPSTREAMS.gemini.model,
        embeddings: EMBEDDINGS,
      },
    });
    expect(seen).toEqual({
      version: g.app.deps.version,
      token: "made",
      user: root.username,
      options: true,
      channels: 4,
      prices: true,
      refusal: "record_missing",
      content: "See docs.",
      output: 4,
      blocks: ["thinking", "text", "tool_use"],
      stop: "tool_use",
      candidates: 1,
      vectors: 1,
      counted: expect.any(Number),
      listed: "list",
      failure: "error",
      logged: expect.any(Number),
    });
  },
);
