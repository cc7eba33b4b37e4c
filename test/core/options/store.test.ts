// Options and channels between a node's own change and what it reads back: the change is in force at once and stays.
// Refuses chance: the read is held open until the change is made.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { createOptions } from "../../../src/core/options/store.ts";
import { createRouting } from "../../../src/core/channels/routing.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";

let app: TestApp;
beforeAll(async () => {
  app = await startTestApp({});
});
afterAll(() => app.close());

/** The database with one read of a whole table that is answered late: rows as of `hasRead`, handed over at `held`. */
function slowReads() {
  const { db } = app.deps;
  const held = Promise.withResolvers<void>();
  const hasRead = Promise.withResolvers<void>();
  const state = { isSlow: false };
  const select = (...fields: unknown[]) => {
    const whole = (
      Reflect.get(db.orm, "select") as (...all: unknown[]) => { from(table: unknown): unknown }
    ).call(db.orm, ...fields);
    return {
      from(table: unknown) {
        const rows = whole.from(table);
        if (!state.isSlow || fields.length > 0) return rows;
        state.isSlow = false;
        return (async () => {
          const early = await (rows as Promise<unknown[]>);
          hasRead.resolve();
          await held.promise;
          return early;
        })();
      },
    };
  };
  const orm = new Proxy(db.orm, {
    get: (target, name) => (name === "select" ? select : (Reflect.get(target, name) as unknown)),
  });
  return { db: { ...db, orm }, held, hasRead, state };
}

test("a reload that read the rows before a change does not bring the old value back", async () => {
  const { db, held, hasRead, state } = slowReads();
  const options = await createOptions(db, app.deps.seal);
  await options.set("Footer", "old");
  state.isSlow = true;
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

test("nor does one of channels: a disabled channel stays disabled", async () => {
  const id = await app.createChannel({ models: "raced" });
  const { db, held, hasRead, state } = slowReads();
  const routing = await createRouting({ db, seal: app.deps.seal, logger: app.deps.logger });
  state.isSlow = true;
  const reloading = routing.reload();
  await hasRead.promise;
  const { channels } = db.t;
  await db.orm.update(channels).set({ status: 2 }).where(eq(channels.id, id)).returning();
  const refreshing = routing.refresh([id]);
  // Whatever needs nothing of the held read is through after this.
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  held.resolve();
  await Promise.all([reloading, refreshing]);
  expect(routing.channel(id)?.status).toBe(2);
  expect(routing.tiers("default", "raced")).toEqual([]);
});

test("a write whose answer comes late does not bring its value back over a later one", async () => {
  const shared = await startTestApp({ database: "postgres" });
  try {
    const { db, seal } = shared.deps;
    const committed = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    const late: typeof db = {
      ...db,
      async atomic(body) {
        const answer = await db.atomic(body);
        committed.resolve();
        await held.promise;
        return answer;
      },
    };
    const options = await createOptions(late, seal);
    const earlier = options.set("Footer", "earlier");
    await committed.promise;
    await shared.deps.options.set("Footer", "later");
    held.resolve();
    await earlier;
    expect(options.get("Footer")).toBe("later");
  } finally {
    await shared.close();
  }
});
