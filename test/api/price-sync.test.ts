// Comparing prices with a source over the wire: every way in which a host misbehaves has a sentence of its own, only root makes the
// server fetch, and what was taken is the base of the next comparison.
import { afterAll, beforeAll, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { planPrices } from "../../src/core/prices/plan.ts";
import { comparePrices } from "../../src/core/prices/sync.ts";
import { fetchInstance, fetchSource } from "../../src/core/prices/sources/fetch.ts";
import { createGuard } from "../../src/net/guard.ts";
import { Failure } from "../../src/shared/failures.ts";
import type { PriceRow } from "../../src/shared/price-row.ts";
import type { SyncRow } from "../../src/shared/price-sync.ts";
import { emptyMaps, PRICE_MAPS, putRow } from "../../src/shared/row-maps.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startPriceHost } from "../support/price-source.ts";
import type { PriceHost } from "../support/price-source.ts";

interface Change {
  key: string;
  name: string;
  before?: unknown;
  after: unknown;
  taken?: string;
}
interface Wire<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}
interface Compared {
  source: string;
  version: string;
  revision: number;
  total: number;
  same: number;
  rows: SyncRow[];
  dropped: { name: string; reason: string; detail: string }[];
  dropped_count: number;
}

const QPU = 500_000;

let host: PriceHost;
beforeAll(async () => {
  host = await startPriceHost();
});
afterAll(() => host.close());

/** As the price desk sends a taken row. */
function changesOf({ name, theirs, taken }: SyncRow): Change[] {
  const maps = emptyMaps();
  putRow(maps, name, theirs ?? undefined, QPU);
  return PRICE_MAPS.map((key) => ({ key, name, after: maps[key][name] ?? null, taken }));
}

