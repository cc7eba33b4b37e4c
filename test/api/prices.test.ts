// Changes of prices over the wire: every write is a revision, a plan is applied whole on the revision that it was made on or
// not at all, an undo leaves alone what was changed since, and only root acts.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Change {
  key: string;
  name: string;
  before?: unknown;
  after: unknown;
}
interface Revision {
  id: number;
  kind: string;
  user_id: number;
  username: string;
  created_at: number;
  note: string;
  change_count: number;
  fingerprint: string;
  undo_of: number;
  undone_by: number;
  draft_id: number;
  names: string[];
  changes?: Change[];
}
interface Warning {
  code: string;
  key: string;
  name: string;
  blocking: boolean;
  params: Record<string, unknown>;
}
interface Plan {
  parent: number;
  plan_hash: string;
  changes: Change[];
  diff: {
    model: string;
    lines: { kind: string; per: string; before: number; after: number }[];
    calls: number;
  }[];
  diff_count: number;
  warnings: Warning[];
  effect: { old: number; new: number; charged: number } | null;
}
interface Wire<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}

describe.each(DATABASE_KINDS)("changes of prices on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let user: TestUser;
  const MAPS = { ModelRatio: '{"a":1,"b":2}', CompletionRatio: '{"a":4}', ModelPrice: '{"p":0.1}' };

  beforeAll(async () => {
    app = await startTestApp({ database });
    root = await app.createUser({ role: 100, username: "chief" });
    admin = await app.createUser({ role: 10, username: "keeper" });
    user = await app.createUser();
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    for (const [key, value] of Object.entries(MAPS)) await app.deps.options.set(key, value);
    await app.deps.options.set("GroupRatio", '{"default":1,"vip":0.5}');
    await app.deps.options.set("QuotaPerUnit", "500000");
  });

  const call = async <T>(method: string, path: string, body?: unknown, as = root): Promise<Wire<T>> =>
    (await app.call<Wire<T>>(method, `/api/price${path}`, body, as)).body;
  const newest = async (): Promise<Revision> => {
    const { items } = (await call<{ items: Revision[] }>("GET", "/revisions?page_size=1")).data;
    const id = items[0]?.id ?? 0;
    return (await call<Revision>("GET", `/revisions/${id}`)).data;
  };
  const latest = async (): Promise<number> =>
    (await call<{ revision: number }>("GET", "/revisions")).data.revision;
  const put = (key: string, value: string, note?: string) =>
    app.call<Wire<never>>(
      "PUT",
      "/api/option/",
      { key, value, ...(note === undefined ? {} : { note }) },
      root,
    );
  const plan = async (changes: Change[], more: object = {}): Promise<Plan> => {
    const answer = await call<Plan>("POST", "/plan", { changes, days: 0, ...more });
    expect([answer.message, answer.success]).toEqual(["", true]);
    return answer.data;
  };
  const apply = (made: Plan, changes: Change[], more: object = {}) =>
    call<{ revision: number; changes: number }>("POST", "/apply", {
      plan_hash: made.plan_hash,
      parent: made.parent,
      changes,
      ...more,
    });

  describe("the history", () => {
    test("an option that is set by hand is a revision: who, when, why, and what stood there", async () => {
      const before = await latest();
      expect((await put("ModelRatio", '{"a":3,"c":5}', "list prices of May")).body.success).toBe(true);
      const revision = await newest();
      expect(revision).toMatchObject({
        id: before + 1,
        kind: "write",
        user_id: root.id,
        username: "chief",
        note: "list prices of May",
        change_count: 3,
        names: ["a", "b", "c"],
        changes: [
          { key: "ModelRatio", name: "a", before: 1, after: 3 },
          { key: "ModelRatio", name: "b", before: 2, after: null },
          { key: "ModelRatio", name: "c", before: null, after: 5 },
        ],
      });
      expect(Math.abs(revision.created_at - Date.now() / 1000)).toBeLessThan(60);
      // Rows of the log name the tables that they were charged by.
      expect(revision.fingerprint).toBe(app.deps.prices.callPrice("a", "default", "default")?.revision ?? "");
    });

    test("so is the reset, with every name that it changes", async () => {
      const answer = await app.call<Wire<never>>("POST", "/api/option/rest_model_ratio", undefined, root);
      expect(answer.body.success).toBe(true);
      const shipped = app.deps.options.get("ModelRatio");
      const revision = await newest();
      expect(revision).toMatchObject({ kind: "reset", username: "chief" });
      expect(revision.change_count).toBe(Object.keys(shipped).length + 2);
    });

    test("a fresh site's table is the first", async () => {
      const first = (await call<Revision>("GET", "/revisions/1")).data;
      expect(first).toMatchObject({ id: 1, kind: "write", user_id: 0 });
      expect(first.note).toStartWith("shipped@");
      expect(first.change_count).toBeGreaterThan(100);
    });

    test("every option that holds a price makes one, whoever writes it; no other option does, nor the same value", async () => {
      const cases: [string, string, Change][] = [
        ["ModelPrice", '{"p":0.2}', { key: "ModelPrice", name: "p", before: 0.1, after: 0.2 }],
        ["CompletionRatio", '{"a":5}', { key: "CompletionRatio", name: "a", before: 4, after: 5 }],
        ["GroupRatio", '{"default":1}', { key: "GroupRatio", name: "vip", before: 0.5, after: null }],
        ["QuotaPerUnit", "1000000", { key: "QuotaPerUnit", name: "", before: "500000", after: "1000000" }],
      ];
      for (const [key, value, change] of cases) {
        await app.deps.options.set(key, value);
        const revision = await newest();
        expect([key, revision.changes]).toEqual([key, [change]]);
        expect(revision).toMatchObject({ user_id: 0, username: "", kind: "write" });
      }
      for (const key of ["CacheRatio", "CreateCacheRatio", "ImageRatio", "TopupGroupRatio", "Price"]) {
        const before = await latest();
        await app.deps.options.set(key, key === "Price" ? "7.31" : '{"x":0.25}');
        expect([key, await latest()]).toEqual([key, before + 1]);
      }
      const before = await latest();
      await app.deps.options.set("SystemName", "Other");
      await app.deps.options.set("GroupRatio", '{ "default": 1 }');
      expect(await latest()).toBe(before);
    });

    test("a write that fails leaves no revision, and a revision that fails leaves no write", async () => {
      const before = await latest();
      expect((await put("ModelRatio", '{"a":-1}')).body.success).toBe(false);
      const broken = app.deps.options.write(
        function* () {
          yield* [];
          return {
            writes: [
              { key: "ModelRatio", text: '{"a":9}' },
              { key: "ModelPrice", text: "{" },
            ],
            value: undefined,
          };
        },
        { userId: 0, username: "" },
      );
      expect(await broken.catch((error: Error) => error.message)).toBe("option_not_json");
      const { options, priceRevisions } = app.deps.db.t;
      const blocked = app.deps.options.write(
        function* (tx) {
          // The number that the next revision would take.
          yield tx.insert(priceRevisions).values({
            id: before + 1,
            kind: "write",
            createdAt: 0,
            changes: "[]",
            changeCount: 0,
            fingerprint: "",
          });
          return { writes: [{ key: "ModelRatio", text: '{"a":9}' }], value: undefined };
        },
        { userId: 0, username: "" },
      );
      expect(
        await blocked.then(
          () => "written",
          () => "refused",
        ),
      ).toBe("refused");
      expect(await latest()).toBe(before);
      const rows = await app.deps.db.orm.select().from(options);
      expect(rows.find(({ key }) => key === "ModelRatio")?.value).toBe(MAPS.ModelRatio);
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 2 });
    });

    test("is read by page, from a revision on, and by the name of a model", async () => {
      const from = await latest();
      await put("ModelRatio", '{"a":1,"b":2,"only-here":3}');
      await put("ModelRatio", '{"a":1,"b":2}');
      await put("Price", "6.5");
      const after = (await call<{ items: Revision[]; total: number }>("GET", `/revisions?after=${from}`))
        .data;
      expect([after.total, after.items.map(({ id }) => id)]).toEqual([3, [from + 3, from + 2, from + 1]]);
      const named = (await call<{ items: Revision[] }>("GET", "/revisions?name=only-here")).data;
      expect(named.items.map(({ id }) => id)).toEqual([from + 2, from + 1]);
      expect((await call<{ items: Revision[] }>("GET", "/revisions?name=only-her")).data.items).toEqual([]);
      expect((await call("GET", "/revisions/999999")).code).toBe("record_missing");
    });
  });

  describe("a plan", () => {
    test("tells the difference in dollars, by the units that a dollar has, and changes nothing", async () => {
      const before = await latest();
      const made = await plan([{ key: "ModelRatio", name: "a", after: 1.5 }]);
      expect(made).toMatchObject({ parent: before, effect: null, diff_count: 1 });
      expect(made.changes).toEqual([{ key: "ModelRatio", name: "a", before: 1, after: 1.5 }]);
      const lines = made.diff[0]?.lines ?? [];
      expect(lines.find(({ kind }) => kind === "fresh")).toEqual({
        kind: "fresh",
        per: "mtok",
        before: 2,
        after: 3,
      });
      expect(lines.find(({ kind }) => kind === "output")).toMatchObject({ before: 8, after: 12 });
      await app.deps.options.set("QuotaPerUnit", "1000000");
      const half = await plan([{ key: "ModelRatio", name: "a", after: 1.5 }]);
      expect(half.diff[0]?.lines[0]).toMatchObject({ before: 1, after: 1.5 });
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 2 });
    });

    test("of other units in a dollar is a change of every price by the token", async () => {
      const made = await plan([{ key: "QuotaPerUnit", name: "", after: 250_000 }]);
      expect(made.diff.map(({ model }) => model)).toEqual(["a", "b"]);
      expect(made.diff[1]?.lines[0]).toMatchObject({ kind: "fresh", before: 4, after: 8 });
    });

    test("warns of what nobody would tick unseen", async () => {
      const cases: [Change[], [string, string][]][] = [
        [[{ key: "ModelRatio", name: "a", after: 8 }], [["price_doubled", "a"]]],
        [[{ key: "ModelRatio", name: "a", after: 2 }], []],
        [[{ key: "ModelRatio", name: "a", after: 0.5 }], []],
        [[{ key: "ModelRatio", name: "a", after: 0.49 }], [["price_halved", "a"]]],
        [[{ key: "ModelRatio", name: "a", after: 0 }], [["price_free", "a"]]],
        [[{ key: "ModelRatio", name: "n", after: 37.5 }], [["price_looks_unset", "n"]]],
        [[{ key: "ModelPrice", name: "a", after: 1 }], [["price_unit_changed", "a"]]],
        [[{ key: "ModelRatio", name: "b", after: null }], [["price_removed", "b"]]],
        [[{ key: "GroupRatio", name: "vip", after: 0 }], [["price_free", "vip"]]],
      ];
      for (const [changes, expected] of cases) {
        const made = await plan(changes);
        const found = made.warnings.map(({ code, name }) => [code, name]);
        expect([changes, found]).toEqual([changes, expected]);
      }
      const moved = await plan([{ key: "ModelRatio", name: "a", before: 0.7, after: 1.1 }]);
      expect(moved.warnings).toMatchObject([
        { code: "changed_since_draft", name: "a", params: { before: "0.7", after: "1" } },
      ]);
    });

    test("tells tiers, factors and tools too, and warns of each by its condition", async () => {
      const rules = (price: number, times: number, search: number) => ({
        tools: { web_search: search },
        when: [
          { over: 1000, set: { in: price } },
          { tier: "priority", times },
        ],
      });
      await app.deps.options.set("PriceRules", JSON.stringify({ a: rules(3, 30, 10) }));
      const asked = async (after: unknown) => {
        const made = await plan([{ key: "PriceRules", name: "a", after }]);
        return { diff: made.diff, told: made.warnings.map(({ code, params }) => [code, params]) };
      };
      expect(await asked(rules(30, 30, 10))).toMatchObject({
        diff: [
          {
            model: "a",
            lines: [],
            entries: [{ when: { over: 1000 }, kind: "in", tool: "", before: 3, after: 30 }],
          },
        ],
        told: [["price_doubled", { kind: "in", when: '{"over":1000}', before: 3, after: 30 }]],
      });
      expect((await asked(rules(3, 0, 10))).told).toMatchObject([
        ["price_free", { kind: "in", when: '{"tier":"priority"}', before: 60, after: 0 }],
      ]);
      expect((await asked(rules(3, 30, 4))).told).toEqual([
        ["price_halved", { kind: "tool", tool: "web_search", before: 10, after: 4 }],
      ]);
      expect((await asked(rules(6, 15, 20))).told).toEqual([]);
      // What follows its list price is told once.
      const listed = await plan([{ key: "ModelRatio", name: "a", after: 2.1 }]);
      expect(listed.warnings.map(({ code, params }) => [code, params["when"]])).toEqual([
        ["price_doubled", undefined],
      ]);
      await app.deps.options.set("ToolPrices", '{"house_tool":1}');
      const tools = await plan([{ key: "ToolPrices", name: "house_tool", after: 10 }]);
      expect(tools.warnings).toMatchObject([
        { code: "price_doubled", key: "ToolPrices", name: "house_tool" },
      ]);
      await app.deps.options.set("ToolPrices", "{}");
      await app.deps.options.set("PriceRules", "{}");
    });

    test("refuses what is no price, names twice, and values that the option refuses", async () => {
      const cases: [Change[], string][] = [
        [[{ key: "SystemName", name: "", after: "x" }], "price_change_invalid"],
        [[{ key: "SMTPToken", name: "", after: "x" }], "price_change_invalid"],
        [[{ key: "ModelRatio", name: "", after: 1 }], "price_change_invalid"],
        [[{ key: "ModelRatio", name: "__proto__", after: 1 }], "price_change_invalid"],
        [[{ key: "QuotaPerUnit", name: "x", after: 1 }], "price_change_invalid"],
        [[{ key: "QuotaPerUnit", name: "", after: null }], "price_change_invalid"],
        [
          [
            { key: "ModelRatio", name: "a", after: 3 },
            { key: "ModelRatio", name: "a", after: 4 },
          ],
          "price_change_invalid",
        ],
        [[{ key: "ModelRatio", name: "a", after: -1 }], "option_bad_ratio"],
        [[{ key: "ModelRatio", name: "a", after: "3" }], "option_bad_ratio"],
        [[{ key: "ModelRatio", name: "a", after: { x: 1 } }], "option_bad_ratio"],
        [[{ key: "ModelRatio", name: "a", after: 1e300 }], "option_bad_ratio"],
        [[{ key: "QuotaPerUnit", name: "", after: 0 }], "option_not_number"],
      ];
      for (const [changes, code] of cases) {
        const answer = await call("POST", "/plan", { changes, days: 0 });
        expect([changes, answer.code]).toEqual([changes, code]);
      }
    });
  });

  describe("applying", () => {
    test("does all of a plan as one revision; every map follows at once", async () => {
      const changes = [
        { key: "ModelRatio", name: "a", after: 1.5 },
        { key: "CompletionRatio", name: "a", after: 2 },
        { key: "ModelPrice", name: "p", after: null },
        { key: "QuotaPerUnit", name: "", after: 250_000 },
      ];
      const made = await plan(changes);
      const applied = await apply(made, changes, { note: "new list prices" });
      expect(applied.data).toEqual({ revision: made.parent + 1, changes: 4 });
      expect(await newest()).toMatchObject({
        id: made.parent + 1,
        kind: "apply",
        note: "new list prices",
        change_count: 4,
      });
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1.5, b: 2 });
      expect(app.deps.options.get("ModelPrice")).toEqual({});
      expect(app.deps.prices.callPrice("a", "vip", "vip")).toMatchObject({
        ratios: { modelRatio: 1.5, completionRatio: 2 },
        groupRatio: 0.5,
        quotaPerUnit: 250_000,
      });
    });

    test("a plan on an older revision is refused with what changed, and nothing of it is applied", async () => {
      const ours = [{ key: "ModelRatio", name: "a", after: 1.5 }];
      const theirs = [{ key: "ModelRatio", name: "b", after: 3 }];
      // Two administrators at once, each with a draft and a plan of its own.
      const [first, second] = await Promise.all([plan(ours), plan(theirs)]);
      expect(first.parent).toBe(second.parent);
      expect((await apply(second, theirs)).success).toBe(true);
      await put("Price", "6.9");
      const refused = await apply(first, ours);
      expect(refused).toMatchObject({ success: false, code: "price_plan_stale" });
      expect(refused.message).toContain("b (ModelRatio)");
      expect(refused.message).toContain("Price");
      expect(refused.message).toContain(String(first.parent));
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 3 });
      expect((await call("POST", "/plan", { parent: first.parent, changes: ours, days: 0 })).code).toBe(
        "price_plan_stale",
      );
      // Planned anew it can be applied.
      expect((await apply(await plan(ours), ours)).success).toBe(true);
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1.5, b: 3 });
    });

    test("of two plans on one parent that are applied at the same moment one wins", async () => {
      const changes = ["x1", "x2", "x3", "x4"].map((name) => [{ key: "ModelRatio", name, after: 1 }]);
      const plans = await Promise.all(changes.map((each) => plan(each)));
      const answers = await Promise.all(plans.map((made, index) => apply(made, changes[index] ?? [])));
      expect(answers.filter(({ success }) => success)).toHaveLength(1);
      expect(answers.filter(({ code }) => code === "price_plan_stale")).toHaveLength(3);
      expect(Object.keys(app.deps.options.get("ModelRatio"))).toHaveLength(3);
    });

    test("a model that loses its price loses its rules, in the same revision; rules without a price are refused", async () => {
      await put("PriceRules", '{"b":{"when":[{"over":1000,"times":2}]}}');
      const changes = [{ key: "ModelRatio", name: "b", after: null }];
      expect((await apply(await plan(changes), changes)).success).toBe(true);
      expect(app.deps.options.get("PriceRules")).toEqual({});
      const { id, changes: written = [] } = await newest();
      expect(written.map(({ key, name }) => [key, name])).toEqual([
        ["ModelRatio", "b"],
        ["PriceRules", "b"],
      ]);
      expect((await call("POST", `/revisions/${id}/undo`, {})).success).toBe(true);
      expect(Object.keys(app.deps.options.get("PriceRules"))).toEqual(["b"]);
      const bare = { key: "PriceRules", name: "nobody", after: { when: [{ over: 1, times: 2 }] } };
      expect((await call("POST", "/plan", { changes: [bare], days: 0 })).code).toBe(
        "option_rules_without_price",
      );
      await app.deps.options.set("PriceRules", "{}");
    });

    test("needs the plan that was made: other changes, another hash, and nothing at all are refused", async () => {
      const changes = [{ key: "ModelRatio", name: "a", after: 1.5 }];
      const made = await plan(changes);
      const dearer = [{ key: "ModelRatio", name: "a", after: 15 }];
      expect((await apply(made, dearer)).code).toBe("price_plan_mismatch");
      expect((await apply({ ...made, plan_hash: "" }, changes)).code).toBe("price_plan_mismatch");
      expect((await apply(made, [{ key: "ModelRatio", name: "a", after: 1 }])).code).toBe("price_plan_empty");
      expect(await latest()).toBe(made.parent);
    });

    test("a group in use keeps its ratio, and the refusal counts who uses it", async () => {
      const member = await app.createUser({ group: "vip" });
      await app.createToken(member.id, { group: "vip" });
      const changes = [{ key: "GroupRatio", name: "vip", after: null }];
      const made = await plan(changes);
      expect(made.warnings).toMatchObject([
        { code: "group_in_use", name: "vip", blocking: true, params: { users: 1, keys: 1, channels: 0 } },
      ]);
      const refused = await apply(made, changes);
      expect(refused.code).toBe("price_group_in_use");
      expect(refused.message).toContain("vip");
      // Nor by the option itself; a group that nobody uses goes.
      expect((await put("GroupRatio", '{"default":1}')).body.code).toBe("price_group_in_use");
      expect((await put("GroupRatio", '{"default":1,"vip":0.5,"new":2}')).body.success).toBe(true);
      expect((await put("GroupRatio", '{"default":1,"vip":0.5}')).body.success).toBe(true);
      expect(app.deps.options.get("GroupRatio")).toEqual({ default: 1, vip: 0.5 });
    });
  });

  describe("groups", () => {
    const options = () => {
      const { get } = app.deps.options;
      return [get("GroupGroupRatio"), get("AutoGroups"), get("GroupSpecialUsableGroup")];
    };
    beforeEach(async () => {
      for (const [key, value] of [
        ["GroupRatio", { default: 1, vip: 0.5, beta: 2 }],
        ["GroupGroupRatio", { vip: { default: 0.8 } }],
        ["AutoGroups", ["default"]],
        ["GroupSpecialUsableGroup", {}],
      ] as const)
        await app.deps.options.set(key, JSON.stringify(value));
    });
    afterAll(async () => {
      for (const [key, value] of [
        ["GroupGroupRatio", "{}"],
        ["AutoGroups", "[]"],
        ["GroupSpecialUsableGroup", "{}"],
        ["GroupRatio", '{"default":1,"vip":0.5}'],
      ] as const)
        await app.deps.options.set(key, value);
    });

    test("their maps are planned, applied, kept in the history and undone, one entry per group of users", async () => {
      const before = options();
      const changes = [
        { key: "GroupGroupRatio", name: "vip", after: { default: 0, beta: 2.5 } },
        { key: "GroupSpecialUsableGroup", name: "vip", after: { "+:beta": "Try it", "-:default": "" } },
        { key: "AutoGroups", name: "", after: ["beta", "default"] },
      ];
      const made = await plan(changes);
      expect(made.warnings).toMatchObject([
        {
          code: "price_free",
          key: "GroupGroupRatio",
          name: "vip: default",
          params: { before: 0.8, after: 0 },
        },
      ]);
      expect((await apply(made, changes)).success).toBe(true);
      const special = { added: { beta: "Try it" }, removed: new Set(["default"]) };
      expect(options()).toEqual([
        { vip: { default: 0, beta: 2.5 } },
        ["beta", "default"],
        { vip: special },
      ] as never);
      expect(app.deps.prices.callPrice("a", "default", "vip")).toMatchObject({
        groupRatio: 0,
        userGroupRatio: 0,
      });
      const { id, changes: written = [] } = await newest();
      expect(written.map(({ key, name }) => `${key} ${name}`)).toEqual([
        "AutoGroups ",
        "GroupGroupRatio vip",
        "GroupSpecialUsableGroup vip",
      ]);
      expect((await call("POST", `/revisions/${id}/undo`, {})).success).toBe(true);
      expect(options()).toEqual(before);
    });

    test("what is wrong in them is refused before it is planned", async () => {
      const refused = async (key: string, name: string, after: unknown) =>
        (await call("POST", "/plan", { changes: [{ key, name, after }], days: 0 })).code;
      expect(await refused("GroupGroupRatio", "vip", { default: -1 })).toBe("option_group_ratio_negative");
      expect(await refused("GroupGroupRatio", "vip", 0.5)).toBe("option_bad_override");
      expect(await refused("AutoGroups", "", ["auto"])).toBe("option_group_auto");
      expect(await refused("GroupSpecialUsableGroup", "vip", { "+:a": 1 })).toBe("option_bad_special");
    });

    test("a group that one of them names, or a key's own list, keeps its ratio", async () => {
      const holding = async (): Promise<string[]> => {
        const after = '{"default":1,"vip":0.5}';
        const { body } = await put("GroupRatio", after);
        if (body.success) await app.deps.options.set("GroupRatio", '{"default":1,"vip":0.5,"beta":2}');
        else expect(body.code).toBe("price_group_in_use");
        const made = await plan([{ key: "GroupRatio", name: "beta", after: null }]);
        const [warning] = made.warnings.filter(({ code }) => code === "group_in_use");
        expect(warning !== undefined).toBe(!body.success);
        return warning ? [String(warning.params["options"]), String(warning.params["keys"])] : [];
      };
      expect(await holding()).toEqual([]);
      const { options: store } = app.deps;
      for (const [key, value] of [
        ["GroupGroupRatio", { beta: { default: 1 } }],
        ["GroupGroupRatio", { vip: { beta: 1 } }],
        ["AutoGroups", ["default", "beta"]],
        ["GroupSpecialUsableGroup", { vip: { "+:beta": "" } }],
        ["GroupSpecialUsableGroup", { beta: { "-:default": "" } }],
      ] as const) {
        const old = store.text(key);
        await store.set(key, JSON.stringify(value));
        expect([key, await holding()]).toEqual([key, [key, "0"]]);
        await store.set(key, old);
      }
      const member = await app.createUser();
      const { id } = await app.createToken(member.id, { group: "auto", autoGroups: "default,beta" });
      await app.createToken(member.id, { group: "auto", autoGroups: "default,betamax" });
      expect(await holding()).toEqual(["", "1"]);
      const { tokens } = app.deps.db.t;
      await app.deps.db.orm.update(tokens).set({ autoGroups: "" }).where(eq(tokens.id, id));
      expect(await holding()).toEqual([]);
    });
  });

  test("a draft that somebody changed since it was read is not applied, and nothing of it is lost", async () => {
    const changes = [{ key: "ModelRatio", name: "a", after: 4 }];
    const draft = (await call<{ id: number; version: number }>("POST", "/drafts", { changes }, admin)).data;
    const made = await plan(changes);
    const more = [...changes, { key: "ModelRatio", name: "b", after: 9 }];
    await call("PUT", "/drafts", { id: draft.id, version: draft.version, changes: more }, admin);
    const before = await latest();
    const of = { draft_id: draft.id, draft_version: draft.version };
    expect((await apply(made, changes, of)).code).toBe("price_draft_changed");
    expect(await latest()).toBe(before);
    expect((await apply(made, changes, { ...of, draft_version: draft.version + 1 })).success).toBe(true);
  });

  test("a draft that is applied is done with, by the revision that it became", async () => {
    const changes = [{ key: "ModelRatio", name: "a", after: 1.5 }];
    const draft = (await call<{ id: number }>("POST", "/drafts", { title: "May", changes }, admin)).data;
    const made = await plan(changes);
    const { revision } = (await apply(made, changes, { draft_id: draft.id })).data;
    expect(await newest()).toMatchObject({ id: revision, draft_id: draft.id });
    const { items } = (await call<{ items: { id: number }[] }>("GET", "/drafts?state=applied")).data;
    expect(items[0]).toMatchObject({ id: draft.id, title: "May", state: "applied", revision_id: revision });
    const again = [{ key: "ModelRatio", name: "a", after: 1.6 }];
    expect((await apply(await plan(again), again, { draft_id: draft.id })).code).toBe("price_draft_closed");
    expect(app.deps.options.get("ModelRatio")["a"]).toBe(1.5);
  });

  describe("an undo", () => {
    test("is a new revision with the inverse, and can be undone itself", async () => {
      const changes = [
        { key: "ModelRatio", name: "a", after: 1.5 },
        { key: "ModelRatio", name: "c", after: 4 },
        { key: "ModelRatio", name: "b", after: null },
      ];
      const { revision } = (await apply(await plan(changes), changes)).data;
      const undone = await call<{ revision: number; changes: number; skipped: Change[] }>(
        "POST",
        `/revisions/${revision}/undo`,
        { note: "a slip" },
      );
      expect(undone.data).toEqual({ revision: revision + 1, changes: 3, skipped: [] });
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 2 });
      expect(await newest()).toMatchObject({
        kind: "undo",
        undo_of: revision,
        note: "a slip",
        username: "chief",
      });
      expect((await call<Revision>("GET", `/revisions/${revision}`)).data.undone_by).toBe(revision + 1);
      expect((await call("POST", `/revisions/${revision}/undo`, {})).code).toBe("price_undo_empty");
      expect((await call("POST", `/revisions/${revision + 1}/undo`, {})).success).toBe(true);
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1.5, c: 4 });
    });

    test("leaves alone what was changed since, unless it is ticked", async () => {
      const changes = [
        { key: "ModelRatio", name: "a", after: 1.5 },
        { key: "ModelRatio", name: "b", after: 3 },
      ];
      const { revision } = (await apply(await plan(changes), changes)).data;
      await put("ModelRatio", '{"a":1.5,"b":9}');
      const preview = await call<{ changes: Change[]; skipped: Change[] }>(
        "GET",
        `/revisions/${revision}/undo`,
      );
      expect(preview.data).toMatchObject({
        changes: [{ name: "a", before: 1.5, after: 1 }],
        skipped: [{ name: "b", before: 2, after: 9 }],
      });
      const undone = await call<{ skipped: Change[] }>("POST", `/revisions/${revision}/undo`, {});
      expect(undone.data.skipped).toMatchObject([{ name: "b" }]);
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 9 });
      const include = [{ key: "ModelRatio", name: "b" }];
      expect((await call("POST", `/revisions/${revision}/undo`, { include })).success).toBe(true);
      expect(app.deps.options.get("ModelRatio")).toEqual({ a: 1, b: 2 });
    });
  });

  test("administrators read, plan and draft; root alone applies, schedules and undoes; others see nothing", async () => {
    const changes = [{ key: "ModelRatio", name: "a", after: 1.5 }];
    const made = (await call<Plan>("POST", "/plan", { changes, days: 0 }, admin)).data;
    const draft = (await call<{ id: number }>("POST", "/drafts", { changes }, admin)).data;
    expect((await call("GET", "/revisions", undefined, admin)).success).toBe(true);
    const soon = Math.floor(Date.now() / 1000) + 3600;
    const body = { plan_hash: made.plan_hash, parent: made.parent, changes };
    const forRoot: [string, string, unknown][] = [
      ["POST", "/apply", body],
      ["POST", `/revisions/${made.parent}/undo`, {}],
      ["PUT", "/drafts", { id: draft.id, version: 1, effective_at: soon, parent: made.parent }],
    ];
    for (const [method, path, sent] of forRoot)
      expect([path, (await app.call(method, `/api/price${path}`, sent, admin)).status]).toEqual([path, 403]);
    const forAdmins: [string, string, unknown][] = [
      ["GET", "/revisions", undefined],
      ["GET", `/revisions/${made.parent}`, undefined],
      ["GET", `/revisions/${made.parent}/undo`, undefined],
      ["GET", "/drafts", undefined],
      ["POST", "/drafts", { changes }],
      ["PUT", "/drafts", { id: draft.id, version: 1 }],
      ["DELETE", `/drafts/${draft.id}`, undefined],
      ["POST", "/plan", { changes, days: 0 }],
    ];
    for (const [method, path, sent] of [...forRoot, ...forAdmins]) {
      expect([path, (await app.call(method, `/api/price${path}`, sent, user)).status]).toEqual([path, 403]);
      expect([path, (await app.call(method, `/api/price${path}`, sent)).status]).toEqual([path, 401]);
    }
    expect(await latest()).toBe(made.parent);
    expect((await call("PUT", "/drafts", forRoot[2]?.[2])).success).toBe(true);
    // What root has scheduled is root's.
    const edit = { id: draft.id, version: 2, title: "mine now" };
    expect((await app.call("PUT", "/api/price/drafts", edit, admin)).status).toBe(403);
    expect((await app.call("DELETE", `/api/price/drafts/${draft.id}`, undefined, admin)).status).toBe(403);
    expect((await call("DELETE", `/drafts/${draft.id}`)).success).toBe(true);
  });
});
