// Case 40 of identity.md: people come in by every way there is, lose and renew their secrets; then every route is read by
// everybody, and no answer, list, file, page, error or log line holds a secret, a session's id, a hash or a sealed text.
// What must not come out is read from the database's own columns, so that a new one is covered. On both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { getTableColumns } from "drizzle-orm";
import type { Table } from "drizzle-orm";
import { Secret, TOTP } from "otpauth";
import { createApp } from "../../src/app.ts";
import { createLogger } from "../../src/core/kit/logger.ts";
import { pages } from "../../src/pages/pages.ts";
import { Role } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { Answer, TestApp, TestUser } from "../support/app.ts";
import { createAuthenticator } from "../support/authenticator.ts";
import { startMailServer } from "../support/mail-server.ts";
import type { MailServerStand } from "../support/mail-server.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startProviderFakes } from "../support/provider-fakes.ts";
import type { ProviderFakes } from "../support/provider-fakes.ts";
import { until } from "../relay/support.ts";

const PASSWORD = "a password that nobody guesses";
const SITE = { origin: "https://gate.example", rpId: "gate.example" };
/** Columns of secrets, by how such columns are called here. */
const SECRET_COLUMN = /hash|sealed|^payload$|^passkeyHandle$/i;
/** Long enough not to stand somewhere by chance. */
const LEAST_CHARACTERS = 6;

interface Told {
  success: boolean;
  code?: string;
  data: Record<string, unknown>;
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let mail: MailServerStand;
  let fakes: ProviderFakes;
  let root: TestUser;
  let ada: TestUser;
  const lines: string[] = [];
  /** What was shown to its owner once, and to nobody since. */
  const shown = new Set<string>();
  /** Answers by what was asked. */
  const answers: [string, string][] = [];

  const keep = (name: string, answer: Answer<Told>): Answer<Told> => {
    answers.push([name, answer.text]);
    return answer;
  };
  const call = async (method: string, path: string, body?: unknown, as?: TestUser) =>
    keep(`${method} ${path.split("?", 1)[0]}`, await app.call<Told>(method, path, body, as));
  const good = async (method: string, path: string, body?: unknown, as?: TestUser) => {
    const answer = await call(method, path, body, as);
    expect([path, answer.status, answer.body]).toMatchObject([path, 200, { success: true }]);
    return answer;
  };
  const told = (value: string): string => {
    shown.add(value);
    return value;
  };
  const guest = (headers: Record<string, string>): TestUser => ({ id: 0, username: "", headers });
  const signedIn = (answer: Answer<Told>): TestUser => {
    const cookies = answer.headers.getSetCookie().map((line) => line.split(";", 1)[0] ?? "");
    for (const cookie of cookies) told(cookie.slice(cookie.indexOf("=") + 1));
    const id = Number(answer.body.data["id"]);
    return { id, username: "", headers: { cookie: cookies.join("; "), "new-api-user": String(id) } };
  };
  /** What the newest of so many letters says. */
  const letter = (count: number, found: RegExp): Promise<string> =>
    until(() => {
      const text = mail.letters.length >= count ? (mail.letters.at(-1)?.text ?? "") : "";
      return Promise.resolve(found.exec(text)?.at(-1));
    });

  beforeAll(async () => {
    mail = await startMailServer();
    fakes = startProviderFakes();
    app = await startTestApp({
      database,
      env: { CRITICAL_RATE_LIMIT_ENABLE: "false" },
      logger: createLogger("debug", (line) => void lines.push(line)),
    });
    root = await app.createUser({ role: Role.root });
    for (const [key, text] of [
      ["SMTPServer", "127.0.0.1"],
      ["SMTPPort", String(mail.port)],
      ["SMTPFrom", "site@mail.example"],
      ["ServerAddress", SITE.origin],
      ["EmailVerificationEnabled", "true"],
      ["passkey.enabled", "true"],
      ["GitHubBaseUrl", fakes.url],
      ["GitHubClientId", "the-id"],
      ["GitHubClientSecret", "the-secret"],
      ["GitHubOAuthEnabled", "true"],
      ["SMTPToken", told("the password of the mail")],
      ["TurnstileSecretKey", told("the secret of the human check")],
      ["TelegramBotToken", told("4711:the-token-of-the-bot")],
      ["EpayKey", told("the key of the payments")],
    ] as const)
      await good("PUT", "/api/option/", { key, value: text }, root);
    await comeIn();
    await secondFactors();
    await byProviders();
    await wrongs();
  });
  afterAll(async () => {
    await app.close();
    await mail.close();
    await fakes.close();
  });

