// Administration of users over the wire: balances changed by a difference, keys seen without being seen, ranks, and the
// specification's addresses of the editor. On both databases.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { desc, eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { databaseVersion } from "../../src/core/site/setup.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";

interface Told<T = unknown> {
  success: boolean;
  message: string;
  code?: string;
  data: T;
}

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    let root: TestUser;
    let admin: TestUser;

    beforeAll(async () => {
      app = await startTestApp({ database });
      root = await app.createUser({ role: Role.root });
      admin = await app.createUser({ role: Role.admin });
      // The pages stand behind the setup.
      await app.deps.db.orm.insert(app.deps.db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
    });
    afterAll(() => app.close());
    afterEach(async () => {
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    });

    const ask = <T>(method: string, path: string, body: unknown, as: TestUser) =>
      app.call<Told<T>>(method, path, body, as).then((answer) => answer.body);
    const balance = async (id: number) => {
      const { users } = app.deps.db.t;
      const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, id));
      return row?.quota ?? 0;
    };

    test("a difference is added to whatever the balance is by then, and logged with both ends", async () => {
      const user = await app.createUser({ quota: 1000 });
      const change = (quota: number) =>
        ask("PUT", "/api/user/", { id: user.id, quota_change: quota, quota_reason: "test" }, admin);
      const answers = await Promise.all(Array.from({ length: 10 }, () => change(100)));
      expect(answers.every(({ success }) => success)).toBe(true);
      expect(await balance(user.id)).toBe(2000);
      expect((await change(-1500)).success).toBe(true);
      expect(await balance(user.id)).toBe(500);
      const { logs } = app.deps.db.t;
      const [row] = await app.deps.db.orm
        .select()
        .from(logs)
        .where(eq(logs.userId, user.id))
        .orderBy(desc(logs.id))
        .limit(1);
      expect(row).toMatchObject({ type: 3, content: expect.stringMatching(/^管理员将用户额度从 .*修改为 /) });
      expect(JSON.parse(row?.other ?? "{}")).toMatchObject({
        before: 2000,
        after: 500,
        admin_info: { admin_id: admin.id },
      });
      // It is their own log too: they see that it happened, not who did it.
      const own = await app.call("GET", "/api/log/self?p=1&page_size=10&type=3", undefined, user);
      expect(own.text).toContain("管理员将用户额度从");
      expect(own.text).not.toContain(admin.username);
    });

    test("where notices of one's own and higher ranks go stands in no list; of lower ranks, and oneself, it does", async () => {
      const { users } = app.deps.db.t;
      const user = await app.createUser();
      const peer = await app.createUser({ role: Role.admin });
      const hook = (id: number) => `https://hooks.example/${id}-secret`;
      for (const { id } of [root, admin, peer, user]) {
        const setting = JSON.stringify({ notify_type: "webhook", webhook_url: hook(id) });
        await app.deps.db.orm.update(users).set({ setting }).where(eq(users.id, id));
      }
      const seen = async (who: TestUser, of: TestUser) => {
        const path = `/api/user/search?keyword=${of.username}`;
        const { data } = await ask<{ items: { id: number }[] }>("GET", path, undefined, who);
        expect(data.items.map(({ id }) => id)).toEqual([of.id]);
        return JSON.stringify(data).includes(hook(of.id));
      };
      expect(await Promise.all([root, peer, admin, user].map((of) => seen(admin, of)))).toEqual([
        false,
        false,
        true,
        true,
      ]);
      expect(await Promise.all([root, peer, user].map((of) => seen(root, of)))).toEqual([true, true, true]);
    });

    test("a difference and a balance together, and absurd ones, are refused and change nothing", async () => {
      const user = await app.createUser({ quota: 1000 });
      for (const body of [
        { quota: 5, quota_change: 5 },
        { quota_change: 1.5 },
        { quota_change: Number.MAX_SAFE_INTEGER },
        { quota_change: "many" },
      ])
        expect((await ask("PUT", "/api/user/", { id: user.id, ...body }, admin)).success).toBe(false);
      expect(await balance(user.id)).toBe(1000);
    });

    test("nobody but root changes the own account or an equal's through administration", async () => {
      const peer = await app.createUser({ role: Role.admin, quota: 10 });
      for (const id of [admin.id, peer.id, root.id])
        expect(
          await ask("PUT", "/api/user/", { id, quota_change: 1, quota_reason: "x" }, admin),
        ).toMatchObject({
          success: false,
          message: "无权更新同权限等级或更高权限等级的用户信息",
        });
      expect(
        (await ask("PUT", "/api/user/", { id: root.id, quota_change: 1, quota_reason: "x" }, root)).success,
      ).toBe(true);
      expect(
        (await ask("PUT", "/api/user/", { id: peer.id, quota_change: 1, quota_reason: "x" }, root)).success,
      ).toBe(true);
    });

    test("keys of a lower rank are listed by name and figures, without anything of the key", async () => {
      const user = await app.createUser({});
      const { key } = await app.createToken(user.id, { name: "laptop", remainQuota: 70, usedQuota: 0 });
      const peer = await app.createUser({ role: Role.admin });
      const path = `/api/user/${user.id}/keys`;
      const answer = await app.call<Told<Record<string, unknown>[]>>("GET", path, undefined, admin);
      expect(answer.body.data).toMatchObject([
        { name: "laptop", status: 1, remain_quota: 70, used_quota: 0, unlimited_quota: false },
      ]);
      const bare = key.replace("sk-", "");
      for (const part of [bare, bare.slice(0, 4), bare.slice(-4)]) expect(answer.text).not.toContain(part);
      expect((await ask("GET", `/api/user/${peer.id}/keys`, undefined, admin)).message).toBe(
        "无权获取同级或更高等级用户的信息",
      );
      expect((await ask("GET", "/api/user/999999/keys", undefined, admin)).message).toBe("用户不存在");
      expect((await app.call("GET", path, undefined, user)).status).toBe(403);
    });

    test("the specification's addresses lead to the drawers, for those who may open them", async () => {
      const user = await app.createUser({});
      const at = async (path: string, as?: TestUser) => {
        const answer = await app.call("GET", path, undefined, as);
        return answer.status === 302 ? answer.headers.get("location") : answer.status;
      };
      expect(await at("/user/edit/42", admin)).toBe("/user?edit=42");
      expect(await at("/channel/edit/7", admin)).toBe("/channel?edit=7");
      expect(await at("/channel/add", admin)).toBe("/channel?new=1");
      expect(await at("/user/edit", user)).toBe("/personal");
      expect(await at("/user/edit/42", user)).toBe(403);
      expect(await at("/user/edit/42")).toBe(`/login?next=${encodeURIComponent("/user/edit/42")}`);
    });

    test("the wizard can say which version of the database it found", async () => {
      expect(await databaseVersion(app.deps)).toMatch(/^\d+\.\d+/);
    });

    test("a page that is not there keeps the console around who is signed in, and offers guests the way in", async () => {
      const inside = await app.call("GET", "/redemtion", undefined, admin);
      expect(inside.status).toBe(404);
      expect(inside.text).toContain("data-palette");
      expect(inside.text).toContain(`href="/redemption"`);
      const outside = await app.call("GET", "/logn");
      expect(outside.status).toBe(404);
      expect(outside.text).not.toContain("data-palette");
      expect(outside.text).toContain(`href="/login"`);
    });
  });
}
