// Accounts in and out as CSV: exported as filtered, formulas defused; brought in after a look, each line once. Both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { resumeBulks } from "../../src/core/users/bulk-run.ts";
import type { BulkJson } from "../../src/core/users/bulk.ts";
import type { ImportReport } from "../../src/core/users/import/start.ts";
import { readBlock } from "../../src/shared/tsv.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { until } from "../relay/support.ts";

interface Told<T> {
  success: boolean;
  code?: string;
  data: T;
}
interface Looked {
  report: ImportReport;
}

const UNITS_PER_DOLLAR = 500_000;

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let root: TestUser;
  beforeAll(async () => {
    app = await startTestApp({ database });
    admin = await app.createUser({ username: "keeper", role: 10 });
    root = await app.createUser({ username: "owner", role: 100 });
  });
  afterAll(() => app.close());

  const rowOf = async (username: string) => {
    const { users } = app.deps.db.t;
    return (await app.deps.db.orm.select().from(users).where(eq(users.username, username)))[0];
  };
  const look = async (csv: string, by = admin) =>
    (await app.call<Told<Looked>>("POST", "/api/user/import", { csv }, by)).body;
  const begin = (csv: string, plan: string, reason = "course", by = admin) =>
    app.call<Told<{ id: number }>>("POST", "/api/user/import", { csv, plan, reason }, by);
  const finished = (id: number) =>
    until(async () => {
      const path = `/api/user/bulk/${id}`;
      const { data } = (await app.call<Told<BulkJson>>("GET", path, undefined, root)).body;
      return data.finished ? data : undefined;
    });
  const exported = async (query: string, by = admin) => {
    const answer = await fetch(`${app.url}/api/user/export?${query}`, { headers: by.headers });
    const text = await answer.text();
    const [heads = [], ...lines] = readBlock(text.replace(/^\uFEFF/, ""), ",");
    return {
      answer,
      text,
      rows: lines.map((cells) => Object.fromEntries(heads.map((name, at) => [name, cells[at] ?? ""]))),
    };
  };

  test("a file makes accounts and changes others; the books balance, and nothing of it stays readable", async () => {
    await app.createUser({ username: "known", quota: 1_000_000 });
    const csv = [
      "Username;Email;password;group;remark;credit_usd",
      "anna;anna@mail.example;a long password;vip;=cmd|calc;2.5",
      'bert;bert@mail.example;;;"two\nlines";',
      "known;;;vip;;-1",
      "",
    ].join("\r\n");
    const { report } = (await look(csv)).data;
    expect(report).toMatchObject({ create: 2, change: 1, unchanged: 0, problem_count: 0, earlier: null });
    expect([report.added, report.taken]).toEqual([2.5 * UNITS_PER_DOLLAR, UNITS_PER_DOLLAR]);
    expect(await rowOf("anna")).toBeUndefined();

    expect((await begin(csv, report.plan, "")).body.code).toBe("quota_reason_missing");
    const asked = await begin(csv, report.plan);
    expect(await finished(asked.body.data.id)).toMatchObject({
      action: "import",
      total: 3,
      done: 3,
      failed: 0,
    });
    expect(await rowOf("anna")).toMatchObject({
      group: "vip",
      quota: 2.5 * UNITS_PER_DOLLAR,
      remark: "=cmd|calc",
    });
    // Root is told of credit by an administrator, whoever got it.
    const { inboxItems } = app.deps.db.t;
    const told = await until(async () => {
      const items = await app.deps.db.orm.select().from(inboxItems).where(eq(inboxItems.kind, "balance"));
      return items.length === 2 ? items.map(({ subject }) => subject) : undefined;
    });
    const ids = await Promise.all(["anna", "known"].map(async (name) => (await rowOf(name))?.id));
    expect(told.toSorted()).toEqual(ids.map((id) => `${admin.id}:${id}`).toSorted());
    expect(await rowOf("bert")).toMatchObject({
      passwordHash: "",
      email: "bert@mail.example",
      remark: "two\nlines",
    });
    expect(await rowOf("known")).toMatchObject({ group: "vip", quota: 500_000 });
    const { userImportRows } = app.deps.db.t;
    const kept = await app.deps.db.orm.select().from(userImportRows);
    expect(kept.map(({ rowSealed }) => rowSealed)).toEqual(["", "", ""]);
    const login = { username: "anna", password: "a long password" };
    expect((await app.call<Told<unknown>>("POST", "/api/user/login", login)).body.success).toBe(true);
    expect((await audit(app.deps.db)).differences).toEqual([]);

    // The same file again: somebody is told, and what it says is so already but for the money.
    expect((await look(csv)).data.report).toMatchObject({
      problem_count: 1,
      earlier: { id: asked.body.data.id },
    });
  });

  test("each wrong line is named; a file with one is not begun", async () => {
    const gone = await app.createUser({ username: "gone" });
    await app.call("DELETE", "/api/user/self", undefined, gone);
    const csv = [
      "id,username,email,display_name,password,group,remark,credit_usd",
      ",carl,carl@mail.example,,,nowhere,,",
      ",dave,,,,,,",
      ",erin,not an address,,,,,",
      ",finn,,,short,,,",
      ",gina,,,long enough,,,lots",
      ",hans,,,long enough,,,-1",
      ",ines,,,long enough,,,1,and more",
      ",ines2,,,long enough,,,",
      ",ines2,,,long enough,,,",
      "999999,,,,,vip,,",
      ",owner,,,,vip,,",
      ",gone,,,,vip,,",
      "x,,,,,vip,,",
    ].join("\n");
    const { report } = (await look(csv)).data;
    expect(report.problems.map(({ line, code }) => `${line} ${code}`)).toEqual([
      "2 group_unknown",
      "3 import_no_way_in",
      "4 mail_wrong",
      "5 password_short",
      "6 import_amount",
      "7 quota_out_of_range",
      "8 import_cells_many",
      "10 import_twice",
      "11 user_missing",
      "12 user_rank_update",
      "13 user_missing",
      "14 import_id",
    ]);
    expect((await begin(csv, report.plan)).body.code).toBe("import_problems");
    expect(await rowOf("ines2")).toBeUndefined();
  });

  test.each([
    ["", "import_empty"],
    ["username\n", "import_empty"],
    ["gruop,username\nvip,known", "import_column_unknown"],
    ["email,group\na@b.example,vip", "import_column_missing"],
    ["username,Username\na,b", "import_column_twice"],
    [`username\n${"x\n".repeat(10_001)}`, "import_too_large"],
  ])("no such file: %#", async (csv, code) => {
    expect((await look(csv)).code).toBe(code);
  });

  test("what was looked at is what is done, and the day's ceiling counts for the file as a whole", async () => {
    await app.createUser({ username: "lena" });
    const csv = "username,group\nlena,vip\n";
    const { plan } = (await look(csv)).data.report;
    await app.call("PUT", "/api/user/", { id: (await rowOf("lena"))?.id, group: "vip" }, root);
    expect((await begin(csv, plan)).body.code).toBe("import_changed");
    await app.deps.options.set("AdminBalanceDailyCeiling", String(10 * UNITS_PER_DOLLAR));
    const dear = "username,credit_usd\nlena,6\nanna,6\n";
    expect((await look(dear)).data.report.problems).toMatchObject([{ line: 0, code: "import_ceiling" }]);
    expect((await look(dear, root)).data.report.problem_count).toBe(0);
    await app.deps.options.set("AdminBalanceDailyCeiling", "");
  });

  test("a run that was killed goes on with the next line and does none twice", async () => {
    const csv = "username,credit_usd\nanna,1\nbert,1\n";
    const { plan } = (await look(csv)).data.report;
    const before = (await rowOf("anna"))?.quota ?? 0;
    const asked = await begin(csv, plan);
    const { id } = asked.body.data;
    await finished(id);
    const { userBulks, userImportRows } = app.deps.db.t;
    // As a kill leaves it: the second line waits still, the lease has run out.
    const line = {
      ...(
        await app.deps.db.orm
          .select()
          .from(userImportRows)
          .where(and(eq(userImportRows.bulkId, id), eq(userImportRows.line, 3)))
      )[0],
    };
    const anna = await rowOf("anna");
    const waiting = {
      userId: anna?.id,
      line: 4,
      id: 0,
      username: "anna",
      credit: 0,
      group: "svip",
      remark: "",
      email: "",
      password: "",
      display_name: "",
    };
    await app.deps.db.orm
      .update(userImportRows)
      .set({
        state: 0,
        line: 4,
        userId: anna?.id ?? 0,
        rowSealed: app.deps.seal.seal("user", JSON.stringify(waiting)),
      })
      .where(eq(userImportRows.id, line.id ?? 0));
    await app.deps.db.orm.update(userBulks).set({ finishedAt: 0, leaseUntil: 0 }).where(eq(userBulks.id, id));
    await resumeBulks(app.deps);
    expect(await rowOf("anna")).toMatchObject({ quota: before + UNITS_PER_DOLLAR, group: "svip" });
    expect(await finished(id)).toMatchObject({ done: 2, failed: 0 });
  });

  test("the filtered list as a file: formulas defused, notes of higher ranks and secrets left out", async () => {
    const { answer, text, rows } = await exported("group=vip");
    expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(answer.headers.get("content-disposition")).toMatch(
      /^attachment; filename="users-\d{4}-\d\d-\d\d\.csv"$/,
    );
    expect(rows.every(({ group }) => group === "vip")).toBe(true);
    const all = await exported("");
    const anna = all.rows.find(({ username }) => username === "anna");
    expect(anna).toMatchObject({ remark: "'=cmd|calc", email: "anna@mail.example", status: "enabled" });
    expect(text).not.toContain("$argon2");
    await app.call("PUT", `/api/user/${admin.id}/notes`, { remark: "watch this one" }, root);
    expect((await exported("")).text).not.toContain("watch this one");
    expect((await exported("", root)).text).toContain("watch this one");
    const list = await app.call("GET", "/api/user/search?keyword=keeper", undefined, admin);
    expect(list.text).not.toContain("watch this one");
    // What they may not read does not find them either: nobody probes what is noted of them, or of a peer.
    const peer = await app.createUser({ role: 10 });
    await app.call("PUT", `/api/user/${admin.id}/notes`, { flagged: true }, root);
    const found = async (query: string, as: TestUser) =>
      (
        await app.call<{ data: { items: { id: number }[] } }>(
          "GET",
          `/api/user/search?${query}`,
          undefined,
          as,
        )
      ).body.data.items.map(({ id }) => id);
    for (const query of ["keyword=watch%20this", "flagged=true"]) {
      for (const as of [admin, peer]) expect([query, await found(query, as)]).toEqual([query, []]);
      expect([query, await found(query, root)]).toEqual([query, [admin.id]]);
      expect((await exported(query)).rows).toEqual([]);
    }
    expect(await found("keyword=cmd", admin)).toHaveLength(1);
    // What comes out goes in again and changes nothing.
    expect((await look(all.text, root)).data.report).toMatchObject({ create: 0, change: 0 });
    const person = await app.createUser();
    const refused = await fetch(`${app.url}/api/user/export`, { headers: person.headers });
    expect(await refused.json()).toMatchObject({ success: false });
  });
});
