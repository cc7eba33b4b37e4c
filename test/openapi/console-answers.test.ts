// What the console's calls really answer, on a fresh site and on a full one, held against the document: every field that
// travels is named there, with its type. A call that nothing here asks fails the last test.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { Secret, TOTP } from "otpauth";
import { createAuthenticator } from "../support/authenticator.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { startMailServer } from "../support/mail-server.ts";
import { signedEvent, startFakeStripe } from "../support/fake-stripe.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import type { DatabaseKind } from "../support/postgres.ts";
import { PLAIN_WORDS, startSample } from "../support/sample.ts";
import type { Sample } from "../support/sample.ts";
import { signInCalls } from "./sign-in-calls.ts";
import { documentAt, Measure, operationsOf } from "./support.ts";
import { untilSo } from "../support/turns.ts";

type Json = Record<string, unknown>;

interface Call {
  as?: TestUser | undefined;
  id?: number | string;
  query?: string;
  body?: unknown;
  /** What the call is meant to meet, where it is not status 200 and success. */
  refused?: number;
}

/** Calls by their names in the document, every answer held against it. */
class Caller {
  constructor(
    readonly app: TestApp,
    readonly measure: Measure,
  ) {}

  async ask(name: string, { as, id, query, body, refused }: Call = {}): Promise<Json> {
    const [method = "", path = ""] = name.split(" ");
    const filled = path.replace(/\{(?:id|trade_no)\}/, String(id));
    if (refused === undefined) this.measure.expectBody(name, body);
    const answer = await this.app.call(method, filled + (query ?? ""), body, as);
    expect([name, answer.status, answer.text.slice(0, 200)]).toEqual([
      name,
      refused ?? 200,
      answer.text.slice(0, 200),
    ]);
    this.measure.expectAnswer(name, answer.status, answer.body);
    // Calls of old consoles say so in `message` alone.
    const isGood = answer.body["success"] ?? answer.body["message"] === "success";
    expect([name, isGood, answer.body["message"]]).toEqual([
      name,
      refused === undefined,
      answer.body["message"],
    ]);
    return answer.body;
  }
}

/** They call providers, end the session, or ask for a key. */
const ELSEWHERE =
  /^GET \/api\/(user\/bulk\/\{id\}$|oauth\/.*|custom-oauth-provider\/\{id\}(\/ways_in)?$|option\/ways_in$|log\/(token|export|self\/export)$|usage\/token|channel\/(test|update_balance|fetch_models)(\/|$)|payment\/|user\/(logout|token|export|self\/export|epay\/notify|topup\/\{trade_no\}(\/events)?|statement)$|verification$|reset_password$)|^GET \/api\/log\/clear_count$|^GET \/api\/cost\/drift$/;
const QUERIES: Record<string, readonly string[]> = {
  "GET /api/log/": ["?page_size=100", "?type=5&page_size=100", "?type=3"],
  "GET /api/log/self": ["?page_size=100"],
  "GET /api/channel/": ["?page_size=100&tag_mode=true", "?page_size=100"],
  "GET /api/log/search": ["?keyword=5", "?keyword=A"],
  "GET /api/log/self/search": ["?keyword=2"],
  "GET /api/data/summary": ["?by=user", "?by=channel&granularity=week", "?by=key&figure=tokens"],
};

const consoleReads = (measure: Measure): string[] =>
  operationsOf(measure.document)
    .map(({ name }) => name)
    .filter((name) => name.startsWith("GET /api/") && !ELSEWHERE.test(name));

const isForAll = (measure: Measure, name: string) =>
  measure.operation(name).security.every((each) => (each["session"] ?? ["user"])[0] === "user");

