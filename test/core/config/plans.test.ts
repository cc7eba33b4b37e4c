// Plans in a settings file: exported, planned, applied and pruned by their titles; what was bought keeps its terms.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

interface Judged {
  status: string;
  changes: { name: string; field: string; action: string }[];
  guards: { code: string; name: string }[];
  problems: { path: string[]; code: string }[];
}

type Document = Record<string, unknown>;
const PRO = { quota: 5_000_000, duration_unit: "month", price: "9.90", currency: "USD", reset: "week" };
const SMALL = { quota: 500_000, duration_unit: "day", wallet_price: 100_000, enabled: false };

describe.each(DATABASE_KINDS)("plans of a settings file on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  beforeAll(async () => {
    app = await startTestApp({ database });
    root = await app.createUser({ role: 100 });
  });
  afterAll(() => app.close());

  async function send(verb: "plan" | "apply", document: Document, more: Document = {}): Promise<Judged> {
    const body = { document: { format: 1, ...document }, ...more };
    const answer = await app.call<{ data: Judged }>("POST", `/api/config/${verb}`, body, root);
    expect([answer.status, answer.text.slice(0, 16)]).toEqual([200, '{"success":true,']);
    return answer.body.data;
  }
  const exported = async (): Promise<Document> => {
    const { body } = await app.call<{ data: { document: Document } }>("GET", "/api/config", undefined, root);
    return body.data.document;
  };
  const problemsOf = ({ problems }: Judged) => problems.map(({ path, code }) => `${path.join(".")} ${code}`);

  test("what is applied is exported, says nothing the second time, and is on the list", async () => {
    expect((await exported())["plans"]).toEqual({});
    const made = await send("apply", { plans: { Pro: PRO, Small: SMALL } });
    expect([made.status, made.problems]).toEqual(["applied", []]);
    const { plans } = await exported();
    expect(plans).toEqual({ Pro: PRO, Small: SMALL });
    expect(await send("plan", { prune: true, plans })).toMatchObject({ status: "nothing", changes: [] });
    // An amount may be written as a number; 9.9 dollars are 9.90.
    expect((await send("plan", { plans: { Pro: { ...PRO, price: 9.9 } } })).status).toBe("nothing");
    const { body } = await app.call<{ data: { title: string; quota: number }[] }>(
      "GET",
      "/api/plan/",
      undefined,
      root,
    );
    expect(JSON.stringify(body)).toContain('"title":"Pro"');
  });

  test("names are exact: what a file leaves out goes back to what is shipped; a stale plan is refused", async () => {
    const change = { plans: { Pro: { quota: 6_000_000, duration_unit: "month", wallet_price: 7 } } };
    const looked = await send("plan", change);
    expect(looked.changes.map(({ name, field, action }) => `${action} ${name} ${field}`).toSorted()).toEqual(
      ["currency", "price", "quota", "reset", "wallet_price"].map((field) => `change Pro ${field}`),
    );
    const { plan_hash: hash } = looked as Judged & { plan_hash: string };
    expect((await send("apply", { plans: { Pro: PRO, More: SMALL } }, { plan_hash: hash })).status).toBe(
      "mismatch",
    );
    expect((await send("apply", change, { plan_hash: hash })).status).toBe("applied");
    expect(((await exported())["plans"] as Document)["Pro"]).toEqual(change.plans.Pro);
  });

  test("terms that nobody could keep are refused at their place, and nothing of the file is done", async () => {
    const before = await exported();
    const wrong: [Document, string][] = [
      [{ ...PRO, quota: 0 }, "plans.Pro.quota quota_out_of_range"],
      [{ ...PRO, quota: "many" }, "plans.Pro.quota option_not_int"],
      [{ ...PRO, duration_unit: "moon" }, "plans.Pro.duration_unit option_not_one_of"],
      [{ ...PRO, currency: "XXXX" }, "plans.Pro.currency plan_price"],
      [{ ...PRO, group: "nowhere" }, "plans.Pro.group plan_group"],
      [{ ...PRO, colour: "red" }, "plans.Pro.colour config_unknown"],
      [{ quota: 1, duration_unit: "day" }, "plans.Pro.price plan_no_price"],
      [{ duration_unit: "day", wallet_price: 1 }, "plans.Pro config_field_missing"],
    ];
    for (const [terms, said] of wrong) {
      const answer = await send("apply", { plans: { Pro: terms, Other: SMALL } });
      expect([answer.status, problemsOf(answer)]).toEqual(["invalid", [said]]);
    }
    expect(await exported()).toEqual(before);
    // A group that the same file brings is one.
    const groups = { groups: { gold: { ratio: 1 } }, plans: { Pro: { ...PRO, group: "gold" } } };
    expect((await send("apply", groups)).status).toBe("applied");
  });

  test("what pruning takes away is not sold any more; all of them go only where somebody means it", async () => {
    const plans = { Pro: { ...PRO, group: "gold" } };
    expect((await send("apply", { prune: true, plans })).status).toBe("applied");
    expect((await exported())["plans"]).toEqual(plans);
    const none = await send("apply", { prune: true, plans: {} });
    expect([none.status, none.guards.map(({ code, name }) => `${code} ${name}`)]).toEqual([
      "guarded",
      ["config_emptied plans"],
    ]);
    expect((await send("apply", { prune: true, plans: {} }, { accept_guards: true })).status).toBe("applied");
    expect((await exported())["plans"]).toEqual({});
  });
});