describe.each(DATABASE_KINDS)("comparing prices on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let user: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, env: { UPSTREAM_NETWORKS: "127.0.0.0/8" } });
    root = await app.createUser({ role: 100 });
    admin = await app.createUser({ role: 10 });
    user = await app.createUser();
  });
  afterAll(() => app.close());

  test("a comparison and a plan of long rows let others come to their turn between any two names", async () => {
    const names = Array.from({ length: 40 }, (_, at) => `long-${at}`);
    const data = names.map((id) => ({ id, pricing: { prompt: "0.000001", completion: "0.000002" } }));
    // Each look at the clock finds a step that took long.
    let nowMs = 0;
    const clock = spyOn(performance, "now").mockImplementation(() => (nowMs += 20));
    const turnsOf = async (work: Promise<unknown>): Promise<number> => {
      let turns = 0;
      let isDone = false;
      const count = () => {
        turns += 1;
        if (!isDone) setImmediate(count);
      };
      setImmediate(count);
      await work.finally(() => (isDone = true));
      return turns;
    };
    try {
      const text = JSON.stringify({ data });
      const compared = comparePrices(app.deps, { source: "openrouter", text, strip: [] });
      expect(await turnsOf(compared)).toBeGreaterThanOrEqual(names.length * 2);
      const changes = names.map((name) => ({ key: "ModelRatio", name, after: 1 }));
      expect(await turnsOf(planPrices(app.deps, { changes, days: 0 }))).toBeGreaterThanOrEqual(names.length);
    } finally {
      clock.mockRestore();
    }
  });

  const call = async <T>(path: string, body: unknown, as = root) =>
    (await app.call<Wire<T>>("POST", `/api/price${path}`, body, as)).body;
  const sync = (body: object, as = root) => call<Compared>("/sync", body, as);
  const compare = async (value: unknown, more: object = {}): Promise<Compared> => {
    const answer = await sync({ source: "detect", text: JSON.stringify(value), ...more });
    expect([answer.message, answer.success]).toEqual(["", true]);
    return answer.data;
  };
  const ratios = (model_ratio: Record<string, unknown>, more: object = {}) => ({
    success: true,
    data: { model_ratio, ...more },
  });
  const rowNamed = ({ rows }: Compared, name: string) => rows.find((row) => row.name === name);
  /** Plans and applies; answers the revision. */
  const apply = async (changes: Change[], more: object = {}): Promise<number> => {
    const plan = await call<{ plan_hash: string; parent: number }>("/plan", { changes, days: 0 });
    expect([plan.message, plan.success]).toEqual(["", true]);
    const { plan_hash, parent } = plan.data;
    const done = await call<{ revision: number }>("/apply", { plan_hash, parent, changes, ...more });
    expect([done.message, done.success]).toEqual(["", true]);
    return done.data.revision;
  };
  const originOf = async (name: string) => {
    const { priceOrigins } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(priceOrigins).where(eq(priceOrigins.name, name));
    return row && { ...row, price: JSON.parse(row.price) as PriceRow };
  };
  const revisionOf = async (id: number) =>
    (
      await app.call<Wire<{ changes: Change[]; names: string[]; kind: string }>>(
        "GET",
        `/api/price/revisions/${id}`,
        undefined,
        root,
      )
    ).body.data;
  const ratioOf = (name: string) => app.deps.options.get("ModelRatio")[name];

  beforeEach(async () => {
    for (const key of PRICE_MAPS) await app.deps.options.set(key, "{}");
    await app.deps.db.orm.delete(app.deps.db.t.priceOrigins);
    await app.createChannel({ models: "m,n,served" });
  });

  describe("rights", () => {
    test("a text is any administrator's to compare, an address root's, and nothing a user's", async () => {
      const text = JSON.stringify(ratios({ m: 1 }));
      const asked = host.seen.length;
      expect((await sync({ source: "detect", text }, admin)).data.rows).toHaveLength(1);
      expect((await sync({ source: "shipped" }, admin)).success).toBe(true);
      for (const body of [
        { source: "detect", url: `${host.url}/none` },
        { source: "instance", url: host.url },
        { source: "openrouter" },
        { source: "detect", channel_id: 1 },
      ])
        expect((await sync(body, admin)).code).toBe("price_source_root");
      const refused = await app.call<Wire<never>>("POST", "/api/price/sync", { source: "shipped" }, user);
      expect([refused.body.success, refused.body.code]).toEqual([false, "auth_role_too_low"]);
      expect(host.seen.length).toBe(asked);
    });
  });

  describe("sources that misbehave", () => {
    const cases: [what: string, path: string, code: string][] = [
      ["more than ten megabytes", "/huge", "price_source_too_large"],
      ["little that unpacks to much", "/bomb", "price_source_too_large"],
      ["more values than any list needs", "/dense", "price_source_too_dense"],
      ["a page for people", "/html", "price_source_html"],
      ["a page that says it is JSON", "/html-as-json", "price_source_html"],
      ["half a list", "/truncated", "price_source_broken"],
      ["bytes that are no text", "/latin1", "price_source_broken"],
      ["nothing", "/empty", "price_source_empty"],
      ["a refusal", "/hidden", "price_source_hidden"],
      ["an error", "/broken", "price_source_status"],
      ["no such path", "/nowhere", "price_source_status"],
      ["a text where a list should be", "/wrong", "price_source_unknown"],
      ["numbers where entries should be", "/list", "price_source_unknown"],
      ["a way in circles", "/loop", "price_source_unreachable"],
      ["another host", `/?to=${encodeURIComponent("http://localhost:1/")}`, "price_source_redirected"],
    ];
    test.each(cases)("%s", async (_, path, code) => {
      const answer = await sync({ source: "detect", url: host.url + path });
      expect([answer.success, answer.code]).toEqual([false, code]);
      expect(answer.message).not.toContain("{{");
    });

    test("of a list without an end little more than the cap is read", async () => {
      const before = host.sentBytes();
      await sync({ source: "detect", url: `${host.url}/huge` });
      expect(host.sentBytes() - before).toBeLessThan(40 * 1024 * 1024);
    });

    test("a port where nobody listens, and what is no web address", async () => {
      for (const [url, code] of [
        ["http://127.0.0.1:1/", "price_source_unreachable"],
        ["file:///etc/passwd", "price_source_address"],
        ["http://name:word@127.0.0.1/", "price_source_address"],
        ["prices", "price_source_address"],
        ["", "price_source_missing"],
      ] as const)
        expect((await sync({ source: "detect", url })).code).toBe(code);
    });

    test("the answer of another form than was named", async () => {
      host.serve("/ratios", ratios({ m: 1 }));
      const answer = await sync({ source: "openrouter", url: `${host.url}/ratios` });
      expect(answer.code).toBe("price_source_unreadable");
    });

    test("within the host a redirect is followed, and nothing of this site goes along", async () => {
      host.serve("/ratios", ratios({ m: 1 }));
      const answer = await sync({ source: "detect", url: `${host.url}/?to=/ratios` });
      expect(answer.data.rows.map(({ name }) => name)).toEqual(["m"]);
      const { headers } = host.seen.at(-1) ?? { headers: {} };
      expect(Object.keys(headers).toSorted()).toEqual(["accept", "accept-encoding", "host", "user-agent"]);
    });

    test("a channel's key stays here: its instance is asked without it", async () => {
      host.serve("/api/ratio_config", ratios({ m: 1 }));
      const id = await app.createChannel({ baseUrl: host.url, key: "sk-secret", models: "m" });
      const answer = await sync({ source: "instance", channel_id: id });
      expect([answer.message, answer.data.rows.length]).toEqual(["", 1]);
      expect(JSON.stringify(host.seen.at(-1)?.headers)).not.toContain("secret");
      expect((await sync({ source: "instance", channel_id: 99_999 })).code).toBe("record_missing");
    });

    test("a private address is refused where the operator opened no networks", async () => {
      const closed = await startTestApp({ database, env: { UPSTREAM_NETWORKS: "none" } });
      try {
        const chief = await closed.createUser({ role: 100 });
        const asked = host.seen.length;
        for (const url of [
          host.url,
          "http://169.254.169.254/latest/",
          "http://[::1]/",
          "http://localhost/",
        ]) {
          const { body } = await closed.call<Wire<never>>(
            "POST",
            "/api/price/sync",
            { source: "detect", url },
            chief,
          );
          expect([url, body.code]).toEqual([url, "price_source_private"]);
        }
        expect(host.seen.length).toBe(asked);
      } finally {
        await closed.close();
      }
    });
  });

  describe("rows", () => {
    test("each case with its ticks, and a bad entry costs that entry", async () => {
      await app.deps.options.set("ModelRatio", '{"mine":1,"same":2}');
      await app.deps.options.set("CompletionRatio", '{"mine":4,"same":1}');
      const found = await compare(
        ratios(
          { mine: 1.5, same: 2, served: 3, unserved: 3, negative: -1, far: 1e300, text: "1" },
          {
            completion_ratio: { mine: 4, same: 1 },
          },
        ),
      );
      expect(found.rows.map(({ name, case: kind, ticked, served }) => [name, kind, ticked, served])).toEqual([
        ["mine", "own", false, false],
        ["served", "new", true, true],
        ["unserved", "new", false, false],
      ]);
      expect([found.total, found.same, found.dropped_count]).toEqual([4, 1, 3]);
      expect(found.dropped.map(({ name, reason }) => [name, reason])).toEqual([
        ["negative", "number"],
        ["far", "number"],
        ["text", "number"],
      ]);
      expect(rowNamed(found, "mine")?.ours).toEqual({ in: 2, out: 8 });
      expect(rowNamed(found, "mine")?.theirs).toEqual({ in: 3, out: 12 });
    });

    test("names lose a beginning only where it was asked for", async () => {
      const list = { data: [{ id: "maker/m", pricing: { prompt: "0.000002", completion: "0.000008" } }] };
      expect((await compare(list)).rows.map(({ name }) => name)).toEqual(["maker/m"]);
      const bare = await compare(list, { strip: ["maker/"] });
      expect(bare.rows).toMatchObject([{ name: "m", case: "new", theirs: { in: 2, out: 8 }, ticked: true }]);
    });

    test("a price far off the shipped table is never ticked", async () => {
      await app.createChannel({ models: "gpt-4o" });
      const found = await compare(ratios({ "gpt-4o": 125 }, { completion_ratio: { "gpt-4o": 4 } }));
      expect(found.rows).toMatchObject([{ case: "new", guards: ["outlier"], ticked: false }]);
    });

    test("twenty thousand names are compared, thirty-one thousand refused", async () => {
      const many = (count: number) =>
        ratios(Object.fromEntries(Array.from({ length: count }, (_, at) => [`model-${at}`, 1 + at / count])));
      expect((await compare(many(20_000))).rows).toHaveLength(20_000);
      const refused = await sync({ source: "detect", text: JSON.stringify(many(31_000)) });
      expect(refused.code).toBe("price_source_too_many");
    }, 60_000);
  });

  describe("what was taken", () => {
    const first = ratios({ m: 1 }, { completion_ratio: { m: 4 } });
    const second = ratios({ m: 1.5 }, { completion_ratio: { m: 4 } });

    test("is the base of the next comparison, and tells in the history whose price it is", async () => {
      const taken = rowNamed(await compare(first), "m");
      const revision = await apply(changesOf(taken as SyncRow));
      expect(ratioOf("m")).toBe(1);
      expect(await originOf("m")).toMatchObject({ source: "ratio_config:file", price: { in: 2, out: 8 } });
      expect((await revisionOf(revision)).changes.every((each) => each.taken === taken?.taken)).toBe(true);
      // Nothing is left to take, and what changes there is newer.
      expect((await compare(first)).rows).toEqual([]);
      expect(rowNamed(await compare(second), "m")).toMatchObject({
        case: "newer",
        ticked: true,
        origin: "ratio_config:file",
      });
    });

    test("moves along when the newer price is taken", async () => {
      await apply(changesOf(rowNamed(await compare(first), "m") as SyncRow));
      await apply(changesOf(rowNamed(await compare(second), "m") as SyncRow));
      expect((await originOf("m"))?.price).toEqual({ in: 3, out: 12 });
      expect(rowNamed(await compare(first), "m")?.case).toBe("newer");
    });

    test("undone it is the operator's own: offered, and not ticked again", async () => {
      await apply(changesOf(rowNamed(await compare(first), "m") as SyncRow));
      const revision = await apply(changesOf(rowNamed(await compare(second), "m") as SyncRow));
      const undone = await call(`/revisions/${revision}/undo`, {});
      expect([undone.message, ratioOf("m")]).toEqual(["", 1]);
      expect(rowNamed(await compare(second), "m")).toMatchObject({
        case: "own",
        ticked: false,
        ours: { in: 2, out: 8 },
        base: { in: 3, out: 12 },
      });
    });

    test("a new name that is undone was taken away: it is not added again", async () => {
      const revision = await apply(changesOf(rowNamed(await compare(first), "m") as SyncRow));
      await call(`/revisions/${revision}/undo`, {});
      expect(rowNamed(await compare(first), "m")).toMatchObject({
        case: "removed",
        ticked: false,
        ours: null,
      });
    });

    test("what was changed on the way is the operator's own", async () => {
      const row = rowNamed(await compare(first), "m") as SyncRow;
      const changes = changesOf(row).map((each) =>
        each.key === "CompletionRatio" ? { ...each, after: 5, taken: undefined } : each,
      );
      await apply(changes as Change[]);
      expect(await originOf("m")).toBeUndefined();
      expect(rowNamed(await compare(first), "m")).toMatchObject({ case: "own", ticked: false });
    });

    test("a mark that somebody made up is not believed", async () => {
      const change = (taken: string) => [{ key: "ModelRatio", name: "m", after: 7, taken }];
      await apply(change("openrouter@1#0123456789ab"));
      expect(await originOf("m")).toBeUndefined();
    });

    test("goes by way of a draft that another administrator made", async () => {
      const row = rowNamed(await compare(first), "m") as SyncRow;
      const draft = await call<{ id: number; changes: Change[] }>(
        "/drafts",
        { title: "List prices", changes: changesOf(row) },
        admin,
      );
      expect(draft.data.changes.every(({ taken }) => taken === row.taken)).toBe(true);
      await apply(draft.data.changes, { draft_id: draft.data.id });
      expect((await originOf("m"))?.source).toBe("ratio_config:file");
    });

    test("an own price that is taken away by hand leaves its name behind", async () => {
      await app.deps.options.set("ModelRatio", '{"n":3,"kept":1}');
      await apply([{ key: "ModelRatio", name: "n", after: null }]);
      expect(await originOf("n")).toMatchObject({ source: "own" });
      const found = await compare(ratios({ n: 1 }));
      expect(rowNamed(found, "n")).toMatchObject({ case: "removed", ticked: false });
      // Given a price again it is the operator's own, even at what it was once.
      await app.deps.options.set("ModelRatio", '{"n":3,"kept":1}');
      expect(rowNamed(await compare(ratios({ n: 1 })), "n")).toMatchObject({ case: "own", ticked: false });
    });

    test("what the source has no longer is kept, and told of that source only", async () => {
      await apply(changesOf(rowNamed(await compare(first), "m") as SyncRow));
      expect(rowNamed(await compare(ratios({ n: 1 })), "m")).toMatchObject({ case: "gone", ticked: false });
      expect(rowNamed((await sync({ source: "shipped" })).data, "m")).toBeUndefined();
    });
  });

  test("another instance: its ratios, else its price list; the first refusal is told", async () => {
    const asked = (from: number) => host.seen.slice(from).map(({ path }) => path);
    let from = host.seen.length;
    host.serve("/a/api/ratio_config", ratios({ m: 1 }));
    expect((await sync({ source: "instance", url: `${host.url}/a/` })).data.rows).toHaveLength(1);
    expect(asked(from)).toEqual(["/a/api/ratio_config"]);
    from = host.seen.length;
    host.serve("/b/api/pricing", {
      data: [{ model_name: "m", quota_type: 0, model_ratio: 2, completion_ratio: 1 }],
    });
    const second = await sync({ source: "instance", url: `${host.url}/b` });
    expect(second.data.rows).toMatchObject([{ name: "m", theirs: { in: 4, out: 4 } }]);
    expect(asked(from)).toEqual(["/b/api/ratio_config", "/b/api/pricing"]);
    const none = await sync({ source: "instance", url: `${host.url}/c` });
    expect([none.code, none.message.includes("404")]).toEqual(["price_source_status", true]);
  });
});

describe("time", () => {
  const guard = createGuard();
  const codeOf = async (work: Promise<unknown>) => {
    try {
      await work;
      return "";
    } catch (error) {
      return error instanceof Failure ? error.code : String(error);
    }
  };
  const asked = (path: string) => ({ address: host.url + path, allow: ["127.0.0.0/8"] });

  test.each(["/slow", "/drip"])("%s: broken off when the time is over", async (path) => {
    expect(await codeOf(fetchSource({ guard }, asked(path), 50))).toBe("price_source_slow");
  });

  test("a name server that is silent does not hold it up", async () => {
    const silent = createGuard(() => new Promise(() => {}));
    const request = { address: "http://prices.example/", allow: [] };
    expect(await codeOf(fetchSource({ guard: silent }, request, 50))).toBe("price_source_slow");
  });

  test("both lists of an instance share it", async () => {
    const times: number[] = [];
    const each = async () => {
      times.push(performance.now());
      return await new Promise<never>(() => {});
    };
    expect(await codeOf(fetchInstance({ guard: each }, asked("/"), 50))).toBe("price_source_slow");
    expect(times).toHaveLength(1);
  });
});
