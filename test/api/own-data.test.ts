// A person's own data: all of it in one file without secrets, and erased so that the books still balance. Both databases.
import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { tellRootOfPlan } from "../../src/core/plans/by-hand.ts";
import { DRAWINGS } from "../../src/core/tasks/families.ts";
import { moveTask } from "../../src/core/tasks/store.ts";
import { tellRootOfCodes, tellRootOfRun } from "../../src/core/users/balance-changes.ts";
import { eraseSteps, resumeErasures } from "../../src/core/users/erasure.ts";
import { ownSections } from "../../src/core/users/own-data.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { until } from "../relay/support.ts";

type Told = { success: boolean; code?: string };

const ELEVEN_MINUTES_MS = 11 * 60_000;
const SECRET_PROMPT = "a heron in the rain, for my aunt Gisela";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  const clock = testClock();
  beforeAll(async () => {
    app = await startTestApp({ database, clock });
    admin = await app.createUser({ role: 100 });
  });
  afterAll(() => app.close());

  /** Somebody with a row in every table that knows people. */
  async function person(username: string): Promise<TestUser & { key: string }> {
    const user = await app.createUser({ username });
    const mail = `${username}@mail.example`;
    const { users } = app.deps.db.t;
    await app.deps.db.orm.update(users).set({ email: mail, emailKey: mail }).where(eq(users.id, user.id));
    const { key } = await app.createToken(user.id, { name: `laptop of ${username}` });
    const { db } = app.deps;
    const { drawings, identities, outbox, tasks } = db.t;
    const at = Math.floor(clock.nowMs() / 1000);
    await db.orm.insert(identities).values({
      userId: user.id,
      provider: "github",
      subject: `hub-subject-${user.id}`,
      label: `${username}-hub`,
      createdAt: at,
    });
    await db.orm.insert(drawings).values({ userId: user.id, prompt: SECRET_PROMPT, progress: "100%" });
    await db.orm.insert(tasks).values({ userId: user.id, data: SECRET_PROMPT, progress: "100%" });
    await db.orm.insert(outbox).values({
      userId: user.id,
      kind: "operator",
      letterSealed: "s1.sealed-letter",
      createdAt: at,
      nextAt: at + 10_000,
    });
    await app.deps.ledger.log({
      type: 5,
      userId: user.id,
      username,
      content: `${username} could not: ${SECRET_PROMPT}`,
    });
    await app.deps.ledger.flush();
    const given = { id: user.id, quota_change: 700, quota_reason: `for ${username}` };
    expect((await app.call<Told>("PUT", "/api/user/", given, admin)).body.success).toBe(true);
    return { ...user, key };
  }
  const read = async (user: TestUser) => {
    const answer = await fetch(`${app.url}/api/user/self/export`, { headers: user.headers });
    return { answer, text: await answer.text() };
  };

  test("one file holds every row of the person and no secret, and nobody else's", async () => {
    const anna = await person("anna");
    await person("bert");
    const { answer, text } = await read(anna);
    expect(answer.headers.get("content-disposition")).toMatch(
      /^attachment; filename="my-data-[\d-]+\.json"$/,
    );
    const data = JSON.parse(text) as Record<string, unknown[]>;
    for (const { name } of ownSections(app.deps.db)) expect(data[name]).toBeArray();
    expect(data["account"]).toMatchObject({ username: "anna", email: "anna@mail.example", quota: 700 });
    expect(data["keys"]).toMatchObject([{ name: "laptop of anna" }]);
    expect(data["identities"]).toMatchObject([{ provider: "github", label: "anna-hub" }]);
    expect(data["balance_entries"]).toMatchObject([{ kind: "admin", amount: 700 }]);
    expect(data["drawings"]).toMatchObject([{ prompt: SECRET_PROMPT }]);
    expect(data["letters_waiting"]).toMatchObject([{ kind: "operator" }]);
    expect(JSON.stringify(data["log"])).toContain("anna could not");
    for (const secret of [anna.key, "sealed-letter", "_sealed", "_hash", "password_hash", "bert"])
      expect(text).not.toContain(secret);
  });

  test("every table that knows people is in the file, or named here with its reason", () => {
    const elsewhere = new Map([
      ["logs", "the file's log"],
      ["users", "the file's account"],
      ["rollups", "sums of the log"],
      ["redemptions", "who made a code; what was redeemed is a balance entry"],
      ["reservations", "a moment of a call"],
      ["remoteObjects", "ids at providers"],
      ["authFlows", "hashes for ten minutes"],
      ["userDevices", "hashes"],
      ["totps", "secrets"],
      ["backupCodes", "hashes"],
      ["userBulkItems", "what administrators did stands in the log"],
      ["userImportRows", "what administrators did stands in the log"],
      ["priceRevisions", "acts of administrators"],
      ["priceDrafts", "acts of administrators"],
      ["costImports", "acts of administrators"],
      ["channelCosts", "acts of administrators"],
      ["rollupsByUser", "sums of the log"],
      ["rollupsByUserModel", "sums of the log"],
      ["rollupsByToken", "sums of the log"],
    ]);
    const known = new Set(ownSections(app.deps.db).map(({ table }) => table as object));
    const missing = Object.entries(app.deps.db.t).filter(
      ([name, table]) => "userId" in table && !known.has(table) && !elsewhere.has(name),
    );
    expect(missing.map(([name]) => name)).toEqual([]);
  });

  test("erasing forgets name, address and texts everywhere, and the books balance", async () => {
    const gisela = await person("gisela");
    // What stays open elsewhere: an administrator's change in the operator's inbox, a file of accounts, a run of her own.
    const helper = await app.createUser({ role: 10 });
    const more = { id: gisela.id, quota_change: 1, quota_reason: "more" };
    await app.call("PUT", "/api/user/", more, helper);
    await app.call("PUT", "/api/user/", { ...more, quota_change: -1 }, helper);
    const { inboxItems } = app.deps.db.t;
    const budget = { user: "gisela", used: "$9", budget: "$10" };
    app.deps.inbox.raise({ kind: "budget", subject: String(gisela.id), params: budget });
    // What she did herself as an administrator, beyond the items of her own that there may be, and what was done to her.
    const by = { role: 10, quota: 0, address: "", userAgent: "", authMethod: "session" } as const;
    const her = { ...by, id: gisela.id, username: "gisela" };
    const theirs = { ...by, id: helper.id, username: helper.username };
    for (let run = 1; run <= 52; run++) tellRootOfRun(app.deps, her, run, 5, 2);
    tellRootOfCodes(app.deps, her, { first: gisela.id, name: "spring" }, 5);
    const plan = { id: 1, title: "Gift", isGiven: true };
    tellRootOfPlan(app.deps, her, theirs, plan);
    tellRootOfPlan(app.deps, theirs, her, plan);
    // As earlier builds wrote them: whom they name stood in their subjects alone.
    app.deps.inbox.raise({
      kind: "plan_by_hand",
      subject: `${helper.id}:${gisela.id}:given:9`,
      params: { admin: helper.username, user: "gisela", what: "+ Gift" },
    });
    app.deps.inbox.raise({
      kind: "codes",
      subject: `${gisela.id}:${helper.id}:summer`,
      params: { admin: "gisela", name: "summer", what: "$5" },
    });
    await until(async () => {
      const items = await app.deps.db.orm.select().from(inboxItems);
      return items.filter(({ params }) => params.includes("gisela")).length === 2 + 51 + 5 || undefined;
    });
    const { userBulks, userImportRows } = app.deps.db.t;
    const actor = JSON.stringify({ id: gisela.id, username: "gisela", address: "192.0.2.7" });
    await app.deps.db.orm.insert(userBulks).values({
      action: "import",
      params: "{}",
      actor,
      actorId: gisela.id,
      total: 1,
      createdAt: 1,
      finishedAt: 1,
    });
    await app.deps.db.orm
      .insert(userImportRows)
      .values({ bulkId: 1, line: 2, userId: gisela.id, username: "gisela", state: 1 });
    await app.deps.ledger.flush();
    expect((await app.call<Told>("DELETE", "/api/user/self", { erase: true }, gisela)).body.success).toBe(
      true,
    );
    // A row that is written late, by a call that was under way.
    const { marks, users } = app.deps.db.t;
    await app.deps.ledger.log({
      type: 5,
      userId: gisela.id,
      username: "gisela",
      tokenName: "laptop of gisela",
      content: "模型倍率 1.00",
    });
    await app.deps.ledger.flush();
    await resumeErasures(app.deps);
    const dump: string[] = [];
    for (const table of Object.values(app.deps.db.t))
      dump.push(JSON.stringify(await app.deps.db.orm.select().from(table as typeof users)));
    for (const trace of [
      "gisela",
      "192.0.2.7",
      "laptop of gisela",
      "gisela@mail.example",
      "gisela-hub",
      `hub-subject-${gisela.id}`,
      "for gisela",
      "gisela could not",
    ])
      expect([trace, dump.some((text) => text.includes(trace))]).toEqual([trace, false]);
    expect(dump.join("")).toContain(helper.username);
    const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, gisela.id));
    expect(row).toMatchObject({ username: `erased@${gisela.id}`, email: "", displayName: "", quota: 700 });
    expect((await audit(app.deps.db)).differences).toEqual([]);
    const called = await fetch(`${app.url}/v1/models`, {
      headers: { authorization: `Bearer ${gisela.key}` },
    });
    expect(called.status).toBe(401);
    // The name is free again, and the work is over after an hour.
    const again = { username: "gisela", password: "another password" };
    expect((await app.call<Told>("POST", "/api/user/", again, admin)).body.success).toBe(true);
    clock.advance(2 * 3_600_000);
    await resumeErasures(app.deps);
    const open = (await app.deps.db.orm.select().from(marks)).filter(({ key }) => key.startsWith("erase:"));
    expect(open).toEqual([]);
  });

  test("goes on while a provider may still say what became of something, a few rows at a time and no row twice", async () => {
    const hilda = await person("hilda");
    const { db } = app.deps;
    const { drawings, marks } = db.t;
    const own = eq(drawings.userId, hilda.id);
    const row = {
      userId: hilda.id,
      mjId: "slow",
      submitTimeMs: 1,
      prompt: SECRET_PROMPT,
      status: "SUBMITTED",
    };
    const [slow] = await db.orm.insert(drawings).values(row).returning();
    const more = Array.from({ length: 1200 }, () => ({ ...row, mjId: "", progress: "100%" }));
    for (let at = 0; at < more.length; at += 400)
      await db.orm.insert(drawings).values(more.slice(at, at + 400));
    const texts = async () =>
      (await db.orm.select().from(drawings).where(own)).filter(
        (each) => each.prompt + each.promptEn + each.imageUrl,
      );
    const isOpen = async () =>
      (
        await db.orm
          .select()
          .from(marks)
          .where(eq(marks.key, `erase:${hilda.id}`))
      ).length === 1;
    // As the call does it, without what it begins in the background.
    await db.atomic((tx) => eraseSteps(tx, app.deps, hilda.id));
    const updates = spyOn(db.orm, "update");
    const rounds = async () => {
      updates.mockClear();
      await resumeErasures(app.deps);
      return updates.mock.calls.filter(([table]) => table === (drawings as object)).length;
    };
    try {
      expect([await rounds(), await texts()]).toEqual([3, []]);
      expect(await rounds()).toBe(0);
      clock.advance(5 * 3_600_000);
      const news = { promptEn: "a heron", imageUrl: "https://pictures.example/heron.png" };
      await moveTask(app.deps, DRAWINGS, slow?.id ?? 0, news);
      expect([await rounds(), await texts(), await isOpen()]).toEqual([1, [], true]);
      await moveTask(app.deps, DRAWINGS, slow?.id ?? 0, { ...news, progress: "100%" });
      expect([await rounds(), await texts(), await isOpen()]).toEqual([1, [], false]);
    } finally {
      updates.mockRestore();
    }
  });

  test("both ask for fresh proof; root is not erased", async () => {
    const fritz = await app.createUser({ username: "fritz" });
    clock.advance(ELEVEN_MINUTES_MS);
    const { answer, text } = await read(fritz);
    expect([answer.status, (JSON.parse(text) as Told).code]).toEqual([403, "verification_required"]);
    const refused = await app.call<Told>("DELETE", "/api/user/self", { erase: true }, fritz);
    expect([refused.status, refused.body.code]).toEqual([403, "verification_required"]);
    const boss = await app.createUser({ role: 100 });
    expect((await app.call<Told>("DELETE", "/api/user/self", { erase: true }, boss)).body.code).toBe(
      "user_root_self_undeletable",
    );
  });
});
