// Sign-in by OpenID Connect against a real identity server in this process, and against one that forges: only a token
// signed by its keys, for us, in time and for this very sign-in, lets anybody in. On both databases, and the program as
// people start it.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { eq } from "drizzle-orm";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import {
  OIDC_CLIENT,
  signedBy,
  signedByPublicKey,
  startForgingServer,
  startIdentityServer,
} from "../support/identity-server.ts";
import type { Forgery, ForgingServer, IdentityServer } from "../support/identity-server.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";

interface Told {
  success: boolean;
  message: string;
  code?: string;
  data: Record<string, unknown>;
}

const SITE = "https://gate.example";
const RETURN = `${SITE}/oauth/oidc`;
const DOCUMENT = "/.well-known/openid-configuration";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let real: IdentityServer;
  let forging: ForgingServer;
  let root: TestUser;
  let nonce = "";
  let serial = 0;

  const put = (key: OptionKey, value: string) =>
    app.call<Told>("PUT", "/api/option/", { key, value }, root).then(({ body }) => body);
  beforeAll(async () => {
    real = await startIdentityServer(RETURN);
    forging = startForgingServer(() => nonce);
    app = await startTestApp({ database });
    root = await app.createUser({ role: 100 });
    await put("ServerAddress", SITE);
    await put("oidc.client_id", OIDC_CLIENT.id);
    await put("oidc.client_secret", OIDC_CLIENT.secret);
    expect(await put("oidc.well_known", real.issuer + DOCUMENT)).toMatchObject({ success: true });
    expect(await put("oidc.enabled", "true")).toMatchObject({ success: true });
  });
  afterAll(async () => {
    await app.close();
    await real.close();
    await forging.close();
  });

  const start = async (intent = "signin", as?: TestUser) => {
    const answer = await app.call<Told>("POST", "/api/oauth/start", { provider: "oidc", intent }, as);
    const flow = answer.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
    const url = String(answer.body.data["url"]);
    nonce = new URL(url).searchParams.get("nonce") ?? "";
    const cookie = [as?.headers["cookie"], flow].filter(Boolean).join("; ");
    return { url, browser: { id: 0, username: "", headers: { ...as?.headers, cookie } } };
  };
  const back = (browser: TestUser, query: URLSearchParams) =>
    app.call<Told>("POST", "/api/oauth/oidc", Object.fromEntries(query), browser);
  const person = (more: Record<string, unknown> = {}) => {
    serial += 1;
    real.account = {
      sub: `sub-${database}-${serial}`,
      preferred_username: `oi${database[0]}${serial}`,
      name: "Grace",
      email: `oi${serial}${database[0]}@mail.example`,
      email_verified: true,
      ...more,
    };
    return real.account;
  };

  test("the whole way: PKCE, nonce, signature, userinfo; the second time it is the same account", async () => {
    const who = person();
    const first = await start();
    const { searchParams } = new URL(first.url);
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: "code",
      client_id: OIDC_CLIENT.id,
      redirect_uri: RETURN,
      scope: "openid profile email",
      code_challenge_method: "S256",
    });
    const query = await real.signIn(first.url);
    const made = await back(first.browser, query);
    expect(made.body).toMatchObject({
      success: true,
      data: { username: who["preferred_username"], display_name: "Grace", is_new: true },
    });
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm
      .select()
      .from(users)
      .where(eq(users.id, Number(made.body.data["id"])));
    expect(row?.email).toBe(String(who["email"]));
    expect((await back(first.browser, query)).body.code).toBe("oauth_state");
    const second = await start();
    expect((await back(second.browser, await real.signIn(second.url))).body.data).toMatchObject({
      id: row?.id,
      is_new: false,
    });
  });

  test("an address that is not verified, or verified in words, is none", async () => {
    for (const verified of [false, "true", undefined]) {
      person({ email_verified: verified });
      const flow = await start();
      const { body } = await back(flow.browser, await real.signIn(flow.url));
      const { users } = app.deps.db.t;
      const [row] = await app.deps.db.orm
        .select()
        .from(users)
        .where(eq(users.id, Number(body.data["id"])));
      expect([verified, row?.email]).toEqual([verified, ""]);
    }
  });

  test("another flow's code, another issuer's answer and a used code come to nothing (case 22)", async () => {
    person();
    const [one, two] = [await start(), await start()];
    const [codeOfOne, stateOfTwo] = [await real.signIn(one.url), await real.signIn(two.url)];
    const mixed = new URLSearchParams(stateOfTwo);
    mixed.set("code", codeOfOne.get("code") ?? "");
    // PKCE: the code is bound to the verifier of the other flow.
    expect((await back(two.browser, mixed)).body).toMatchObject({
      success: false,
      code: "oauth_exchange_failed",
    });
    const three = await start();
    const foreign = await real.signIn(three.url);
    foreign.set("iss", "https://evil.example");
    expect((await back(three.browser, foreign)).body.code).toBe("oauth_exchange_failed");
  });

  test("a fresh proof asks them to sign in there again, as the same person", async () => {
    person();
    const flow = await start();
    const { body } = await back(flow.browser, await real.signIn(flow.url));
    const user = await app.createUser();
    const { identities } = app.deps.db.t;
    await app.deps.db.orm
      .update(identities)
      .set({ userId: user.id })
      .where(eq(identities.userId, Number(body.data["id"])));
    const proof = await start("verify", user);
    expect(new URL(proof.url).searchParams.get("max_age")).toBe("0");
    expect((await back(proof.browser, await real.signIn(proof.url))).body).toMatchObject({
      success: true,
      message: "verify",
    });
    person();
    const other = await start("verify", user);
    expect((await back(other.browser, await real.signIn(other.url))).body.code).toBe("oauth_other_account");
  });

  describe("a server that forges (case 25)", () => {
    beforeAll(async () => {
      expect(await put("oidc.well_known", forging.issuer + DOCUMENT)).toMatchObject({ success: true });
    });
    afterAll(() => put("oidc.well_known", real.issuer + DOCUMENT));

    const comeBack = async (forgery: Forgery) => {
      forging.forgery = forgery;
      const { url, browser } = await start();
      const state = new URL(url).searchParams.get("state") ?? "";
      return (await back(browser, new URLSearchParams({ code: "c", state }))).body;
    };
    const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const past = Math.floor(Date.now() / 1000) - 3600;

    test("what it signs rightly is taken, so that each refusal below is one of its single cause", async () => {
      expect(await comeBack({})).toMatchObject({ success: true });
      // What is signed wins over what is only said.
      expect(await comeBack({ userinfo: { preferred_username: "said" } })).toMatchObject({ success: true });
    });

    test.each<[string, Forgery]>([
      ["a zeroed signature", { sign: () => Buffer.alloc(256).toString("base64url") }],
      ["no signature", { sign: () => "" }],
      ["a stranger's key", { sign: signedBy(stranger) }],
      ["alg none", { header: { alg: "none" }, sign: () => "" }],
      ["HS256 by the public key", { header: { alg: "HS256" }, sign: signedByPublicKey }],
      [
        "HS256 by the client's secret",
        { header: { alg: "HS256" }, sign: (text) => signedByPublicKey(text, OIDC_CLIENT.secret) },
      ],
      ["another's audience", { claims: { aud: "somebody-else" } }],
      ["another issuer", { claims: { iss: "https://evil.example" } }],
      ["over", { claims: { iat: past, exp: past + 60 } }],
      ["another nonce", { claims: { nonce: "replayed" } }],
      ["no nonce", { claims: { nonce: undefined } }],
      ["no subject", { claims: { sub: undefined } }],
      ["userinfo of somebody else", { userinfo: { sub: "root" } }],
    ])("%s", async (_name, forgery) => {
      expect(await comeBack(forgery)).toMatchObject({ success: false, code: "oauth_exchange_failed" });
    });
  });

  test("what its document names elsewhere in the operator's networks is not asked", async () => {
    const asked: string[] = [];
    const inside = Bun.serve({
      port: 0,
      hostname: "127.0.0.2",
      fetch({ url }) {
        asked.push(url);
        return new Response("", { status: 404 });
      },
    });
    const pointing = startForgingServer(() => nonce);
    const comeBack = async () => {
      const { url, browser } = await start();
      const state = new URL(url).searchParams.get("state") ?? "";
      return (await back(browser, new URLSearchParams({ code: "c", state }))).body;
    };
    try {
      pointing.elsewhere = `http://127.0.0.2:${inside.port}`;
      expect(await put("oidc.well_known", pointing.issuer + DOCUMENT)).toMatchObject({ success: true });
      expect(await comeBack()).toMatchObject({ success: false, code: "oauth_exchange_failed" });
      expect(asked).toEqual([]);
    } finally {
      await put("oidc.well_known", real.issuer + DOCUMENT);
      await pointing.close();
      await inside.stop(true);
    }
  });

  test("a discovery address is asked before it is stored, and speaks for itself alone", async () => {
    const before = app.deps.options.text("oidc.well_known");
    for (const address of [
      `http://127.0.0.1:9${DOCUMENT}`,
      `${real.issuer}/nothing${DOCUMENT}`,
      `http://169.254.169.254${DOCUMENT}`,
    ])
      expect(await put("oidc.well_known", address)).toMatchObject({ code: "oidc_discovery_failed" });
    forging.documentIssuer = "https://accounts.google.com";
    const foreign = await put("oidc.well_known", forging.issuer + DOCUMENT);
    forging.documentIssuer = "";
    expect(foreign).toMatchObject({ code: "oidc_discovery_failed" });
    expect(app.deps.options.text("oidc.well_known")).toBe(before);
  });
});