  /** By a code, a password, a reset, a system access token and keys. */
  async function comeIn() {
    const email = "ada@mail.example";
    await good("GET", `/api/verification?email=${email}`);
    const code = told(await letter(1, /\b\d{6}\b/));
    const account = { username: "ada", password: told(PASSWORD), email, verification_code: code };
    await good("POST", "/api/user/register", account);
    ada = signedIn(await good("POST", "/api/user/login", account));
    await good("GET", `/api/reset_password?email=${email}`);
    const token = told(await letter(2, /token=([0-9a-f]{32})/));
    const reset = await good("POST", "/api/user/reset", { email, token });
    const password = told(reset.body.data as unknown as string);
    ada = signedIn(await good("POST", "/api/user/login", { username: "ada", password }));
    told((await good("GET", "/api/user/token", undefined, ada)).body.data as unknown as string);
    const setting = {
      notify_type: "webhook",
      webhook_url: "https://hook.example/x",
      quota_warning_threshold: 1,
    };
    const secret = told("the secret of the webhook");
    await good("PUT", "/api/user/setting", { ...setting, webhook_secret: secret }, ada);
    await app.createToken(ada.id);
    await app.createChannel({ key: told("sk-the-key-of-an-upstream") });
  }

  async function secondFactors() {
    const setup = await good("POST", "/api/user/2fa/setup", {}, ada);
    const secret = told(String(setup.body.data["secret"]));
    const flow = told(String(setup.body.data["flow_token"]));
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate();
    const enabled = await good("POST", "/api/user/2fa/enable", { code, flow_token: flow }, ada);
    for (const each of enabled.body.data["backup_codes"] as string[]) told(each);
    const authenticator = createAuthenticator();
    const begun = await good("POST", "/api/user/passkey/register/begin", {}, ada);
    const { options, flow_token: token } = begun.body.data as {
      options: { challenge: string; user: { id: string } };
      flow_token: string;
    };
    const response = authenticator.register({ challenge: options.challenge, ...SITE });
    const registered = { flow_token: told(token), response, name: "Key" };
    await good("POST", "/api/user/passkey/register/finish", registered, ada);
    const [backup = ""] = enabled.body.data["backup_codes"] as string[];
    const password = [...shown].find((each) => /^[A-Za-z2-9]{12}$/.test(each)) ?? "";
    const first = await good("POST", "/api/user/login", { username: "ada", password });
    const second = { flow_token: told(String(first.body.data["flow_token"])), code: backup };
    ada = signedIn(await good("POST", "/api/user/login/2fa", second));
  }

  async function byProviders() {
    const provider = {
      name: "Work",
      slug: "work",
      kind: "oauth2",
      enabled: false,
      client_id: "id",
      client_secret: told("the secret of a provider"),
      authorization_endpoint: "https://work.example/a",
      token_endpoint: "https://work.example/t",
      user_info_endpoint: "https://work.example/u",
    };
    await good("POST", "/api/custom-oauth-provider/", provider, root);
    const begun = await good("POST", "/api/oauth/start", { provider: "github" });
    const flow = begun.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
    told(flow.slice(flow.indexOf("=") + 1));
    const query = fakes.signIn(String(begun.body.data["url"]), {
      id: 77,
      login: "grace",
      created_at: "2020-01-01T00:00:00Z",
    });
    for (const name of ["code", "state"]) told(query.get(name) ?? "");
    const back = await good("GET", `/api/oauth/github?${query}`, undefined, guest({ cookie: flow }));
    signedIn(back);
    // The name is typed into the field of the password, and the other way about: people do.
    await call("POST", "/api/user/login", {
      username: told("my secret typed as a name"),
      password: PASSWORD,
    });
  }

  /** What is refused answers errors, of which none may say what was sent. */
  async function wrongs() {
    const [token] = [...shown].filter((each) => /^[0-9a-f]{32}$/.test(each));
    await call("POST", "/api/user/reset", { email: "ada@mail.example", token });
    await call("POST", "/api/user/login", { username: "ada", password: PASSWORD });
    await call("POST", "/api/user/login/2fa", { flow_token: token, code: "123456" });
    await call("POST", "/api/verify", { method: "password", password: PASSWORD }, ada);
    await call("GET", `/api/oauth/github?code=${token}&state=${token}`);
    await call("POST", "/api/user/rescue", { token });
    fakes.wrong.token = () =>
      Response.json({ error: "bad", access_token: told("token-of-a-broken-provider") });
    const begun = await call("POST", "/api/oauth/start", { provider: "github" });
    const cookie = begun.headers.getSetCookie()[0]?.split(";", 1)[0] ?? "";
    const query = fakes.signIn(String(begun.body.data["url"]), { id: 78, login: "joan" });
    await call("GET", `/api/oauth/github?${query}`, undefined, guest({ cookie }));
    fakes.wrong.token = undefined;
  }