/** Codes and links go to a real SMTP server. */
async function letterCalls(
  ask: (name: string, call?: Call) => Promise<unknown>,
  app: TestApp,
): Promise<void> {
  const mail = await startMailServer();
  const { options } = app.deps;
  await options.set("SMTPPort", String(mail.port));
  await options.set("SMTPServer", "127.0.0.1");
  await options.set("SMTPFrom", "site@mail.example");
  await options.set("ServerAddress", "https://gate.example");
  await options.set("EmailVerificationEnabled", "true");
  const email = "nora@mail.example";
  await ask("GET /api/verification", { query: `?email=${email}` });
  const code = /\b\d{6}\b/.exec(mail.letters[0]?.text ?? "")?.[0];
  const password = "correct horse";
  await ask("POST /api/user/register", {
    body: { username: "nora", password, email, verification_code: code },
  });
  await ask("GET /api/reset_password", { query: `?email=${email}` });
  await untilSo(() => mail.letters.length >= 2);
  const token = /token=([0-9a-f]{32})/.exec(mail.letters[1]?.text ?? "")?.[1];
  await ask("POST /api/user/reset", { body: { email, token } });
  for (const [index, method] of ["GET", "POST"].entries()) {
    const fields = { email: `own${index}@mail.example`, code: "" };
    await ask("GET /api/verification", { query: `?email=${fields.email}` });
    fields.code = /\b\d{6}\b/.exec(mail.letters.at(-1)?.text ?? "")?.[0] ?? "";
    const sent = method === "GET" ? { query: `?${new URLSearchParams(fields)}` } : { body: fields };
    await ask(`${method} /api/oauth/email/bind`, { as: await app.createUser(), ...sent });
  }
  await mail.close();
}

/** An order, what the gateway says of it, and its completion by hand. */
async function paymentCalls(ask: Ask, { app, measure }: Caller): Promise<void> {
  const { options } = app.deps;
  await options.set("EpayId", "1001");
  await options.set("EpayKey", "key");
  await options.set("PayAddress", "https://pay.example");
  await ask("POST /api/user/amount", { body: { amount: 10 } });
  await ask("GET /api/user/topup/info");
  const wish = { rail: "epay", method: "alipay", amount: 10 };
  await ask("POST /api/user/topup/amount", { body: wish });
  await ask("POST /api/user/topup/pay", { body: wish });
  const order = await ask("POST /api/user/pay", { body: { amount: 10, payment_method: "alipay" } });
  const { out_trade_no: tradeNo } = order["data"] as Record<string, string>;
  for (const method of ["GET", "POST"]) {
    for (const path of ["/api/user/epay/notify", "/api/payment/epay"]) {
      const said = await app.call(method, `${path}?sign=wrong`);
      measure.expectAnswer(
        `${method} ${path.replace("epay", path.includes("payment") ? "{rail}" : "epay")}`,
        said.status,
        said.text,
      );
    }
  }
  const stripe = startFakeStripe();
  await options.set("StripeApiBase", stripe.url);
  await options.set("StripeApiSecret", "sk_test_0123456789");
  const secret = "whsec_0123456789abcdefghijkl";
  await options.set("StripeWebhookSecret", secret);
  await ask("POST /api/user/stripe/amount", { body: { amount: 10 } });
  await ask("POST /api/user/stripe/pay", { body: { amount: 10 } });
  const [session] = stripe.sessions;
  const timestamp = Math.floor(Date.now() / 1000);
  const paid = { ...session, payment_status: "paid" };
  const { payload, header } = await signedEvent("checkout.session.completed", paid, { secret, timestamp });
  const headers = { "stripe-signature": header };
  const taken = await app.call("POST", "/api/stripe/webhook", payload, { id: 0, username: "", headers });
  measure.expectAnswer("POST /api/stripe/webhook", taken.status, taken.text);
  const body = { trade_no: session?.client_reference_id, reason: "Ordered twice" };
  await ask("POST /api/user/topup/refund", { body });
  for (const path of ["", "/events"]) await ask(`GET /api/user/topup/{trade_no}${path}`, { id: tradeNo });
  await ask("GET /api/user/statement", { query: `?month=${new Date().toISOString().slice(0, 7)}` });
  await stripe.stop();
  await ask("POST /api/user/topup/complete", { body: { trade_no: tradeNo, reason: "Paid at the desk" } });
}

