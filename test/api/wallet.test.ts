// Guarantees of codes, invitations and own settings: each code pays once, refusals say which, and the books balance.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { audit } from "../../src/core/ledger/audit.ts";
import { openSecret } from "../../src/core/users/webhook-secret.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";

interface Told<T = unknown> {
  success: boolean;
  message: string;
  data: T;
}
interface Code {
  id: number;
  key: string;
  status: number;
  name: string;
  quota: number;
  used_user_id: number;
  used_username: string;
}

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    let app: TestApp;
    let admin: TestUser;
    let user: TestUser;

    beforeAll(async () => {
      app = await startTestApp({ database });
      admin = await app.createUser({ role: Role.admin });
      user = await app.createUser({ quota: 1000 });
    });
    afterAll(() => app.close());
    afterEach(async () => {
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    });

    const ask = <T>(method: string, path: string, body: unknown, as: TestUser) =>
      app.call<Told<T>>(method, path, body, as).then((answer) => answer.body);
    const make = async (count = 1, quota = 500_000, name = "spring") =>
      (await ask<string[]>("POST", "/api/redemption/", { name, quota, count }, admin)).data;
    const codeOf = async (key: string) =>
      (await ask<{ items: Code[] }>("GET", `/api/redemption/search?keyword=${key}`, undefined, admin)).data
        .items[0];
    const balance = async (id: number) => {
      const { users } = app.deps.db.t;
      const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, id));
      return row?.quota ?? 0;
    };

    test("a batch makes so many different codes, all of them listed", async () => {
      const keys = await make(100);
      expect(new Set(keys).size).toBe(100);
      expect(keys.every((key) => /^[0-9a-f]{32}$/.test(key))).toBe(true);
      const page = await ask<{ items: Code[]; total: number }>(
        "GET",
        "/api/redemption/?p=1&page_size=50",
        undefined,
        admin,
      );
      expect(page.data.total).toBe(100);
      expect(page.data.items).toHaveLength(50);
      expect(keys).toContain(page.data.items[0]?.key ?? "");
    });

    test.each([
      [{ name: "", quota: 1, count: 1 }, "兑换码名称长度必须在1-20之间"],
      [{ name: "x".repeat(21), quota: 1, count: 1 }, "兑换码名称长度必须在1-20之间"],
      [{ name: "一".repeat(21), quota: 1, count: 1 }, "兑换码名称长度必须在1-20之间"],
      [{ name: "a", quota: 1, count: 0 }, "兑换码个数必须大于0"],
      [{ name: "a", quota: 1, count: 101 }, "一次兑换码批量生成的个数不能大于 100"],
    ])("%j is refused", async (body, message) => {
      expect(await ask("POST", "/api/redemption/", body, admin)).toMatchObject({ success: false, message });
    });

    test("a code is worth something", async () => {
      for (const quota of [0, -5, Number.MAX_SAFE_INTEGER])
        expect((await ask("POST", "/api/redemption/", { name: "a", quota, count: 1 }, admin)).success).toBe(
          false,
        );
    });

    test("redeeming credits its value, says who did it, and is logged in the documented words", async () => {
      const [key = ""] = await make();
      const before = await balance(user.id);
      expect(await ask("POST", "/api/user/topup", { key: ` ${key} ` }, user)).toMatchObject({
        success: true,
        data: 500_000,
      });
      expect(await balance(user.id)).toBe(before + 500_000);
      const code = await codeOf(key);
      expect(code).toMatchObject({ status: 3, used_user_id: user.id, used_username: user.username });
      const { logs } = app.deps.db.t;
      const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, user.id));
      expect(rows.at(-1)).toMatchObject({
        type: 1,
        content: `通过兑换码充值 ＄1.000000 额度，兑换码ID ${code?.id}`,
      });
    });

    test("of fifty simultaneous attempts exactly one is paid", async () => {
      const [key = ""] = await make();
      const users = await Promise.all(Array.from({ length: 5 }, () => app.createUser({ quota: 0 })));
      const tries = users.flatMap((each) =>
        Array.from({ length: 10 }, () => ask("POST", "/api/user/topup", { key }, each)),
      );
      const answers = await Promise.all(tries);
      expect(answers.filter((answer) => answer.success)).toHaveLength(1);
      const sum = await Promise.all(users.map((each) => balance(each.id)));
      expect(sum.reduce((a, b) => a + b, 0)).toBe(500_000);
    });

    test("missing, wrong, used and disabled codes are refused in their own words", async () => {
      const other = await app.createUser({});
      const [used = "", disabled = ""] = await make(2);
      await ask("POST", "/api/user/topup", { key: used }, other);
      const code = await codeOf(disabled);
      await ask("PUT", "/api/redemption/?status_only=true", { id: code?.id, status: 2 }, admin);
      const message = async (key: string) => (await ask("POST", "/api/user/topup", { key }, other)).message;
      expect(await message("")).toBe("未提供兑换码");
      expect(await message("nonsense")).toBe("兑换失败，无效的兑换码");
      expect(await message(used)).toBe("兑换失败，该兑换码已被使用");
      expect(await message(disabled)).toBe("兑换失败，该兑换码已被使用");
    });

    test("several codes are answered one by one", async () => {
      const other = await app.createUser({ quota: 0 });
      const [first = "", second = ""] = await make(2, 100);
      const answer = await ask<{ key: string; success: boolean; quota: number; message: string }[]>(
        "POST",
        "/api/user/topup/batch",
        { keys: [first, "nonsense", second, first] },
        other,
      );
      expect(answer.data).toMatchObject([
        { key: first, success: true, quota: 100, message: "" },
        { key: "nonsense", success: false, quota: 0, message: "兑换失败，无效的兑换码" },
        { key: second, success: true, quota: 100 },
      ]);
      expect(await balance(other.id)).toBe(200);
    });

    test("when the attempts run out half-way, what was credited before is still told", async () => {
      const other = await app.createUser({ quota: 0 });
      const [good = "", late = ""] = await make(2, 100);
      const wrong = Array.from({ length: 25 }, (_, index) => `wrong${index}`);
      const { data } = await ask<{ success: boolean; quota: number; message: string }[]>(
        "POST",
        "/api/user/topup/batch",
        { keys: [good, ...wrong, late] },
        other,
      );
      expect(data).toHaveLength(27);
      expect(data[0]).toMatchObject({ success: true, quota: 100 });
      expect(data[20]?.message).toBe("兑换失败，无效的兑换码");
      expect(
        data.slice(21).every(({ success, message }) => !success && message.startsWith("尝试次数过多")),
      ).toBe(true);
      expect(await balance(other.id)).toBe(100);
      const again = await app.call("POST", "/api/user/topup/batch", { keys: [late] }, other);
      expect(again.status).toBe(429);
    });

    test("many codes are switched and deleted in one call; used ones are left as they are", async () => {
      const payer = await app.createUser({});
      const keys = await make(4, 10, "many");
      await ask("POST", "/api/user/topup", { key: keys[0] }, payer);
      const rows = await Promise.all(keys.map((key) => codeOf(key)));
      const ids = rows.map((row) => row?.id ?? 0);
      const all = (action: string) => ask<number>("POST", "/api/redemption/batch", { ids, action }, admin);
      const states = async () =>
        (await Promise.all(keys.map((key) => codeOf(key)))).map((row) => row?.status);
      expect((await all("disable")).data).toBe(3);
      expect(await states()).toEqual([3, 2, 2, 2]);
      expect((await all("disable")).data).toBe(0);
      expect((await all("enable")).data).toBe(3);
      expect(await states()).toEqual([3, 1, 1, 1]);
      expect((await all("delete")).data).toBe(4);
      expect(await states()).toEqual([undefined, undefined, undefined, undefined]);
      expect((await ask("POST", "/api/user/topup", { key: keys[1] }, payer)).message).toBe(
        "兑换失败，无效的兑换码",
      );
      expect((await all("melt")).success).toBe(false);
    });

    test("the price preference alone leaves the rest of the setting as it is", async () => {
      const other = await app.createUser({});
      const mail = { notify_type: "email", quota_warning_threshold: 7, notification_email: "a@b.example" };
      await ask("PUT", "/api/user/setting", mail, other);
      const prefer = (accepts: boolean) =>
        ask("PUT", "/api/user/setting", { accept_unset_model_ratio_model: accepts }, other);
      expect((await prefer(true)).message).toBe("设置已更新");
      const setting = async () => (await app.deps.accounts.user(other.id))?.setting;
      expect(await setting()).toEqual({
        ...mail,
        notify_type: "email",
        language: "zh",
        accept_unset_model_ratio_model: true,
      });
      await prefer(false);
      expect(await setting()).toEqual({
        ...mail,
        notify_type: "email",
        language: "zh",
        accept_unset_model_ratio_model: false,
      });
      expect((await ask("PUT", "/api/user/setting", {}, other)).message).toBe("无效的预警类型");
    });

    test("guessing ends after twenty wrong codes, right ones cost nothing", async () => {
      const guesser = await app.createUser({});
      const good = await make(30, 1);
      for (const key of good)
        expect((await ask("POST", "/api/user/topup", { key }, guesser)).success).toBe(true);
      const statuses: number[] = [];
      for (let i = 0; i < 22; i++)
        statuses.push((await app.call("POST", "/api/user/topup", { key: `wrong${i}` }, guesser)).status);
      expect(statuses.slice(0, 20).every((status) => status === 200)).toBe(true);
      expect(statuses.slice(20)).toEqual([429, 429]);
    });

    test("who is at their own limit takes no guesses from others at the same address", async () => {
      const [guesser, neighbour] = [await app.createUser({}), await app.createUser({})];
      const guess = (who: TestUser, n: number) =>
        app.call("POST", "/api/user/topup", { key: `none${n}` }, who);
      // More than the address has in all.
      for (let n = 0; n < 210; n++) await guess(guesser, n);
      expect((await guess(guesser, 210)).status).toBe(429);
      expect((await guess(neighbour, 0)).status).toBe(200);
    });

    test("a used code changes no more, an unused one is edited, disabled, enabled and deleted", async () => {
      const payer = await app.createUser({});
      const [used = "", open = ""] = await make(2);
      await ask("POST", "/api/user/topup", { key: used }, payer);
      const gone = await codeOf(used);
      const put = (body: object, status = "") => ask("PUT", `/api/redemption/${status}`, body, admin);
      expect((await put({ id: gone?.id, status: 1 }, "?status_only=true")).message).toBe(
        "已使用的兑换码不能修改",
      );
      expect((await put({ id: gone?.id, name: "x", quota: 1 })).success).toBe(false);
      const code = await codeOf(open);
      expect((await put({ id: code?.id, name: "renamed", quota: 7 })).data).toMatchObject({
        name: "renamed",
        quota: 7,
        status: 1,
      });
      expect((await put({ id: code?.id, status: 2 }, "?status_only=true")).data).toMatchObject({ status: 2 });
      expect((await put({ id: code?.id, name: "again" })).success).toBe(false);
      expect((await put({ id: code?.id, status: 1 }, "?status_only=true")).data).toMatchObject({ status: 1 });
      expect((await ask("DELETE", `/api/redemption/${code?.id}/`, undefined, admin)).success).toBe(true);
      expect(await codeOf(open)).toBeUndefined();
      expect((await ask("POST", "/api/user/topup", { key: open }, payer)).message).toBe(
        "兑换失败，无效的兑换码",
      );
    });

    test("codes are administrators', and stand sealed in the database", async () => {
      const [key = ""] = await make();
      for (const [method, path] of [
        ["GET", "/api/redemption/"],
        ["GET", "/api/redemption/1"],
        ["POST", "/api/redemption/"],
        ["DELETE", "/api/redemption/1"],
      ] as const)
        expect(
          (
            await app.call(
              method,
              path,
              method === "POST" ? { name: "a", quota: 1, count: 1 } : undefined,
              user,
            )
          ).status,
        ).toBe(403);
      const rows = await app.deps.db.orm.select().from(app.deps.db.t.redemptions);
      expect(JSON.stringify(rows)).not.toContain(key);
    });

    test("an invitation code is made once and stays", async () => {
      const first = await ask<string>("GET", "/api/user/aff", undefined, user);
      expect(first.data).toMatch(/^[A-Za-z0-9]{4}$/);
      expect((await ask<string>("GET", "/api/user/aff", undefined, user)).data).toBe(first.data);
    });

    test("rewards move into the balance from one unit on, never more than there are, however many ask at once", async () => {
      const inviter = await app.createUser({ quota: 0 });
      const { users } = app.deps.db.t;
      await app.deps.db.orm.update(users).set({ affQuota: 1_200_000 }).where(eq(users.id, inviter.id));
      const move = (quota: number) => ask("POST", "/api/user/aff_transfer", { quota }, inviter);
      expect((await move(499_999)).message).toBe("划转失败 转移额度最小为＄1.000000 额度！");
      expect((await move(1_200_001)).message).toBe("划转失败 邀请额度不足！");
      const answers = await Promise.all(Array.from({ length: 5 }, () => move(500_000)));
      expect(answers.filter((answer) => answer.success).map((answer) => answer.message)).toEqual([
        "划转成功",
        "划转成功",
      ]);
      expect(await balance(inviter.id)).toBe(1_000_000);
    });

    test.each([
      [{ notify_type: "pigeon", quota_warning_threshold: 1 }, "无效的预警类型"],
      [{ notify_type: "email", quota_warning_threshold: 0 }, "预警阈值必须大于0"],
      [{ notify_type: "webhook", quota_warning_threshold: 1 }, "Webhook地址不能为空"],
      [{ notify_type: "webhook", quota_warning_threshold: 1, webhook_url: "ftp://x" }, "无效的Webhook地址"],
      [{ notify_type: "email", quota_warning_threshold: 1, notification_email: "nobody" }, "无效的邮箱地址"],
    ])("the setting %j is refused", async (body, message) => {
      expect(await ask("PUT", "/api/user/setting", body, user)).toMatchObject({ success: false, message });
    });

    test("a setting replaces the one before; its secret goes in and never comes out", async () => {
      const webhook = {
        notify_type: "webhook",
        quota_warning_threshold: 5,
        webhook_url: "https://h.example/x",
        webhook_secret: "s3cret",
      };
      expect((await ask("PUT", "/api/user/setting", webhook, user)).message).toBe("设置已更新");
      const self = await ask<{ setting: string }>("GET", "/api/user/self", undefined, user);
      expect(JSON.parse(self.data.setting)).toMatchObject({
        notify_type: "webhook",
        webhook_url: "https://h.example/x",
      });
      expect(JSON.parse(self.data.setting)).toMatchObject({ webhook_secret_set: true });
      expect(self.data.setting).not.toMatch(/s3cret|webhook_secret(_sealed)?"/);
      // Absent keeps it.
      const { webhook_secret: _, ...kept } = webhook;
      await ask("PUT", "/api/user/setting", kept, user);
      await ask("PUT", "/api/user/setting", { accept_unset_model_ratio_model: true }, user);
      const secretOf = async () =>
        openSecret(app.deps.seal, (await app.deps.accounts.user(user.id))?.setting ?? {});
      expect(await secretOf()).toBe("s3cret");
      // For another receiver nobody has it unless it is typed again; a test of a setting is no way around.
      await ask("PUT", "/api/user/setting", { ...kept, webhook_url: "https://h.example/y" }, user);
      expect(await secretOf()).toBe("s3cret");
      for (const webhook_url of ["https://other.example/x", "https://h.example:8443/x"]) {
        await ask("PUT", "/api/user/setting", { ...kept, webhook_url }, user);
        expect([webhook_url, await secretOf()]).toEqual([webhook_url, ""]);
        await ask("PUT", "/api/user/setting", webhook, user);
      }
      expect(await secretOf()).toBe("s3cret");
      // At rest it is sealed, and stays so.
      const { users } = app.deps.db.t;
      const stored = async () =>
        (await app.deps.db.orm.select().from(users).where(eq(users.id, user.id)))[0]?.setting ?? "";
      expect(await stored()).not.toContain("s3cret");
      // Empty removes it.
      await ask("PUT", "/api/user/setting", { ...webhook, webhook_secret: "" }, user);
      expect(await secretOf()).toBe("");
      const mail = { notify_type: "email", quota_warning_threshold: 9, accept_unset_model_ratio_model: true };
      await ask("PUT", "/api/user/setting", mail, user);
      expect((await app.deps.accounts.user(user.id))?.setting).toEqual({
        notify_type: "email",
        quota_warning_threshold: 9,
        accept_unset_model_ratio_model: true,
        language: "zh",
      });
    });
  });
}
