// What a guesser gets of codes, addresses and passwords: an hour over two nodes, odd spellings, the commonest passwords,
// and no difference between who has an account and who has none. A real SMTP server; on both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { createSealer } from "../../src/core/kit/seal.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { startMailServer } from "../support/mail-server.ts";
import type { MailServerStand } from "../support/mail-server.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";

interface Told {
  success: boolean;
  code?: string;
}

const GOOD = "correct horse battery";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const KEY = "one key for both nodes";

describe.each(DATABASE_KINDS)("on %s", (kind) => {
  const clock = testClock();
  let database: TestDatabase;
  let nodes: TestApp[] = [];
  let mail: MailServerStand;
  let visits = 0;
  const node = (index = 0): TestApp => {
    const found = nodes[index % nodes.length];
    if (!found) throw new Error("no node");
    return found;
  };
  /** Somebody from an address that nobody came from before. */
  const stranger = (): TestUser => {
    visits += 1;
    const from = `198.${18 + (visits >> 16)}.${(visits >> 8) & 255}.${visits & 255}`;
    return { id: 0, username: "", headers: { "x-forwarded-for": from } };
  };
  const ask = (path: string, at = 0) => node(at).call<Told>("GET", path, undefined, stranger());
  const askCode = (email: string, at = 0) => ask(`/api/verification?email=${encodeURIComponent(email)}`, at);
  const register = (fields: object, at = 0) =>
    node(at).call<Told>("POST", "/api/user/register", { password: GOOD, ...fields }, stranger());
  const flows = async () => {
    const { db } = node().deps;
    return db.orm.select().from(db.t.authFlows);
  };

  beforeAll(async () => {
    mail = await startMailServer();
    database = await createTestDatabase(kind);
    const env: Record<string, string> = {
      ENCRYPTION_KEY: KEY,
      SESSION_SECRET: "one secret for both nodes",
      TRUSTED_PROXIES: "127.0.0.1",
    };
    if (database.databaseUrl !== undefined) env["DATABASE_URL"] = database.databaseUrl;
    nodes = [await startTestApp({ env, clock })];
    for (const [key, text] of [
      ["SMTPServer", "127.0.0.1"],
      ["SMTPPort", String(mail.port)],
      ["SMTPFrom", "site@mail.example"],
      ["ServerAddress", "https://gate.example"],
      ["EmailVerificationEnabled", "true"],
    ] as const)
      await node().deps.options.set(key, text);
    if (kind === "postgres") nodes.push(await startTestApp({ env, clock }));
  });
  afterAll(async () => {
    for (const each of nodes) await each.close();
    await database.drop();
    await mail.close();
  });
  beforeEach(() => {
    mail.letters.length = 0;
    clock.advance(48 * HOUR_MS);
  });

  test("an hour of guessing, from a new address each time and over all nodes, is twenty-five guesses in a million", async () => {
    const email = "victim@mail.example";
    const answers = new Set<string>();
    for (let step = 0; step < 360; step++) {
      const asked = await askCode(email, step);
      answers.add(String(asked.status));
      for (let guess = 0; guess < 2; guess++) {
        const code = String((step * 2 + guess) % 1000).padStart(6, "9");
        const tried = await register({ username: "thief", email, verification_code: code }, step + guess);
        expect(tried.body.code).toBe("code_wrong");
      }
      clock.advance(10_000);
    }
    expect([...answers].toSorted()).toEqual(["200", "429"]);
    expect(mail.letters.length).toBeLessThanOrEqual(6);
    const tries = (await flows())
      .filter(({ subjectKey }) => subjectKey === email)
      .map(({ attempts }) => attempts);
    // Six letters fall into one hour where the first is an hour before the last.
    expect(Math.max(...tries)).toBe(5);
    expect(tries.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(6 * 5);
  }, 60_000);

  test("a code stands in the database under a hash that nobody can try codes against without the key", async () => {
    await askCode("dump@mail.example");
    const [row] = (await flows()).filter(({ subjectKey }) => subjectKey === "dump@mail.example");
    const code = /\b(\d{6})\b/.exec(mail.letters[0]?.text ?? "")?.[1] ?? "";
    const text = `flow|email_code|dump@mail.example|${code}`;
    expect(row?.secretHash).toBe(createSealer(KEY).mac(text).toString("hex"));
    expect(row?.secretHash).not.toBe(createSealer("a guesser's key").mac(text).toString("hex"));
  });

  test("whoever has an account and who has none cost the same work and leave the same behind", async () => {
    const { db } = node().deps;
    const owner = await node().createUser();
    await db.orm
      .update(db.t.users)
      .set({ email: "owner@mail.example", emailKey: "owner@mail.example" })
      .where(eq(db.t.users.id, owner.id));
    const left: unknown[] = [];
    for (const path of ["verification", "reset_password"])
      for (const name of ["owner", "nobody"]) {
        const before = (await flows()).length;
        const answer = await ask(`/api/${path}?email=${name}@mail.example`);
        left.push([path, answer.status, answer.text, (await flows()).length - before]);
      }
    const [ownCode, freeCode, ownReset, freeReset] = left;
    expect(freeCode).toEqual(ownCode);
    expect(freeReset).toEqual(ownReset);
    expect(left.map((each) => (each as unknown[])[3])).toEqual([1, 1, 1, 1]);
  });

  test("an address with quotes, separators, percent signs or line ends is one address or none", async () => {
    const odd = [
      '"a b"@x.example',
      '"a"@x.example',
      "a%0d%0aBcc:b@y.example@x.example",
      "a@x.example%0d%0aBcc: b@y.example",
      "a@x.example\nBcc: b@y.example",
      "a@x.example;b@y.example",
      "<a@x.example>",
      "Ada <a@x.example>",
      "a@x.example,b@y.example",
      "a@@x.example",
      "a@[127.0.0.1]",
    ];
    for (const email of odd) expect([email, (await askCode(email)).body.code]).toEqual([email, "mail_wrong"]);
    // Letters of the tests before may still be on their way.
    const named = mail.letters.flatMap(({ to }) => to);
    expect(named.filter((email) => !email.endsWith("@mail.example"))).toEqual([]);
  });

  test("nobody is called by somebody's address, by a reserved name, or by what only looks like another", async () => {
    await node().deps.options.set("EmailVerificationEnabled", "false");
    const refused = [
      "owner@mail.example",
      "Admin",
      "аdmin",
      "ad\u200bmin",
      "admin\u202e",
      "ａｄｍｉｎ",
      "ROOT",
    ];
    for (const username of refused) {
      const { body } = await register({ username });
      expect([username, body.success]).toEqual([username, false]);
      expect(body.code).toBeOneOf(["username_invalid", "username_reserved"]);
    }
    // Nor by renaming themselves.
    const user = await node().createUser();
    for (const username of ["admin", "System", "\uff32oot"]) {
      const { body } = await node().call<Told>("PUT", "/api/user/self", { username }, user);
      expect([username, body.code]).toEqual([username, "username_reserved"]);
    }
    // Whose own name it is, as of an older site, may write it otherwise.
    const { users } = node().deps.db.t;
    await node()
      .deps.db.orm.update(users)
      .set({ username: "root", usernameKey: "root" })
      .where(eq(users.id, user.id));
    const own = await node().call<Told>("PUT", "/api/user/self", { username: "Root" }, user);
    expect(own.body.success).toBe(true);
    const boss = await node().createUser({ role: 100 });
    const { body } = await node().call<Told>("PUT", "/api/user/self", { username: "System" }, boss);
    expect(body.success).toBe(true);
  });

  test("the commonest passwords are refused at registration, change and reset, in any capitals", async () => {
    const common = ["12345678", "password", "PassWord1", "iloveyou", "1QAZ2WSX"];
    for (const password of common)
      expect((await register({ username: "fresh", password })).body.code).toBe("password_weak");
    expect((await register({ username: "fresh", password: GOOD })).body.success).toBe(true);
    const user = await node().createUser();
    const change = { password: "iloveyou", original_password: "" };
    expect((await node().call<Told>("PUT", "/api/user/self", change, user)).body.code).toBe("password_weak");
    const reset = { email: "owner@mail.example", token: "0".repeat(32), password: "football" };
    const { body } = await node().call<Told>("POST", "/api/user/reset", reset, stranger());
    expect(body.code).toBe("password_weak");
    await node().deps.options.set("EmailVerificationEnabled", "true");
  });
});

test("a site is not set up with one of them either", async () => {
  const app = await startTestApp();
  const setup = (password: string) =>
    app.call<Told>("POST", "/api/setup", { username: "owner", password, confirmPassword: password });
  expect((await setup("qwertyuiop")).body.code).toBe("password_weak");
  expect((await setup(GOOD)).body.success).toBe(true);
  const { users } = app.deps.db.t;
  expect(await app.deps.db.orm.select().from(users)).toMatchObject([{ username: "owner", role: Role.root }]);
  await app.close();
});