/** One-time codes and a passkey of root, from setting up to removal, and of a user who loses both. */
async function factorCalls(ask: Ask, { app, measure }: Caller): Promise<void> {
  await app.deps.options.set("ServerAddress", "https://gate.example");
  await app.deps.options.set("passkey.enabled", "true");
  type Begun = { secret: string; flow_token: string; options: { challenge: string; user: { id: string } } };
  const begin = async (name: string) => (await ask(name))["data"] as Begun;
  const { secret, flow_token } = await begin("POST /api/user/2fa/setup");
  const totp = new TOTP({ secret: Secret.fromBase32(secret) });
  await ask("POST /api/user/2fa/enable", { body: { flow_token, code: totp.generate() } });
  await ask("POST /api/user/2fa/backup_codes");
  await ask("POST /api/user/2fa/disable");
  const site = { origin: "https://gate.example", rpId: "gate.example" };
  const authenticator = createAuthenticator();
  const made = await begin("POST /api/user/passkey/register/begin");
  const registered = authenticator.register({ challenge: made.options.challenge, ...site });
  await ask("POST /api/user/passkey/register/finish", {
    body: { flow_token: made.flow_token, response: registered, name: "Key" },
  });
  const userHandle = made.options.user.id;
  const shown = async (name: string) => {
    const { options, flow_token: token } = await begin(name);
    return {
      flow_token: token,
      response: authenticator.assert({ challenge: options.challenge, ...site, userHandle }),
    };
  };
  const login = await shown("POST /api/user/passkey/login/begin");
  await ask("POST /api/user/passkey/login/finish", { body: login });
  const verify = await shown("POST /api/user/passkey/verify/begin");
  await ask("POST /api/verify", { body: { method: "passkey", ...verify } });
  const listed = (await ask("GET /api/user/passkey/")) as { data: { id: number }[] };
  const id = listed.data[0]?.id ?? 0;
  await ask("PUT /api/user/passkey/{id}", { id, body: { name: "Laptop" } });
  await ask("DELETE /api/user/passkey/{id}", { id });
  const over = await app.call("POST", "/api/user/login/2fa", { flow_token: "0".repeat(32), code: "123456" });
  measure.expectAnswer("POST /api/user/login/2fa", over.status, over.body);
  const lost = await app.call("POST", "/api/user/rescue", { token: "0".repeat(64) });
  measure.expectAnswer("POST /api/user/rescue", lost.status, lost.body);
  const other = await app.createUser();
  await ask("DELETE /api/user/{id}/2fa", { id: other.id });
  await ask("DELETE /api/user/{id}/reset_passkey", { id: other.id });
}

/** A provider of root's own, with an identity server to discover. */
async function providerWrites(
  ask: (name: string, call?: Call) => Promise<unknown>,
  app: TestApp,
): Promise<void> {
  await app.deps.options.set("ServerAddress", "https://gate.example");
  const policy = { logic: "or", conditions: [{ field: "level", op: "in", value: [1, "two", true] }] };
  const fields = { name: "Work", slug: "work-sso", kind: "oauth2", access_policy: policy };
  await ask("POST /api/custom-oauth-provider/", { body: fields });
  await ask("GET /api/custom-oauth-provider/");
  await ask("GET /api/custom-oauth-provider/{id}", { id: "work-sso" });
  await ask("GET /api/custom-oauth-provider/{id}/ways_in", { id: "work-sso" });
  await ask("PUT /api/custom-oauth-provider/{id}", { id: "work-sso", body: { name: "Works" } });
  await ask("DELETE /api/custom-oauth-provider/{id}", { id: "work-sso" });
}

/** Names of calls that some test asked, on either site. */
const asked = new Set<string>();

