// One-time codes and passkeys over the wire: set up, asked for, used once, guessed at, lost and reset; what needs fresh proof;
// administrators who must have a factor. On both databases, and on two nodes where that is the question.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { Secret, TOTP } from "otpauth";
import { sha256Hex } from "../../src/core/kit/seal.ts";
import { hashPassword } from "../../src/core/users/credentials.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import type { Authenticator, Deed } from "../support/authenticator.ts";
import { testClock } from "../support/clock.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";

const PASSWORD = "correct horse battery";
const MINUTE_MS = 60_000;
const ORIGIN = "https://gate.example";
const RP = "gate.example";

interface Told<T = Record<string, unknown>> {
  success: boolean;
  code?: string;
  data: T;
}
interface Step {
  require_2fa: boolean;
  flow_token: string;
  methods: string[];
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  const clock = testClock();
  let app: TestApp;
  let user: TestUser;
  let root: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock, env: { CRITICAL_RATE_LIMIT_ENABLE: "false" } });
    await app.deps.options.set("ServerAddress", ORIGIN);
    await app.deps.options.set("passkey.enabled", "true");
    root = await app.createUser({ role: Role.root });
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
  });
  afterAll(() => app.close());
  beforeEach(async () => {
    clock.advance(24 * 60 * MINUTE_MS);
    user = await withPassword(await app.createUser());
    root = await refreshed(root);
  });

  async function withPassword(of: TestUser): Promise<TestUser> {
    const { users } = app.deps.db.t;
    const passwordHash = await hashPassword(PASSWORD);
    await app.deps.db.orm.update(users).set({ passwordHash }).where(eq(users.id, of.id));
    await app.deps.accounts.userChanged(of.id);
    return refreshed(of);
  }

  /** The same account with a session that has just begun. */
  async function refreshed(of: TestUser): Promise<TestUser> {
    const { sessions } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(sessions).where(eq(sessions.userId, of.id));
    const until = Math.floor(clock.nowMs() / 1000) + 600;
    for (const { id } of rows) await app.deps.sessions.prove(id, until);
    return of;
  }

  const post = <T = Record<string, unknown>>(path: string, body: unknown, as?: TestUser) =>
    app.call<Told<T>>("POST", path, body, as);
  const codeNow = (secret: string, offsetSteps = 0): string =>
    new TOTP({ secret: Secret.fromBase32(secret) }).generate({
      timestamp: clock.nowMs() + offsetSteps * 30_000,
    });

  async function enrol(of = user): Promise<{ secret: string; codes: string[] }> {
    const setup = await post<{ secret: string; uri: string; flow_token: string }>(
      "/api/user/2fa/setup",
      {},
      of,
    );
    const { secret, flow_token } = setup.body.data;
    expect(setup.body.data.uri).toStartWith("otpauth://totp/");
    const enabled = await post<{ backup_codes: string[] }>(
      "/api/user/2fa/enable",
      { code: codeNow(secret), flow_token },
      of,
    );
    expect(enabled.body.success).toBe(true);
    clock.advance(MINUTE_MS);
    return { secret, codes: enabled.body.data.backup_codes };
  }

  async function firstStep(
    of = user,
    password = PASSWORD,
  ): Promise<Step & { cookies: string[]; code: string }> {
    const answer = await post<Step>("/api/user/login", { username: of.username, password });
    return { ...answer.body.data, cookies: answer.headers.getSetCookie(), code: answer.body.code ?? "" };
  }

  async function secondStep(flowToken: string, code: string) {
    const answer = await post("/api/user/login/2fa", { flow_token: flowToken, code });
    const hasSession = answer.headers.getSetCookie().some((line) => /^session=[^;]/.test(line));
    return { status: answer.status, code: answer.body.code ?? "ok", hasSession };
  }

  describe("one-time codes", () => {
    test("are asked for after a right password only, and then there is no cookie yet", async () => {
      const { secret, codes } = await enrol();
      expect(codes).toHaveLength(10);
      for (const code of codes) expect(code).toMatch(/^[a-z2-9]{5}-[a-z2-9]{5}$/);
      expect((await firstStep(user, "wrong password")).code).toBe("login_failed");
      const step = await firstStep();
      expect(step).toMatchObject({ require_2fa: true, methods: ["totp", "backup"] });
      expect(step.cookies.filter((line) => line.startsWith("session="))).toEqual([]);
      expect(await secondStep(step.flow_token, codeNow(secret))).toEqual({
        status: 200,
        code: "ok",
        hasSession: true,
      });
    });

    test("a code counts once, in its window, whoever sees it; a flow is used once", async () => {
      const { secret } = await enrol();
      const code = codeNow(secret);
      const [one, two] = [await firstStep(), await firstStep()];
      expect((await secondStep(one.flow_token, code)).hasSession).toBe(true);
      expect(await secondStep(two.flow_token, code)).toMatchObject({
        code: "second_factor_wrong",
        hasSession: false,
      });
      expect(await secondStep(one.flow_token, codeNow(secret, 1))).toMatchObject({ code: "flow_over" });
      clock.advance(MINUTE_MS);
      expect(await secondStep(two.flow_token, codeNow(secret, 1))).toMatchObject({ code: "ok" });
      const late = await firstStep();
      clock.advance(6 * MINUTE_MS);
      expect(await secondStep(late.flow_token, codeNow(secret))).toMatchObject({ code: "flow_over" });
    });

    test("a backup code works once, also when it comes twice at once", async () => {
      const { codes } = await enrol();
      const [code = ""] = codes;
      const steps = [await firstStep(), await firstStep()];
      const said = await Promise.all(steps.map((step) => secondStep(step.flow_token, code.toUpperCase())));
      expect(said.filter(({ hasSession }) => hasSession)).toHaveLength(1);
      const state = await app.call<Told>("GET", "/api/user/2fa/status", undefined, user);
      expect(state.body.data).toMatchObject({ enabled: true, backup_codes_left: 9 });
    });

    test("five wrong ones end the flow; ten within an hour lock the account's codes, for longer each time", async () => {
      const { secret } = await enrol();
      const step = await firstStep();
      for (let wrong = 0; wrong < 5; wrong++) await secondStep(step.flow_token, "000000");
      expect(await secondStep(step.flow_token, codeNow(secret))).toMatchObject({ code: "flow_over" });
      const next = await firstStep();
      for (let wrong = 0; wrong < 5; wrong++) await secondStep(next.flow_token, "zzzzz-zzzzz");
      const locked = await firstStep();
      expect(await secondStep(locked.flow_token, codeNow(secret))).toMatchObject({ status: 429 });
      clock.advance(16 * MINUTE_MS);
      const after = await firstStep();
      for (let wrong = 0; wrong < 5; wrong++) await secondStep(after.flow_token, "000000");
      const again = await firstStep();
      for (let wrong = 0; wrong < 5; wrong++) await secondStep(again.flow_token, "000000");
      clock.advance(16 * MINUTE_MS);
      expect(await secondStep((await firstStep()).flow_token, codeNow(secret))).toMatchObject({
        status: 429,
      });
      clock.advance(16 * MINUTE_MS);
      expect(await secondStep((await firstStep()).flow_token, codeNow(secret))).toMatchObject({ code: "ok" });
    });

    test("fifty wrong ones at once are ten: the codes are locked, and the right one waits", async () => {
      const { secret } = await enrol();
      const flows = await Promise.all(Array.from({ length: 10 }, () => firstStep()));
      const tries = flows.flatMap(({ flow_token }) =>
        Array.from({ length: 5 }, () => secondStep(flow_token, "000000")),
      );
      const looked = (await Promise.all(tries)).filter(({ code }) => code === "second_factor_wrong");
      expect(looked.length).toBeLessThanOrEqual(10);
      expect(await secondStep((await firstStep()).flow_token, codeNow(secret))).toMatchObject({
        status: 429,
      });
    });

    test("maintenance leaves root its second step", async () => {
      await app.deps.options.set("site.maintenance_enabled", "true");
      try {
        const answer = await app.call<{ code: string }>("POST", "/api/user/login/2fa", {
          flow_token: "0".repeat(32),
          code: "000000",
        });
        expect([answer.status, answer.body.code]).toEqual([200, "flow_over"]);
      } finally {
        await app.deps.options.set("site.maintenance_enabled", "false");
      }
    });

    test("a changed password voids what was begun, and setting up ends the other sessions", async () => {
      const elsewhere = await app.deps.sessions.open({
        userId: user.id,
        sessionVersion: 1,
        method: "password",
        ip: "",
        userAgent: "other",
      });
      const { secret } = await enrol();
      expect(await app.deps.sessions.find(elsewhere)).toBeUndefined();
      const step = await firstStep();
      const { users } = app.deps.db.t;
      await app.deps.db.orm.update(users).set({ sessionVersion: 7 }).where(eq(users.id, user.id));
      await app.deps.accounts.userChanged(user.id);
      expect(await secondStep(step.flow_token, codeNow(secret))).toMatchObject({ code: "login_failed" });
    });

    test("no secret, code or hash comes out anywhere afterwards", async () => {
      const { secret, codes } = await enrol();
      const texts = await Promise.all(
        ["/api/user/self", "/api/user/2fa/status", "/api/log/self"].map(
          async (path) => (await app.call("GET", path, undefined, user)).text,
        ),
      );
      texts.push((await app.call("GET", `/api/user/${user.id}`, undefined, root)).text);
      for (const text of texts) for (const each of [secret, ...codes]) expect(text).not.toContain(each);
      const rows = JSON.stringify(await app.deps.db.orm.select().from(app.deps.db.t.totps));
      expect(rows).not.toContain(secret);
      const kept = JSON.stringify(await app.deps.db.orm.select().from(app.deps.db.t.backupCodes));
      for (const code of codes) {
        expect(kept).not.toContain(code);
        expect(kept).not.toContain(sha256Hex(code));
      }
    });
  });

  describe("passkeys", () => {
    async function begin(path: string, as?: TestUser) {
      const answer = await post<{
        options: { challenge: string; user?: { id: string } };
        flow_token: string;
      }>(path, {}, as);
      return answer.body.data;
    }

    async function register(of = user, other: Partial<Deed> = {}) {
      const authenticator = createAuthenticator();
      const { options, flow_token } = await begin("/api/user/passkey/register/begin", of);
      const response = authenticator.register({
        challenge: options.challenge,
        origin: ORIGIN,
        rpId: RP,
        ...other,
      });
      const answer = await post(
        "/api/user/passkey/register/finish",
        { flow_token, response, name: "Laptop" },
        of,
      );
      return { authenticator, handle: options.user?.id ?? "", answer: answer.body, flow_token, response };
    }

    async function signIn(
      authenticator: Authenticator,
      handle: string,
      other: Partial<Deed> = {},
      more: object = {},
    ) {
      const { options, flow_token } = await begin("/api/user/passkey/login/begin");
      const deed = { challenge: options.challenge, origin: ORIGIN, rpId: RP, userHandle: handle, ...other };
      const body = { flow_token, response: authenticator.assert(deed), ...more };
      const answer = await post<{ id: number }>("/api/user/passkey/login/finish", body);
      return { code: answer.body.code ?? "ok", id: answer.body.data?.id, body };
    }

    test("signs in without a name, as both factors", async () => {
      await enrol();
      const { authenticator, handle, answer } = await register();
      expect(answer.success).toBe(true);
      expect(await signIn(authenticator, handle)).toMatchObject({ code: "ok", id: user.id });
      const { body } = await app.call<Told<{ name: string }[]>>("GET", "/api/user/passkey/", undefined, user);
      expect(body.data).toMatchObject([{ name: "Laptop" }]);
      expect(JSON.stringify(body)).not.toContain(authenticator.id);
    });

    test("an answer with counter 0 counts once; challenges, origins, sites, handles and unverified answers of others are refused", async () => {
      const { authenticator, handle } = await register();
      const good = await signIn(authenticator, handle);
      const again = await post("/api/user/passkey/login/finish", good.body);
      expect(again.body.code).toBe("flow_over");
      for (const other of [
        { challenge: "AAAA" },
        { origin: "https://evil.example" },
        { rpId: "evil.example" },
        { isVerified: false },
        { userHandle: "c29tZWJvZHkgZWxzZQ" },
        { userHandle: null },
      ] as Partial<Deed>[])
        expect([other, (await signIn(authenticator, handle, other)).code]).toEqual([
          other,
          "passkey_refused",
        ]);
      expect((await signIn(createAuthenticator(), handle)).code).toBe("passkey_refused");
      for (const other of [{ origin: "https://evil.example" }, { isVerified: false }, { challenge: "AAAA" }])
        expect((await register(user, other)).answer.code).toBe("passkey_refused");
    });

    test("a counter that does not rise is a copy: refused", async () => {
      const { authenticator, handle } = await register();
      expect((await signIn(authenticator, handle, { counter: 5 })).code).toBe("ok");
      expect((await signIn(authenticator, handle, { counter: 5 })).code).toBe("passkey_refused");
      expect((await signIn(authenticator, handle, { counter: 4 })).code).toBe("passkey_refused");
      expect((await signIn(authenticator, handle, { counter: 6 })).code).toBe("ok");
    });

    test("the options of a sign-in name nobody, and are alike for all", async () => {
      await register();
      const { options } = await begin("/api/user/passkey/login/begin");
      expect(options).toMatchObject({ allowCredentials: [], rpId: RP, userVerification: "required" });
    });

    test("is the second step of its owner's sign-in, and of nobody else's", async () => {
      await enrol();
      const { authenticator, handle } = await register();
      const other = await withPassword(await app.createUser());
      await enrol(other);
      const foreign = await firstStep(other);
      const wrong = await signIn(authenticator, handle, {}, { flow_token_2fa: foreign.flow_token });
      expect(wrong.code).toBe("passkey_refused");
      const own = await firstStep();
      expect(own.methods).toContain("passkey");
      expect(await signIn(authenticator, handle, {}, { flow_token_2fa: own.flow_token })).toMatchObject({
        code: "ok",
        id: user.id,
      });
    });

    test("another's passkey is neither renamed nor removed, and a banned account's does not sign in", async () => {
      const { authenticator, handle } = await register();
      const { body } = await app.call<Told<{ id: number }[]>>("GET", "/api/user/passkey/", undefined, user);
      const id = body.data[0]?.id;
      const other = await refreshed(await app.createUser());
      const rename = await app.call<Told>("PUT", `/api/user/passkey/${id}`, { name: "mine" }, other);
      const remove = await app.call<Told>("DELETE", `/api/user/passkey/${id}`, undefined, other);
      expect([rename.body.code, remove.body.code]).toEqual(["record_missing", "record_missing"]);
      await app.call("POST", "/api/user/manage", { id: user.id, action: "disable" }, root);
      expect((await signIn(authenticator, handle)).code).toBe("passkey_refused");
    });
  });

  describe("fresh proof", () => {
    const stale = () => clock.advance(11 * MINUTE_MS);

    test("adding a factor asks everybody; the refusal names the ways, and proving opens ten minutes", async () => {
      stale();
      const refused = await post("/api/user/2fa/setup", {}, user);
      expect(refused.status).toBe(403);
      expect(refused.body).toMatchObject({ code: "verification_required", data: { methods: ["password"] } });
      expect(
        (await post("/api/verify", { method: "password", password: "wrong wrong" }, user)).body.code,
      ).toBe("password_old_wrong");
      expect((await post("/api/verify", { method: "password", password: PASSWORD }, user)).body.success).toBe(
        true,
      );
      expect((await post("/api/user/2fa/setup", {}, user)).body.success).toBe(true);
      stale();
      expect((await post("/api/user/2fa/setup", {}, user)).status).toBe(403);
    });

    test("the old password is guessed ten times in ten minutes, together with other proofs, by an access token too", async () => {
      const asked = (original: string, as = user, password = "another password") =>
        app.call<Told>("PUT", "/api/user/self", { password, original_password: original }, as);
      const token = (await app.call<Told<string>>("GET", "/api/user/token", undefined, user)).body.data;
      const program = { ...user, headers: { authorization: token, "new-api-user": String(user.id) } };
      // What is no guess does not count.
      for (let index = 0; index < 12; index++)
        expect((await asked(PASSWORD, user, "short")).body.code).toBe("password_short");
      for (let index = 0; index < 4; index++) {
        expect((await asked("wrong wrong")).body.code).toBe("password_old_wrong");
        expect((await asked("wrong wrong", program)).body.code).toBe("password_old_wrong");
      }
      for (let index = 0; index < 2; index++)
        expect(
          (await post("/api/verify", { method: "password", password: "wrong wrong" }, user)).body.code,
        ).toBe("password_old_wrong");
      for (const as of [user, program]) expect((await asked(PASSWORD, as)).status).toBe(429);
      expect((await post("/api/verify", { method: "password", password: PASSWORD }, user)).status).toBe(429);
      expect((await app.call<Told>("PUT", "/api/user/self", { display_name: "n" }, user)).status).toBe(200);
      clock.advance(10 * MINUTE_MS + 1);
      expect((await asked(PASSWORD)).body.success).toBe(true);
    });

    test("without a factor today's calls stay; with one they ask, and the password alone is no proof", async () => {
      stale();
      expect((await app.call<Told>("GET", "/api/user/token", undefined, user)).body.success).toBe(true);
      await refreshed(user);
      const { secret } = await enrol();
      stale();
      const refused = await app.call<Told>("GET", "/api/user/token", undefined, user);
      expect(refused.body).toMatchObject({ code: "verification_required", data: { methods: ["2fa"] } });
      const byPassword = await post("/api/verify", { method: "password", password: PASSWORD }, user);
      expect(byPassword.body.code).toBe("verification_required");
      expect((await post("/api/verify", { method: "2fa", code: codeNow(secret) }, user)).body.success).toBe(
        true,
      );
      expect((await app.call<Told>("GET", "/api/user/token", undefined, user)).body.success).toBe(true);
      const other = await app.deps.sessions.open({
        userId: user.id,
        sessionVersion: 1,
        method: "password",
        ip: "",
        userAgent: "",
      });
      // Proof belongs to the session that gave it.
      expect((await app.deps.sessions.find(other))?.sudoUntil).toBeGreaterThan(clock.nowMs() / 1000);
    });

    test("an access token proves nothing: token renewal is refused to it, administrative calls pass", async () => {
      const admin = await withPassword(await app.createUser({ role: Role.admin }));
      await enrol(admin);
      await refreshed(admin);
      const token = (await app.call<Told<string>>("GET", "/api/user/token", undefined, admin)).body.data;
      const program = { ...admin, headers: { authorization: token, "new-api-user": String(admin.id) } };
      expect((await app.call<Told>("GET", "/api/user/token", undefined, program)).body.code).toBe(
        "verification_required",
      );
      const change = { id: user.id, password: "another password" };
      expect((await app.call<Told>("PUT", "/api/user/", change, program)).body.success).toBe(true);
      stale();
      expect((await app.call<Told>("PUT", "/api/user/", change, admin)).body.code).toBe(
        "verification_required",
      );
    });

    test("root with a factor proves itself before secrets, sign-in and payment", async () => {
      const second = await withPassword(await app.createUser({ role: Role.root }));
      await enrol(second);
      stale();
      for (const key of ["EpayKey", "RegisterEnabled", "SMTPServer", "google.client_id", "WorkerUrl"]) {
        const answer = await app.call<Told>("PUT", "/api/option/", { key, value: "" }, second);
        expect([key, answer.body.code]).toEqual([key, "verification_required"]);
      }
      const harmless = await app.call<Told>("PUT", "/api/option/", { key: "Notice", value: "x" }, second);
      expect(harmless.body.success).toBe(true);
    });

    test("what the site is paid asks for the same proof by the price desk: applied, scheduled, taken back, and as a plan", async () => {
      const second = await withPassword(await app.createUser({ role: Role.root }));
      const { secret } = await enrol(second);
      await refreshed(second);
      const as = async <T = unknown>(method: string, path: string, body?: unknown) =>
        (await app.call<Told<T>>(method, path, body, second)).body;
      const prove = () => as("POST", "/api/verify", { method: "2fa", code: codeNow(secret) });
      const apply = async (changes: object[]) => {
        const { data } = await as<{ plan_hash: string; parent: number }>("POST", "/api/price/plan", {
          changes,
          days: 0,
        });
        return as("POST", "/api/price/apply", { plan_hash: data.plan_hash, parent: data.parent, changes });
      };
      const price = { key: "Price", name: "", after: "8.1" };
      const model = { key: "ModelRatio", name: "made-up", after: 3 };
      const terms = { title: "Pro", quota: 5, duration_unit: "day", wallet_price: 1 };
      const plan = { key: "Plans", name: "new", after: terms };
      const ofDrafts = (changes: object[]) =>
        as<{ id: number; version: number }>("POST", "/api/price/drafts", { changes });
      const schedule = async ({ id, version }: { id: number; version: number }, more: object = {}) => {
        const { data } = await as<{ revision: number }>("GET", "/api/price/revisions");
        const at = Math.floor(clock.nowMs() / 1000) + 3600;
        const body = { id, version, effective_at: at, parent: data.revision, ...more };
        return as("PUT", "/api/price/drafts", body);
      };
      stale();
      for (const changes of [[price], [plan], [model, price]]) {
        const unseen = { plan_hash: "", parent: 0, changes };
        expect((await as("POST", "/api/price/apply", unseen)).code).toBe("verification_required");
      }
      expect((await apply([model])).success).toBe(true);
      const { data: draft } = await ofDrafts([price]);
      expect((await schedule(draft)).code).toBe("verification_required");
      const { data: other } = await ofDrafts([{ ...model, after: 4 }]);
      expect((await schedule(other, { changes: [plan] })).code).toBe("verification_required");
      expect((await schedule(other)).success).toBe(true);
      for (const [method, path, body] of [
        ["POST", "/api/plan/", terms],
        ["PUT", "/api/plan/1", { quota: 6 }],
        ["DELETE", "/api/plan/1", undefined],
      ] as const)
        expect([method, (await as(method, path, body)).code]).toEqual([method, "verification_required"]);

      expect((await prove()).success).toBe(true);
      expect((await apply([price])).success).toBe(true);
      const { data } = await as<{ revision: number }>("GET", "/api/price/revisions");
      stale();
      const undo = () => as("POST", `/api/price/revisions/${data.revision}/undo`, {});
      expect((await undo()).code).toBe("verification_required");
      expect((await prove()).success).toBe(true);
      expect((await undo()).success).toBe(true);
    });

    test("a higher rank resets factors: sessions and token end; nobody resets a peer's", async () => {
      await enrol();
      await refreshed(user);
      await app.call("GET", "/api/user/token", undefined, user);
      const admin = await refreshed(await app.createUser({ role: Role.admin }));
      const peer = await withPassword(await app.createUser({ role: Role.admin }));
      expect((await app.call<Told>("DELETE", `/api/user/${peer.id}/2fa`, undefined, admin)).body.code).toBe(
        "user_rank_update",
      );
      expect(
        (await app.call<Told>("DELETE", `/api/user/${user.id}/2fa`, undefined, admin)).body.success,
      ).toBe(true);
      expect((await app.call("GET", "/api/user/self", undefined, user)).status).toBe(401);
      expect((await firstStep()).require_2fa).toBeUndefined();
      const { users } = app.deps.db.t;
      const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, user.id));
      expect([row?.accessTokenHash, row?.secondFactor]).toEqual([null, false]);
      // Root's own go by the own account's calls, which ask for proof and keep the last way in.
      const own = await withPassword(await app.createUser({ role: Role.root }));
      await enrol(own);
      await refreshed(own);
      for (const what of ["2fa", "reset_passkey"])
        expect(
          (await app.call<Told>("DELETE", `/api/user/${own.id}/${what}`, undefined, own)).body.code,
        ).toBe("user_rank_update");
      expect((await app.deps.accounts.user(own.id))?.secondFactor).toBe(true);
    });
  });

  test("AdminSecondFactorRequired: an administrator without a factor reaches only setting one up, a token of theirs nothing", async () => {
    const admin = await withPassword(await app.createUser({ role: Role.admin }));
    const token = (await app.call<Told<string>>("GET", "/api/user/token", undefined, admin)).body.data;
    const program = { ...admin, headers: { authorization: token, "new-api-user": String(admin.id) } };
    await app.deps.options.set("AdminSecondFactorRequired", "true");
    try {
      expect((await app.call<Told>("GET", "/api/channel/", undefined, admin)).body.code).toBe(
        "second_factor_required",
      );
      expect((await app.call<Told>("GET", "/api/user/self", undefined, program)).body.code).toBe(
        "second_factor_required",
      );
      expect((await app.call("GET", "/api/user/self", undefined, admin)).status).toBe(200);
      expect((await app.call("GET", "/channel", undefined, admin)).headers.get("location")).toBe(
        "/personal?tab=security",
      );
      expect((await app.call("GET", "/api/user/self", undefined, user)).status).toBe(200);
      const signedIn = await post<{ must_enrol?: boolean }>("/api/user/login", {
        username: admin.username,
        password: PASSWORD,
      });
      expect(signedIn.body.data.must_enrol).toBe(true);
      await enrol(admin);
      expect((await app.call("GET", "/api/channel/", undefined, admin)).status).toBe(200);
      expect((await app.call("GET", "/api/user/self", undefined, program)).status).toBe(200);
    } finally {
      await app.deps.options.set("AdminSecondFactorRequired", "false");
    }
  });

  test("passkeys need an address that browsers bind them to, and the address stays one", async () => {
    const { options } = app.deps;
    const codeOf = async (key: string, value: string) =>
      (await app.call<Told>("PUT", "/api/option/", { key, value }, root)).body.code ?? "ok";
    expect(await codeOf("ServerAddress", "https://192.0.2.7")).toBe("option_in_use");
    await options.set("passkey.enabled", "false");
    for (const address of ["https://192.0.2.7", "http://gate.example", "https://[2001:db8::1]"]) {
      await options.set("ServerAddress", address);
      expect(await codeOf("passkey.enabled", "true")).toBe("option_needs_passkey_host");
    }
    await options.set("ServerAddress", "http://localhost:3000");
    expect(await codeOf("passkey.enabled", "true")).toBe("ok");
    await options.set("ServerAddress", ORIGIN);
  });
});

