// Prices that come by themselves: only those that were taken from the source before, within its limit, as one revision that can be
// undone; what fails or waits stands in the inbox. On both databases.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { comparePrices } from "../../../src/core/prices/sync.ts";
import { requestOf, syncKeptSources } from "../../../src/core/prices/kept-sources.ts";
import {
  applyPlan,
  listRevisions,
  revisionDetail,
  undoRevision,
} from "../../../src/core/prices/revisions.ts";
import { planPrices } from "../../../src/core/prices/plan.ts";
import { jobsOf } from "../../../src/jobs/jobs.ts";
import { inboxSentence } from "../../../src/shared/inbox.ts";
import { emptyMaps, PRICE_MAPS, putRow } from "../../../src/shared/row-maps.ts";
import { translator } from "../../../src/pages/texts.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import { startPriceHost } from "../../support/price-source.ts";
import type { PriceHost } from "../../support/price-source.ts";

describe.each(DATABASE_KINDS)("kept sources on %s", (database) => {
  let app: TestApp;
  let host: PriceHost;
  let root: TestUser;
  const AUTHOR = { userId: 1, username: "root" };

  beforeAll(async () => {
    host = await startPriceHost();
    app = await startTestApp({ database, env: { UPSTREAM_NETWORKS: "127.0.0.0/8" } });
    root = await app.createUser({ role: 100 });
    await app.createChannel({ models: "served" });
  });
  afterAll(async () => {
    await app.close();
    host.close();
  });

  const serve = (model_ratio: Record<string, number>) =>
    host.serve("/list", { success: true, data: { model_ratio } });
  const keep = (more: object = {}) =>
    app.deps.options.set(
      "PriceSources",
      JSON.stringify([
        { name: "lists", source: "detect", url: `${host.url}/list`, auto: true, limit: 10, ...more },
      ]),
    );
  const ratios = () => app.deps.options.get("ModelRatio");
  const sync = async () => {
    await syncKeptSources(app.deps);
    await app.services.inbox.settle();
  };
  const latest = async () => {
    const { items } = await listRevisions(app.deps.db, { page: 1, pageSize: 1 });
    return revisionDetail(app.deps.db, items[0]?.id ?? 0);
  };
  const openItems = async () => {
    const { body } = await app.call<{
      data: { items: { kind: "price_sync"; subject: string; params: Record<string, string | number> }[] };
    }>("GET", "/api/inbox/?state=open", undefined, root);
    return body.data.items;
  };
  /** As somebody who takes everything that the source has. */
  const takeAll = async () => {
    const [source] = app.deps.options.get("PriceSources");
    if (!source) throw new Error("no source");
    const { rows, revision } = await comparePrices(app.deps, requestOf(source));
    const maps = emptyMaps();
    const changes = rows.flatMap(({ name, theirs, taken }) => {
      putRow(maps, name, theirs ?? undefined, 500_000);
      return PRICE_MAPS.map((key) => ({ key, name, after: maps[key][name] ?? null, taken }));
    });
    const { planHash } = await planPrices(app.deps, { parent: revision, changes, days: 0 });
    await applyPlan(app.deps, { planHash, parent: revision, changes, note: "" }, AUTHOR);
  };

  beforeEach(async () => {
    for (const key of PRICE_MAPS) await app.deps.options.set(key, "{}");
    await app.deps.db.orm.delete(app.deps.db.t.priceOrigins);
    await keep();
  });
  afterEach(async () => {
    serve({ served: 1 });
    await sync();
    await app.call("PUT", "/api/option/", { key: "PriceSources", value: "[]" }, root);
  });

  test("a small step is taken, a large one waits in the inbox, and both are known afterwards", async () => {
    serve({ a: 1, b: 1, c: 1 });
    await takeAll();
    serve({ a: 1.1, b: 1.2, c: 1 });
    await sync();
    expect(ratios()).toEqual({ a: 1.1, b: 1, c: 1 });
    const revision = await latest();
    expect(revision).toMatchObject({ kind: "sync", userId: 0, note: expect.stringMatching(/^lists@/) });
    expect(revision.changes.every(({ name, taken }) => name === "a" && taken !== undefined)).toBe(true);
    const [item] = await openItems();
    expect(item).toMatchObject({
      kind: "price_sync_waits",
      subject: "lists",
      params: { count: 1, limit: 10 },
    });
    expect(item && inboxSentence(translator("en"), "en", item)).toBe(
      "1 price of the source “lists” changed by more than 10% and was not taken. Compare and decide.",
    );
    // What was taken is the base of the next day; the step that waits is none by then.
    serve({ a: 1.2, b: 1, c: 1 });
    await sync();
    expect(ratios()).toEqual({ a: 1.2, b: 1, c: 1 });
    expect(await openItems()).toEqual([]);
  });

  test("one revision is undone as any other, and its prices are not taken again", async () => {
    serve({ a: 1, b: 1 });
    await takeAll();
    serve({ a: 1.05, b: 1.05 });
    await sync();
    await undoRevision(app.deps, { id: (await latest()).id, note: "", include: [] }, AUTHOR);
    await sync();
    expect([ratios(), (await latest()).kind]).toEqual([{ a: 1, b: 1 }, "undo"]);
  });

  test("a new model that a channel serves is priced, another is not", async () => {
    serve({ served: 2, unserved: 2 });
    await sync();
    expect(ratios()).toEqual({ served: 2 });
  });

  test("the operator's own prices, and those of another source, stay", async () => {
    serve({ a: 1, b: 1 });
    await takeAll();
    await app.deps.options.set("ModelRatio", '{"a":1,"b":1.04,"mine":1}');
    await keep({ name: "others" });
    serve({ a: 1.01, b: 1.01, mine: 1.01 });
    await sync();
    expect(ratios()).toEqual({ a: 1, b: 1.04, mine: 1 });
  });

  test("off by default: a kept source is not asked by itself", async () => {
    await keep({ auto: false });
    const asked = host.seen.length;
    await sync();
    expect(host.seen.length).toBe(asked);
    const { watch } = app.services.gateway;
    const job = jobsOf(app.deps, watch, () => Promise.resolve()).find(({ name }) => name === "price-sync");
    expect(job?.everySeconds()).toBe(0);
    await keep();
    expect(job?.everySeconds()).toBe(86_400);
  });

  test("one that fails is told once it does, until it works again, and holds up no other", async () => {
    serve({ served: 2 });
    const list = [
      { name: "broken", source: "detect", url: `${host.url}/html`, auto: true },
      { name: "lists", source: "detect", url: `${host.url}/list`, auto: true },
    ];
    await app.deps.options.set("PriceSources", JSON.stringify(list));
    await sync();
    expect(ratios()).toEqual({ served: 2 });
    const [item] = await openItems();
    expect(item).toMatchObject({
      kind: "price_sync",
      subject: "broken",
      params: { code: "price_source_html" },
    });
    await app.deps.options.set("PriceSources", JSON.stringify([{ ...list[0], url: `${host.url}/list` }]));
    await sync();
    expect(await openItems()).toEqual([]);
  });

  test("a price with another condition waits, however small its step", async () => {
    const list = (price: string, over: string) => ({
      data: [
        {
          id: "m",
          pricing: {
            prompt: price,
            completion: price,
            overrides: [{ min_prompt_tokens: 1001, prompt: over }],
          },
        },
      ],
    });
    host.serve("/list", list("0.000001", "0.000002"));
    await takeAll();
    host.serve("/list", list("0.000001", "0.0000025"));
    await sync();
    expect(app.deps.options.get("PriceRules")["m"]?.when?.[0]?.set?.in).toBe(2);
    expect((await openItems()).map(({ kind }) => kind as string)).toEqual(["price_sync_waits"]);
  });

  test("the same source is compared by its name over the wire, by root", async () => {
    serve({ served: 3 });
    const ask = async (as: TestUser, kept: string) =>
      (
        await app.call<{ code?: string; data: { source: string; rows: unknown[] } }>(
          "POST",
          "/api/price/sync",
          { source: "detect", kept },
          as,
        )
      ).body;
    expect((await ask(root, "lists")).data).toMatchObject({ source: "lists", rows: [{ name: "served" }] });
    const list = await app.call<{ data: unknown[] }>("GET", "/api/price/sync", undefined, root);
    expect(list.body.data).toMatchObject([{ name: "lists", auto: true, limit: 10 }]);
    expect((await ask(root, "unknown")).code).toBe("record_missing");
    expect((await ask(await app.createUser({ role: 10 }), "lists")).code).toBe("price_source_root");
  });
});