/** It says `code: true` where others say `success`. */
async function keyUsage({ app, measure }: Caller, key: string): Promise<void> {
  const ask = (headers: Record<string, string>) =>
    app.call("GET", "/api/usage/token", undefined, { id: 0, username: "", headers });
  const good = await ask({ authorization: `Bearer ${key}` });
  expect(good.body).toMatchObject({ code: true });
  measure.expectAnswer("GET /api/usage/token", 200, good.body);
  const bad = await ask({ authorization: "Bearer sk-none" });
  measure.expectAnswer("GET /api/usage/token", bad.status, bad.body);
}

async function fullSite(database: DatabaseKind): Promise<void> {
  const sample: Sample = await startSample({ ...PLAIN_WORDS, rows: 24 }, { database });
  try {
    const { app, root, user } = sample;
    // Closed as long as nobody opens it.
    await app.deps.options.set("ExposeRatioEnabled", "true");
    const measure = new Measure(await documentAt(app.url));
    const caller = new Caller(app, measure);
    const own = await app.createToken(root.id);
    const idOf = (name: string, actor: TestUser) =>
      name.includes("/token/") ? (actor === root ? own.id : 1) : name.includes("/user/") ? user.id : 1;
    for (const name of consoleReads(measure)) {
      const queries = ["", ...(QUERIES[name] ?? [])];
      for (const as of isForAll(measure, name) ? [root, user] : [root])
        for (const query of queries) await caller.ask(name, { as, query, id: idOf(name, as) });
    }
    for (const [name, as] of [
      ["GET /api/log/export", root],
      ["GET /api/log/self/export", user],
    ] as const) {
      const file = await app.call("GET", name.slice(4), undefined, as);
      expect(file.headers.get("content-type")).toStartWith("text/csv");
      measure.expectAnswer(name, file.status, file.text, "text/csv");
    }
    // Of one channel, whose bills are compared.
    const channel = [...app.deps.routing.channels()][0];
    await caller.ask("GET /api/cost/drift", { as: root, query: `?channel_id=${channel?.id}` });
    const { logs } = app.deps.db.t;
    const { key, id: tokenId } = await app.createToken(user.id);
    await app.deps.db.orm.update(logs).set({ tokenId }).where(eq(logs.userId, user.id));
    expect((await caller.ask("GET /api/log/token", { query: `?key=${key}` }))["data"]).not.toEqual([]);
    await keyUsage(caller, key);
    for (const name of measure.seen) asked.add(name);
  } finally {
    await sample.app.close();
  }
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let caller: Caller;
  let root: TestUser;
  const upstream = startFakeUpstream();

  beforeAll(async () => {
    app = await startTestApp({ database });
    caller = new Caller(app, new Measure(await documentAt(app.url)));
  });
  afterAll(async () => {
    for (const name of caller.measure.seen) asked.add(name);
    await app.close();
    (await upstream).stop();
  });

  test("a fresh site is set up, and every list of it is empty in the documented form", async () => {
    const { ask } = { ask: caller.ask.bind(caller) };
    for (const name of ["GET /api/setup", "GET /api/status", "GET /api/pricing", "GET /api/user/groups"])
      await ask(name);
    await ask("POST /api/setup/import", { body: { source: "/no/such/one-api.db" }, refused: 400 });
    await ask("GET /api/setup/import");
    const account = { username: "root", password: "correct horse" };
    await ask("POST /api/setup", { body: { ...account, confirmPassword: account.password } });
    const signedIn = await app.call<{ data: { id: number } }>("POST", "/api/user/login", account);
    caller.measure.expectAnswer("POST /api/user/login", 200, signedIn.body);
    const cookie = signedIn.headers
      .getSetCookie()
      .map((line) => line.split(";")[0])
      .join("; ");
    const { id } = signedIn.body.data;
    root = { id, username: "root", headers: { cookie, "new-api-user": String(id) } };
    await app.deps.options.set("ExposeRatioEnabled", "true");
    for (const name of consoleReads(caller.measure))
      if (!name.includes("{id}")) await ask(name, { as: root });
  });

  test("what is written is answered as documented", async () => {
    const ask = (name: string, call: Call = {}) => caller.ask(name, { as: root, ...call });
    await channelWrites(ask, { caller, root, url: (await upstream).url });
    await peopleWrites(ask, caller, app);
    await letterCalls(ask, app);
    await paymentCalls(ask, caller);
    await factorCalls(ask, caller);
    await ask("PUT /api/option/", { body: { key: "SystemName", value: "Weir" } });
    await ask("DELETE /api/maintenance");
    await ask("POST /api/option/rest_model_ratio");
    await ask("POST /api/option/preview", { body: { key: "About", value: "<p onclick=1>a</p>" } });
    await ask("POST /api/option/version");
    await ask("GET /api/option/ways_in", { query: "?key=ServerAddress&value=https://other.example" });
    await providerWrites(ask, app);
    await signInCalls(app, caller.measure, root);
    await ask("GET /api/log/clear_count", { query: "?target_timestamp=1000000000" });
    await ask("DELETE /api/log/", { query: "?target_timestamp=1000000000" });
    await ask("GET /api/user/logout");
  });

  test("refusals have the documented form, with every status", async () => {
    const user = await app.createUser();
    const { measure } = caller;
    for (const { name, operation } of operationsOf(measure.document)) {
      if (!name.includes(" /api/") || operation.security.length === 0) continue;
      await caller.ask(name, { id: 1, refused: 401 });
      const role = (operation.security[0]?.["session"] ?? [])[0];
      if (role === "admin" || role === "root") await caller.ask(name, { id: 1, as: user, refused: 403 });
    }
    const admin = await app.createUser({ role: 100 });
    await caller.ask("PUT /api/option/", { as: admin, body: {}, refused: 400 });
    const missing = await app.call("GET", "/api/token/999999", undefined, user);
    expect(missing.body).toMatchObject({ success: false });
    measure.expectAnswer("GET /api/token/{id}", 200, missing.body);
    const wrong = await app.call("POST", "/api/token/", { name: 5 }, user);
    expect(wrong.body).toMatchObject({ success: false, field: "name" });
    measure.expectAnswer("POST /api/token/", 200, wrong.body);
  });

  test("on a full site every list, row and figure has the documented form", () => fullSite(database));

  test("no call of the console is left out", () => {
    const all = operationsOf(caller.measure.document).map(({ name }) => name);
    for (const name of caller.measure.seen) asked.add(name);
    expect(all.filter((name) => name.includes(" /api/") && !asked.has(name))).toEqual([]);
  });

  test("a field that the document does not name is seen", () => {
    const good = { success: true, message: "", data: { role: 1, status: 1 } };
    const name = "POST /api/user/manage";
    caller.measure.expectAnswer(name, 200, good);
    const more = { ...good, data: { ...good.data, more: 1 } };
    expect(() => caller.measure.expectAnswer(name, 200, more)).toThrow();
    expect(() =>
      caller.measure.expectAnswer(name, 200, { ...good, data: { role: "1", status: 1 } }),
    ).toThrow();
  });
});

