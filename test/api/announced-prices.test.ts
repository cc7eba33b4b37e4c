// Prices to come, as users are told of them: only announced drafts that are scheduled and that will happen, only to those who
// may call the models, in the prices of their group, and gone with their moment.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { applyDueDrafts } from "../../src/core/prices/drafts.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import type { TestClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Draft {
  id: number;
  version: number;
  announce: boolean;
  state: string;
}
interface Wire<T> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}

const DAY = 86_400;

describe.each(DATABASE_KINDS)("announced prices on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let user: TestUser;
  let inner: TestUser;
  let clock: TestClock;
  const now = () => Math.floor(clock.nowMs() / 1000);

  beforeAll(async () => {
    clock = testClock(Date.now());
    app = await startTestApp({ database, clock });
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
    root = await app.createUser({ role: 100 });
    admin = await app.createUser({ role: 10 });
    user = await app.createUser({ group: "half" });
    inner = await app.createUser({ group: "inner" });
    await app.createChannel({ models: "m-one,m-two", group: "default,half" });
    await app.createChannel({ models: "m-inner", group: "inner" });
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    await app.deps.options.set("ModelRatio", '{"m-one":1,"m-two":2,"m-inner":3}');
    await app.deps.options.set("CompletionRatio", '{"m-one":4}');
    await app.deps.options.set("GroupRatio", '{"default":1,"half":0.5,"inner":1}');
    for (const { id } of (await call<{ items: Draft[] }>("GET", "?state=scheduled")).data.items)
      await call("DELETE", `/${id}`);
  });

  const call = async <T>(method: string, path: string, body?: unknown, as = root): Promise<Wire<T>> =>
    (await app.call<Wire<T>>(method, `/api/price/drafts${path}`, body, as)).body;
  const latest = async () =>
    (await app.call<Wire<{ revision: number }>>("GET", "/api/price/revisions", undefined, root)).body.data
      .revision;
  const page = async (path: string, as?: TestUser, language = "en"): Promise<string> => {
    const headers = { "accept-language": language, ...as?.headers };
    const response = await fetch(app.url + path, { headers });
    expect(response.status).toBe(200);
    return (await response.text()).replaceAll("<!-- -->", "");
  };
  /** What stands above the list or the model, as text. */
  const told = async (path: string, as?: TestUser, language = "en"): Promise<string> => {
    const text = await page(path, as, language);
    const notice = /<aside class="alert alert-soft" data-tone="warning".*?<\/aside>/.exec(text)?.[0] ?? "";
    return notice.replaceAll(/<[^>]*>/g, "");
  };
  const ONE = { key: "ModelRatio", name: "m-one", after: 1.5 };
  const scheduled = async (changes: object[], announce = true, inSeconds = DAY): Promise<Draft> => {
    const made = await call<Draft>("POST", "", { title: "Winter", changes, announce });
    expect(made.data.announce).toBe(announce);
    const { id, version } = made.data;
    const effective_at = now() + inSeconds;
    const answer = await call<Draft>("PUT", "", { id, version, effective_at, parent: await latest() });
    expect([answer.message, answer.data.state]).toEqual(["", "scheduled"]);
    return answer.data;
  };

  test("say old and new in the visitor's group, above the list by name and with the model by price", async () => {
    await scheduled([ONE]);
    expect(await told("/pricing", user)).toMatch(/m-one: new prices from \d{4}-\d\d-\d\d \d\d:\d\d/);
    expect(await told("/pricing?model=m-one", user)).toContain(
      "Input $1.00 → $1.50 / 1M; Output $4.00 → $6.00 / 1M",
    );
    expect(await told("/pricing?model=m-one&group=default")).toContain("Input $2.00 → $3.00 / 1M");
    expect(await told("/pricing?model=m-two", user)).not.toContain("→");
    expect(await told("/pricing", user, "zh")).toContain("起执行新价格");
  });

  test("stand where somebody uses a key", async () => {
    await scheduled([ONE]);
    const [boot] = /"pricesToCome":\[.*?\]\}/.exec(await page("/token", user)) ?? [];
    expect(boot).toMatch(/"effective_at":\d+,"models":\["m-one"\]/);
  });

  test("are told to those alone who may call the model, and of a group to those who may use it", async () => {
    await scheduled([
      { key: "ModelRatio", name: "m-inner", after: 9 },
      { key: "GroupRatio", name: "inner", after: 0.8 },
    ]);
    for (const path of ["/pricing", "/pricing?model=m-one", "/token"])
      expect((await page(path, user)).includes("m-inner")).toBe(false);
    const ofInner = await told("/pricing", inner);
    expect(ofInner).toContain("m-inner: new prices from");
    expect(ofInner).toContain("ratio goes from 1 to 0.8");
    expect(await told("/pricing", user)).not.toContain("ratio goes from");
  });

  test("are not told before they are announced, and no longer once the schedule is lifted", async () => {
    const draft = await scheduled([ONE], false);
    expect(await told("/pricing", user)).not.toContain("new prices from");
    const { id } = draft;
    const shown = await call<Draft>("PUT", "", { id, version: draft.version, announce: true });
    expect([shown.data.announce, shown.data.state]).toEqual([true, "scheduled"]);
    expect(await told("/pricing", user)).toContain("new prices from");
    const lifted = await call<Draft>("PUT", "", { id, version: shown.data.version, effective_at: 0 });
    expect(lifted.data.state).toBe("open");
    expect(await told("/pricing", user)).not.toContain("new prices from");
  });

  test("are not promised where the draft will fail: somebody changed the name since", async () => {
    await scheduled([ONE]);
    expect(await told("/pricing", user)).toContain("m-one: new prices from");
    await app.deps.options.set("ModelRatio", '{"m-one":7,"m-two":2,"m-inner":3}');
    expect(await told("/pricing", user)).not.toContain("new prices from");
  });

  test("come true at their moment and are a notice no longer", async () => {
    await scheduled([ONE], true, 60);
    expect(await told("/pricing?model=m-one", user)).toContain("Input $1.00 → $1.50 / 1M");
    clock.advance(61_000);
    await applyDueDrafts(app.deps);
    expect(await told("/pricing?model=m-one", user)).toBe("");
    expect((await page("/pricing?model=m-one", user)).includes("<dd>$1.50 / 1M</dd>")).toBe(true);
  });

  test("a scheduled draft is announced by root alone", async () => {
    const { id, version } = await scheduled([ONE], false);
    const refused = await call("PUT", "", { id, version, announce: true }, admin);
    expect([refused.success, refused.code]).toEqual([false, "price_draft_scheduled"]);
  });
});