test("two nodes: of one code, and of one backup code, sent to both at once, one signs in", async () => {
  const database = await createTestDatabase("postgres");
  const env = { DATABASE_URL: database.databaseUrl ?? "", ENCRYPTION_KEY: "one key for both nodes" };
  const clock = testClock();
  const nodes = [await startTestApp({ env, clock }), await startTestApp({ env, clock })] as const;
  try {
    const [here] = nodes;
    const user = await here.createUser();
    const { users } = here.deps.db.t;
    const passwordHash = await hashPassword(PASSWORD);
    await here.deps.db.orm.update(users).set({ passwordHash }).where(eq(users.id, user.id));
    const setup = await here.call<Told<{ secret: string; flow_token: string }>>(
      "POST",
      "/api/user/2fa/setup",
      {},
      user,
    );
    const { secret, flow_token } = setup.body.data;
    const codeNow = () =>
      new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.nowMs() });
    const enabled = await here.call<Told<{ backup_codes: string[] }>>(
      "POST",
      "/api/user/2fa/enable",
      { code: codeNow(), flow_token },
      user,
    );
    clock.advance(MINUTE_MS);
    for (const code of [codeNow(), enabled.body.data.backup_codes[0] ?? ""]) {
      const said = await Promise.all(
        nodes.map(async (node) => {
          const first = await node.call<Told<Step>>("POST", "/api/user/login", {
            username: user.username,
            password: PASSWORD,
          });
          const sent = { flow_token: first.body.data.flow_token, code };
          return (await node.call<Told>("POST", "/api/user/login/2fa", sent)).body.success;
        }),
      );
      expect(said.toSorted()).toEqual([false, true]);
    }
  } finally {
    for (const node of nodes) await node.close();
    await database.drop();
  }
}, 30_000);