type Ask = (name: string, call?: Call) => Promise<Json>;

interface Site {
  caller: Caller;
  root: TestUser;
  /** Of the fake provider. */
  url: string;
}

async function channelWrites(ask: Ask, { caller, root, url }: Site): Promise<void> {
  const channel = { type: 1, name: "first", key: "k1\nk2", base_url: url, models: "gpt-4o-mini" };
  const made = (await ask("POST /api/channel/", { body: channel })) as { data: number[] };
  const [id = 0, other = 0] = made.data;
  await ask("PUT /api/channel/", { body: { id, key: "a\nb", priority: 3, tag: "t" } });
  await ask("GET /api/channel/{id}", { id });
  await ask("GET /api/channel/keys/{id}", { id });
  await ask("GET /api/channel/test/{id}", { id });
  await ask("GET /api/channel/fetch_models/{id}", { id });
  await ask("POST /api/channel/fetch_models", { body: { type: 1, base_url: url, key: "k" } });
  await ask("POST /api/channel/copy/{id}", { id });
  await ask("GET /api/channel/test");
  await ask("GET /api/channel/test_progress");
  await ask("GET /api/channel/update_balance");
  await ask("POST /api/channel/batch/tag", { body: { ids: [id, other], tag: "t" } });
  await ask("PUT /api/channel/tag", { body: { tag: "t", weight: 2 } });
  await ask("POST /api/channel/tag/disabled", { body: { tag: "t" } });
  await ask("POST /api/channel/tag/enabled", { body: { tag: "t" } });
  await ask("POST /api/channel/fix");
  await ask("DELETE /api/channel/disabled");
  const balance = await caller.app.call("GET", `/api/channel/update_balance/${id}`, undefined, root);
  expect(balance.body).toMatchObject({ success: false, balance: 0 });
  caller.measure.expectAnswer("GET /api/channel/update_balance/{id}", 200, balance.body);
  await ask("DELETE /api/channel/{id}", { id });
  await ask("POST /api/channel/batch", { body: { ids: [other] } });
}

