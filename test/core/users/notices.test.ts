// Notices as their receivers get them: a signed webhook and a letter over real sockets, once per fall of a balance,
// and never at the cost of a call. On both databases.
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import type { AddressInfo } from "node:net";
import { eq } from "drizzle-orm";
import { SMTPServer } from "smtp-server";
import { audit } from "../../../src/core/ledger/audit.ts";
import type { UserAccount } from "../../../src/core/deps.ts";
import type { Guard } from "../../../src/net/guard.ts";
import { warningMark } from "../../../src/core/users/low-quota-marks.ts";
import { notifyRoot } from "../../../src/core/users/notify.ts";
import { Role } from "../../../src/shared/enums.ts";
import { sendDue } from "../../../src/core/users/outbox.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { FORTY_DAYS_MS } from "../../support/clock.ts";
import { testClock } from "../ledger/support.ts";

interface Received {
  body: string;
  signature: string | null;
  type: string | null;
}

interface Told {
  success: boolean;
  message: string;
  code?: string;
}

const HOUR_MS = 3_600_000;

for (const database of ["sqlite", "postgres"] as const) {
  describe(`on ${database}`, () => {
    const clock = testClock();
    let app: TestApp;
    let closedGuard: Guard;
    let webhook: ReturnType<typeof Bun.serve>;
    let mail: SMTPServer;
    let received: Received[] = [];
    let letters: { to: string[]; text: string; user: string }[] = [];
    let answer = 200;
    /** The webhook answers when this is over. */
    let gate: Promise<void> = Promise.resolve();
    let serial = 0;

    beforeAll(async () => {
      app = await startTestApp({ database, clock });
      // The receivers stand on loopback, which the guard refuses to everybody else, and have no certificate.
      closedGuard = app.deps.guard;
      app.deps.guard = (address, limits) =>
        closedGuard(address.replace(/^https:/, "http:"), { ...limits, allow: ["127.0.0.1"] });
      webhook = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        async fetch(request) {
          received.push({
            body: await request.text(),
            signature: request.headers.get("x-webhook-signature"),
            type: request.headers.get("content-type"),
          });
          await gate;
          return new Response("", { status: answer });
        },
      });
      mail = new SMTPServer({
        disabledCommands: ["STARTTLS"],
        allowInsecureAuth: true,
        logger: false,
        onAuth: ({ username, password }, _session, done) =>
          password === "mail-secret" ? done(null, { user: username }) : done(new Error("no")),
        onData(stream, session, done) {
          const parts: Buffer[] = [];
          stream.on("data", (part: Buffer) => parts.push(part));
          stream.on("end", () => {
            letters.push({
              to: session.envelope.rcptTo.map(({ address }) => address),
              text: Buffer.concat(parts).toString(),
              user: String(session.user),
            });
            done();
          });
        },
      });
      await new Promise<void>((listening) => mail.listen(0, "127.0.0.1", listening));
    });
    afterAll(async () => {
      await webhook.stop(true);
      await new Promise<void>((closed) => mail.close(closed));
      await app.close();
    });
    afterEach(async () => {
      received = [];
      letters = [];
      answer = 200;
      await app.deps.options.set("SMTPServer", "");
      await app.deps.ledger.flush();
      expect((await audit(app.deps.db)).differences).toEqual([]);
    });

    const useMail = async (password = "mail-secret") => {
      const { options } = app.deps;
      await options.set("SMTPServer", "127.0.0.1");
      await options.set("SMTPPort", String((mail.server.address() as AddressInfo).port));
      await options.set("SMTPAccount", "robot@weir.example");
      await options.set("SMTPToken", password);
    };
    const hook = (more: object = {}) => ({
      notify_type: "webhook",
      quota_warning_threshold: 1000,
      webhook_url: `https://127.0.0.1:${webhook.port}/hook`,
      webhook_secret: "s3cret",
      ...more,
    });
    const save = async (user: TestUser, setting: object, language = "zh") => {
      const headers = { ...user.headers, cookie: `${user.headers.cookie}; i18nextLng=${language}` };
      const { body } = await app.call<Told>("PUT", "/api/user/setting", setting, { ...user, headers });
      expect(body.success).toBe(true);
    };
    const accountOf = async (user: TestUser): Promise<UserAccount> => {
      const account = await app.deps.accounts.user(user.id);
      if (!account) throw new Error("no account");
      return account;
    };
    /** One call that costs so much. */
    const charge = async (user: TestUser, quota: number) => {
      const requestId = `call-${++serial}`;
      const request = { requestId, user: await accountOf(user), token: undefined, amount: quota };
      const hold = await app.deps.ledger.reserve(request);
      await hold.settle({
        quota,
        promptTokens: 1,
        completionTokens: 1,
        modelName: "m",
        channelId: 0,
        group: "default",
        isStream: false,
        useTimeMs: 1,
        content: "",
        other: {},
      });
    };
    /** And everything it sets off. */
    const spend = async (user: TestUser, quota: number) => {
      await charge(user, quota);
      await told();
    };
    const told = async () => {
      await app.deps.ledger.flush();
      await app.services.lowQuota.settled();
    };
    const give = async (user: TestUser, amount: number) => {
      await app.deps.ledger.atomic((_, credit) => credit({ userId: user.id, amount, kind: "import" }));
      await told();
    };

    test("a fall below the threshold is told once, signed, with what is left and where to top up", async () => {
      const user = await app.createUser({ quota: 2000 });
      await save(user, hook());
      await app.deps.options.set("ServerAddress", "https://gate.example/");
      await spend(user, 900);
      expect(received).toEqual([]);
      await spend(user, 200);
      await spend(user, 100);
      await spend(user, 100);
      expect(received).toHaveLength(1);
      const [{ body, signature, type } = { body: "", signature: "", type: "" }] = received;
      expect(signature).toBe(createHmac("sha256", "s3cret").update(body).digest("hex"));
      expect(type).toBe("application/json");
      expect(JSON.parse(body)).toEqual({
        type: "quota_exceed",
        title: "您的额度即将用尽",
        content:
          "您的额度即将用尽，当前剩余额度为 ＄0.001800 额度，为了不影响您的使用，请及时充值。\n充值链接：https://gate.example/topup",
        values: [
          "您的额度即将用尽",
          "＄0.001800 额度",
          "https://gate.example/topup",
          "https://gate.example/topup",
        ],
        timestamp: Math.floor(clock.nowMs() / 1000),
      });
      await app.deps.options.set("ServerAddress", "");
    });

    test("after the balance has risen the next fall is told, two hours after the last at the earliest", async () => {
      const user = await app.createUser({ quota: 1100 });
      await save(user, hook());
      await spend(user, 200);
      expect(received).toHaveLength(1);
      await give(user, 1000);
      await spend(user, 1000);
      expect(received).toHaveLength(1);
      // Still low when the time has come: the next call brings it.
      clock.advance(2 * HOUR_MS);
      await spend(user, 10);
      expect(received).toHaveLength(2);
      await spend(user, 10);
      expect(received).toHaveLength(2);
    });

    test("a clock that is set back by forty days does not silence the next warning for forty days", async () => {
      const user = await app.createUser({ quota: 1100 });
      await save(user, hook());
      await spend(user, 200);
      expect(received).toHaveLength(1);
      await give(user, 1000);
      await told();
      clock.jump(-FORTY_DAYS_MS);
      await spend(user, 1000);
      expect(received).toHaveLength(2);
      clock.jump(FORTY_DAYS_MS);
    });

    test("who is warned knows it after a restart too: the mark is in the database", async () => {
      const user = await app.createUser({ quota: 1100 });
      await save(user, hook());
      // The credit of the start has been looked at: it would take the mark for an old one.
      await told();
      const { marks } = app.deps.db.t;
      await app.deps.db.orm.insert(marks).values({ key: warningMark(user.id), value: 1 });
      await spend(user, 200);
      expect(received).toEqual([]);
      // Another setting is another wish: the balance is low by it, and that is told.
      await save(user, hook({ quota_warning_threshold: 800 }));
      await spend(user, 200);
      expect(received).toHaveLength(1);
    });

    test("amounts that calls hold back are not spent: nobody is warned for them", async () => {
      const user = await app.createUser({ quota: 1500 });
      await save(user, hook());
      const open = await app.deps.ledger.reserve({
        requestId: `open-${++serial}`,
        user: await accountOf(user),
        token: undefined,
        amount: 600,
      });
      await spend(user, 10);
      expect(received).toEqual([]);
      await open.release();
      await spend(user, 10);
      expect(received).toEqual([]);
    });

    test("a receiver that fails costs the call nothing and is tried again after ten minutes", async () => {
      const user = await app.createUser({ quota: 1100 });
      await save(user, hook());
      answer = 500;
      await spend(user, 200);
      await spend(user, 10);
      expect(received).toHaveLength(1);
      expect((await accountOf(user)).quota).toBe(890);
      answer = 204;
      clock.advance(10 * 60_000);
      await spend(user, 10);
      await spend(user, 10);
      expect(received).toHaveLength(2);
    });

    test("a call is over, and the next one too, while the receiver still thinks about the warning", async () => {
      const user = await app.createUser({ quota: 1100 });
      await save(user, hook());
      const open = Promise.withResolvers<void>();
      gate = open.promise;
      await charge(user, 200);
      await charge(user, 10);
      await app.deps.ledger.flush();
      expect((await accountOf(user)).quota).toBe(890);
      open.resolve();
      gate = Promise.resolve();
      await told();
      expect(received).toHaveLength(1);
    });

    test("without a setting the site's threshold counts and the letter goes to the account's address", async () => {
      const user = await app.createUser({ quota: 1100 });
      const { users } = app.deps.db.t;
      await app.deps.db.orm.update(users).set({ email: "ada@mail.example" }).where(eq(users.id, user.id));
      await app.deps.accounts.userChanged(user.id);
      // No server: nothing is lost by it, the first fall after it is there is told.
      await spend(user, 150);
      expect(letters).toEqual([]);
      await useMail();
      await spend(user, 100);
      await spend(user, 100);
      expect(letters).toHaveLength(1);
      const [letter] = letters;
      expect(letter).toMatchObject({ to: ["ada@mail.example"], user: "robot@weir.example" });
      expect(letter?.text).toContain("From: Weir <robot@weir.example>");
      expect(decodedSubject(letter?.text ?? "")).toBe("您的额度即将用尽");
    });

    test("a letter that the server does not take is kept, goes when it does, and the fall is not told twice", async () => {
      const user = await app.createUser({ quota: 1100 });
      const { users, outbox } = app.deps.db.t;
      await app.deps.db.orm.update(users).set({ email: "wait@mail.example" }).where(eq(users.id, user.id));
      await app.deps.accounts.userChanged(user.id);
      await useMail("wrong password");
      await spend(user, 150);
      const waiting = await app.deps.db.orm.select().from(outbox).where(eq(outbox.userId, user.id));
      expect(waiting).toMatchObject([{ kind: "quota_exceed", attempts: 1, deadAt: null }]);
      expect(waiting[0]?.letterSealed).not.toContain("wait@mail.example");
      await useMail();
      clock.advance(61_000);
      await sendDue(app.deps);
      expect(letters.map(({ to }) => to)).toEqual([["wait@mail.example"]]);
      await spend(user, 100);
      await sendDue(app.deps);
      expect(letters).toHaveLength(1);
    });

    test("who saved the setting in English is told in English, at the address for notices", async () => {
      const user = await app.createUser({ quota: 1100 });
      await useMail();
      const setting = {
        notify_type: "email",
        quota_warning_threshold: 1000,
        notification_email: "n@mail.example",
      };
      await save(user, setting, "en");
      await spend(user, 200);
      expect(letters.map(({ to }) => to)).toEqual([["n@mail.example"]]);
      expect(letters[0]?.text).toContain("Subject: Your balance is running low");
      expect(letters[0]?.text).toContain("0.001800");
    });

    test("a test goes where the form says, saved or not, and its failure is said in plain words", async () => {
      const user = await app.createUser({});
      const send = (body: object) => app.call<Told>("POST", "/api/user/setting/test", body, user);
      expect((await send(hook())).body).toMatchObject({ success: true });
      expect(JSON.parse(received[0]?.body ?? "{}")).toMatchObject({ type: "test", title: "测试通知" });
      answer = 503;
      expect((await send(hook())).body).toMatchObject({
        success: false,
        message: "Webhook 返回了状态码 503，应为 2xx",
      });
      const mailTo = {
        notify_type: "email",
        quota_warning_threshold: 1,
        notification_email: "n@mail.example",
      };
      expect((await send(mailTo)).body).toMatchObject({ success: false, message: "SMTP 服务器未配置" });
      await useMail("wrong password");
      const refused = await send(mailTo);
      expect(refused.body).toMatchObject({ success: false, code: "mail_failed" });
      expect(refused.text).not.toContain("wrong password");
      expect((await send({ ...mailTo, notification_email: "" })).body.code).toBe("mail_missing");
      // Five in ten minutes: this makes the server call an address of somebody's choice.
      expect((await send(hook())).status).toBe(429);
      // Nothing of it was saved.
      expect((await accountOf(user)).setting).toEqual({});
    });

    test("the address for notices obeys the rules of addresses, and gets few tests, whoever asks", async () => {
      await useMail();
      const mailTo = (address: string) => ({
        notify_type: "email",
        quota_warning_threshold: 1,
        notification_email: address,
      });
      const ask = async (user: TestUser, address: string, method = "POST", path = "/test") =>
        (await app.call<Told>(method, `/api/user/setting${path}`, mailTo(address), user)).body;
      // Five an hour to one address, by whichever accounts and however it is written.
      const askers = await Promise.all(Array.from({ length: 3 }, () => app.createUser({})));
      for (const at of [0, 1, 2, 0, 1])
        expect(await ask(askers[at] as TestUser, "Victim@mail.example")).toMatchObject({ success: true });
      expect(await ask(askers[2] as TestUser, "victim@MAIL.example")).toMatchObject({
        code: "too_many_attempts",
      });
      expect(letters).toHaveLength(5);

      const [user] = askers as [TestUser];
      expect((await ask(user, "me+weir@mail.example", "PUT", "")).success).toBe(true);
      await app.deps.options.set("EmailDomainWhitelist", "other.example");
      await app.deps.options.set("EmailDomainRestrictionEnabled", "true");
      await app.deps.options.set("EmailAliasRestrictionEnabled", "true");
      try {
        for (const [address, code] of [
          ["me@mail.example", "mail_domain_refused"],
          ["me+too@other.example", "mail_alias_refused"],
          ["a@x.org, b@y.org", "mail_wrong"],
        ] as const)
          for (const [method, path] of [
            ["PUT", ""],
            ["POST", "/test"],
          ] as const)
            expect([address, method, (await ask(user, address, method, path)).code]).toEqual([
              address,
              method,
              code,
            ]);
        // What stood there before the rule stays.
        expect((await ask(user, "me+weir@mail.example", "PUT", "")).success).toBe(true);
      } finally {
        await app.deps.options.set("EmailDomainRestrictionEnabled", "false");
        await app.deps.options.set("EmailAliasRestrictionEnabled", "false");
      }
    });

    test("a webhook into a closed network is refused, by test and by warning", async () => {
      const opened = app.deps.guard;
      app.deps.guard = closedGuard;
      const user = await app.createUser({ quota: 1100 });
      const { body } = await app.call<Told>("POST", "/api/user/setting/test", hook(), user);
      expect(body).toMatchObject({ success: false, code: "address_refused" });
      await save(user, hook());
      await spend(user, 200);
      expect(received).toEqual([]);
      app.deps.guard = opened;
    });

    test("the operator's notices go by mail as well", async () => {
      const root = await app.createUser({ role: Role.root });
      await useMail();
      await save(root, {
        notify_type: "email",
        quota_warning_threshold: 1,
        notification_email: "ops@mail.example",
      });
      await notifyRoot(app.deps, {
        type: `channel_update_${++serial}_3`,
        title: { zh: "通知", en: "down" },
        content: { zh: "notice in Chinese", en: "it is down" },
      });
      expect(letters.map(({ to }) => to)).toEqual([["ops@mail.example"]]);
      expect(letters[0]?.text).toContain("notice in Chinese");
    });
  });
}

/** A subject in encoded words (RFC 2047) of UTF-8. */
function decodedSubject(letter: string): string {
  const head = /^Subject: (.*(?:\r\n[ \t].*)*)/m.exec(letter)?.[1] ?? "";
  const words = [...head.matchAll(/=\?UTF-8\?([BQ])\?([^?]*)\?=/gi)];
  return words
    .map(([, kind = "", text = ""]) =>
      kind.toUpperCase() === "B"
        ? Buffer.from(text, "base64").toString()
        : decodeURIComponent(text.replaceAll("_", " ").replaceAll("=", "%")),
    )
    .join("");
}
