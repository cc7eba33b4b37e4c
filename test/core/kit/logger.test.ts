// What the log may hold: one JSON object a line, and no value that a query was made with.
// Refuses made-up errors: PostgreSQL itself fails here (the embedded database words its errors without values).
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createLogger } from "../../../src/core/kit/logger.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({ database: "postgres" });
});
afterAll(() => app.close());

test("a failed query is logged with its text and its cause, without the values it was made with", async () => {
  const { users } = app.deps.db.t;
  const row = { username: "twice", passwordHash: "$argon2id$v=19$hash\n    of a password", createdAt: 1 };
  await app.deps.db.orm.insert(users).values(row).returning();
  const error: unknown = await app.deps.db.orm
    .insert(users)
    .values(row)
    .returning()
    .catch((thrown: unknown) => thrown);
  const lines: string[] = [];
  const logger = createLogger("info", (line) => lines.push(line));
  logger.error("as text", { error: String(error) });
  logger.error("as stack", { error: (error as Error).stack ?? "" });
  logger.error(String(error), { nested: { deep: [String(error)] } });
  expect(lines).toHaveLength(3);
  for (const line of lines) {
    expect(line).toContain("insert into");
    expect(line).not.toContain("argon2id");
    expect(line).not.toContain("twice");
  }
  expect(lines[1]).toContain("    at ");
});

test("lines below the level are not written, and each is one JSON object", () => {
  const lines: string[] = [];
  const logger = createLogger("warn", (line) => lines.push(line));
  logger.info("quiet");
  logger.warn("two\nlines", { a: 1 });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "warn", message: "two\nlines", a: 1 });
});

test("every line names its node, as soon as that is known", () => {
  const lines: string[] = [];
  let node: string | undefined;
  const logger = createLogger(
    "info",
    (line) => lines.push(line),
    () => node,
  );
  logger.info("before");
  node = "0f3c9a41";
  logger.info("after", { request_id: "r1" });
  const [before, after] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(before).not.toHaveProperty("node");
  expect(after).toMatchObject({ message: "after", node: "0f3c9a41", request_id: "r1" });
});