async function peopleWrites(ask: Ask, caller: Caller, app: TestApp): Promise<void> {
  const token = (await ask("POST /api/token/", { body: { name: "first", unlimited_quota: true } })) as {
    data: { id: number };
  };
  const { id } = token.data;
  await ask("PUT /api/token/", { body: { id, name: "second" } });
  await ask("PUT /api/token/", { query: "?status_only=true", body: { id, status: 2 } });
  await ask("GET /api/token/{id}", { id });
  await ask("POST /api/token/{id}/rotate", { id, body: { grace_seconds: 60 } });
  await ask("DELETE /api/token/{id}", { id });

  const made = await ask("POST /api/user/", { body: { username: "grace", password: "correct horse" } });
  const grace = (made as { data: { id: number } }).data.id;
  await ask("PUT /api/user/", { body: { id: grace, quota_change: 500, quota_reason: "bank transfer" } });
  await ask("POST /api/user/manage", { body: { id: grace, action: "disable" } });
  await ask("GET /api/user/{id}", { id: grace });
  await ask("GET /api/user/{id}/keys", { id: grace });
  await ask("DELETE /api/user/{id}", { id: grace });

  const codes = await ask("POST /api/redemption/", { body: { name: "spring", quota: 500, count: 3 } });
  const [first, second] = (codes as { data: string[] }).data;
  const listed = (await ask("GET /api/redemption/")) as { data: { items: { id: number }[] } };
  const code = listed.data.items[0]?.id ?? 0;
  await ask("POST /api/user/topup", { body: { key: first } });
  await ask("POST /api/user/topup/batch", { body: { keys: [second, "0".repeat(32)] } });
  await ask("GET /api/redemption/{id}", { id: code });
  await ask("PUT /api/redemption/", { body: { id: code, name: "summer", quota: 700 } });
  await ask("POST /api/redemption/batch", { body: { ids: [code], action: "disable" } });
  await ask("DELETE /api/redemption/{id}", { id: code });

  await ask("PUT /api/user/self", { body: { display_name: "Root" } });
  const renewed = (await ask("GET /api/user/token")) as { data: string };
  expect(renewed.data).toMatch(/^[\w-]{20,}$/);
  await ask("PUT /api/user/setting", { body: { notify_type: "email", quota_warning_threshold: 1000 } });

  const bob = await app.createUser();
  const measure = caller.measure;
  // Nothing to transfer, nobody to write to: the refusals of these calls have their form.
  const poor = await app.call("POST", "/api/user/aff_transfer", { quota: 500_000 }, bob);
  measure.expectAnswer("POST /api/user/aff_transfer", poor.status, poor.body);
  const setting = { notify_type: "email", quota_warning_threshold: 1000, notification_email: "b@b.example" };
  const test = await app.call("POST", "/api/user/setting/test", setting, bob);
  measure.expectAnswer("POST /api/user/setting/test", test.status, test.body);
  await caller.ask("DELETE /api/user/self", { as: bob, body: {} });
}