  /** Values of every secret column of every table, and the ids of all sessions. */
  async function kept(): Promise<Set<string>> {
    const found = new Set<string>();
    const names = new Set<string>();
    for (const table of Object.values(app.deps.db.t) as Table[]) {
      const secret = Object.keys(getTableColumns(table)).filter((name) => SECRET_COLUMN.test(name));
      if (secret.length === 0) continue;
      const rows = (await app.deps.db.orm.select().from(table as never)) as Record<string, unknown>[];
      for (const row of rows)
        for (const name of secret) {
          const text = row[name];
          if (typeof text !== "string" || text.length < LEAST_CHARACTERS) continue;
          found.add(text);
          names.add(name);
        }
    }
    const { sessions } = app.deps.db.t;
    for (const { id } of await app.deps.db.orm.select({ id: sessions.id }).from(sessions)) found.add(id);
    // The walk before this one really left something behind.
    for (const name of [
      "passwordHash",
      "accessTokenHash",
      "secretHash",
      "secretSealed",
      "keySealed",
      "payload",
      "clientSecretSealed",
    ])
      expect([...names]).toContain(name);
    return found;
  }

  const leaks = (texts: readonly (readonly [string, string])[], secrets: ReadonlySet<string>): string[] =>
    texts.flatMap(([name, text]) =>
      [...secrets].filter((each) => text.includes(each)).map((each) => `${name}: ${each}`),
    );

  test("no answer of any of it holds what only the database knows", async () => {
    const secrets = await kept();
    // Browsers bind a passkey to it: the one answer that has to say it.
    const handle = answers.find(([name]) => name === "POST /api/user/passkey/register/begin");
    const { options } = (JSON.parse(handle?.[1] ?? "{}") as { data: { options: { user: { id: string } } } })
      .data;
    expect(leaks(answers, new Set([...secrets].filter((each) => each !== options.user.id)))).toEqual([]);
    expect(
      leaks(
        answers.filter(([name]) => !name.includes("passkey/register/begin")),
        secrets,
      ),
    ).toEqual([]);
  });

  test("nothing that is read afterwards, by whomever, holds that or what was shown once", async () => {
    // Until then every page leads to the wizard.
    await good("POST", "/api/setup", {});
    const channel = { type: 1, name: "upstream", models: "gpt-4o", group: "default" };
    await good("POST", "/api/channel/", { ...channel, key: told("a key of the upstream's own") }, root);
    const secrets = new Set([...(await kept()), ...shown]);
    const routes = (await createApp(app.services)).routes.filter(
      ({ method, path }) =>
        method === "GET" && !path.includes("*") && !/\/(logout|user\/token|test|update_)/.test(path),
    );
    expect(routes.length).toBeGreaterThan(100);
    // Pages are made of what the calls answer: on PostgreSQL only the long run looks at them as well.
    const hasPages = database === "sqlite" || Bun.env["WEIR_LONG"] === "1";
    const texts: [string, string][] = [];
    for (const { path } of [...routes, ...(hasPages ? pages : [])])
      for (const as of [root, ada, undefined]) {
        const query = path.startsWith("/api/") ? "?page_size=100&size=100" : "";
        const at = path.replaceAll(/:\w+/g, (name) =>
          path.includes("custom-oauth") ? "work" : name === ":id" ? String(ada.id) : "x",
        );
        const { text } = await app.call("GET", at + query, undefined, as);
        texts.push([`${path} as ${as === root ? "root" : as === ada ? "ada" : "nobody"}`, text]);
      }
    expect(leaks(texts, secrets)).toEqual([]);
    // The walk saw lists, not refusals.
    for (const name of [
      "/api/user/ as root",
      "/api/log/ as root",
      "/api/user/self as ada",
      "/api/option/ as root",
    ])
      expect(texts.find(([each]) => each === name)?.[1]).toContain('"success":true');
    for (const name of hasPages ? ["/node as root", "/channel as root", "/token as ada"] : [])
      expect(texts.find(([each]) => each === name)?.[1]).toContain("data-shell=");
    expect(texts.find(([each]) => each === "/api/log/export as root")?.[1]).toContain("account.registered");
  });

  test("no line of the program's log does", async () => {
    const secrets = new Set([...(await kept()), ...shown]);
    expect(lines.length).toBeGreaterThan(0);
    expect(leaks([["log", lines.join("\n")]], secrets)).toEqual([]);
    const { logs } = app.deps.db.t;
    const rows = JSON.stringify(await app.deps.db.orm.select().from(logs));
    expect(leaks([["rows", rows]], secrets)).toEqual([]);
  });
});