test("the program as people start it runs the flow", async () => {
  const real = await startIdentityServer(RETURN);
  const server = await startServerProcess();
  try {
    const call = async (
      method: string,
      path: string,
      body?: unknown,
      headers: Record<string, string> = {},
    ) => {
      const answer = await fetch(server.url + path, {
        method,
        headers: { "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const cookies = answer.headers.getSetCookie().map((line) => line.split(";", 1)[0] ?? "");
      return { told: (await answer.json()) as Told, cookies };
    };
    const account = { username: "root", password: "correct horse battery" };
    const setup = await call("POST", "/api/setup", { ...account, confirmPassword: account.password });
    expect(setup.told).toMatchObject({ success: true });
    const { told, cookies } = await call("POST", "/api/user/login", account);
    const root = { cookie: cookies.join("; "), "new-api-user": String(told.data["id"]) };
    for (const [key, value] of [
      ["ServerAddress", SITE],
      ["oidc.client_id", OIDC_CLIENT.id],
      ["oidc.client_secret", OIDC_CLIENT.secret],
      ["oidc.well_known", real.issuer + DOCUMENT],
      ["oidc.enabled", "true"],
    ])
      expect((await call("PUT", "/api/option/", { key, value }, root)).told).toMatchObject({ success: true });
    real.account = { sub: "abc", preferred_username: "grace", name: "Grace" };
    const flow = await call("POST", "/api/oauth/start", { provider: "oidc" });
    const query = await real.signIn(String(flow.told.data["url"]));
    const back = await call("GET", `/api/oauth/oidc?${query}`, undefined, {
      cookie: flow.cookies.join("; "),
    });
    expect(back.told).toMatchObject({ success: true, data: { username: "grace", is_new: true } });
  } finally {
    await server.stop();
    await server.remove();
    await real.close();
  }
});
