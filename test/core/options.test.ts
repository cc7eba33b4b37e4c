// Options between a node's own change and what it reads back: the change is in force at once and stays.
// Refuses chance: the read is held open until the change is made.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createOptions } from "../../src/core/options.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({});
});
afterAll(() => app.close());

test("a reload that read the rows before a change does not bring the old value back", async () => {
  const { db, seal } = app.deps;
  const held = Promise.withResolvers<void>();
  const hasRead = Promise.withResolvers<void>();
  let isSlow = false;
  const select = () => ({
    async from(table: typeof db.t.options) {
      const rows = await db.orm.select().from(table);
      if (!isSlow) return rows;
      isSlow = false;
      hasRead.resolve();
      await held.promise;
      return rows;
    },
  });
  const orm = new Proxy(db.orm, {
    get: (target, name) => (name === "select" ? select : (Reflect.get(target, name) as unknown)),
  });
  const options = await createOptions({ ...db, orm }, seal);
  await options.set("Footer", "old");
  isSlow = true;
  const reloading = options.reload();
  await hasRead.promise;
  await options.set("Footer", "new");
  held.resolve();
  await reloading;
  expect(options.get("Footer")).toBe("new");
  // What another node writes still arrives.
  await app.deps.options.set("Footer", "newer");
  await options.reload();
  expect(options.get("Footer")).toBe("newer");
});
