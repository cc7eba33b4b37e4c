// Providers that root defines, over the wire: what each field takes, what is kept, what goes with them, and that no answer,
// log row or error ever holds a secret. On both databases.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const ROOT_PATH = "/api/custom-oauth-provider/";
const SECRET = "s3cr3t-of-the-client";

interface Told {
  success: boolean;
  code?: string;
  field?: string;
  data: Record<string, unknown> & { slug: string };
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let server: Bun.Server<undefined>;
  let issuer = "";
  let document: unknown;
  let status = 200;

  beforeAll(async () => {
    server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => (document instanceof Response ? document.clone() : Response.json(document, { status })),
    });
    issuer = `http://127.0.0.1:${server.port}/realm`;
    app = await startTestApp({ database, env: { UPSTREAM_NETWORKS: "127.0.0.0/8" } });
    root = await app.createUser({ role: 100 });
    await app.deps.options.set("ServerAddress", "https://gate.example");
  });
  afterAll(async () => {
    await app.close();
    await server.stop(true);
  });
  beforeEach(async () => {
    const { customProviders, identities } = app.deps.db.t;
    await app.deps.db.orm.delete(customProviders);
    await app.deps.db.orm.delete(identities);
    status = 200;
    document = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      userinfo_endpoint: `${issuer}/userinfo`,
      scopes_supported: ["openid", "profile"],
      code_challenge_methods_supported: ["S256"],
    };
  });

  const work = {
    name: "Work",
    slug: "work-sso",
    kind: "oauth2",
    enabled: true,
    client_id: "weir",
    client_secret: SECRET,
    authorization_endpoint: "https://id.example/authorize",
    token_endpoint: "https://id.example/token",
    user_info_endpoint: "https://id.example/me",
    scopes: "read:user",
    user_id_field: "data.id",
  };
  const add = (fields: Record<string, unknown> = {}, as = root) =>
    app.call<Told>("POST", ROOT_PATH, { ...work, ...fields }, as);
  const change = (fields: Record<string, unknown>, slug = "work-sso") =>
    app.call<Told>("PUT", ROOT_PATH + slug, fields, root);

  test("root adds, reads, changes and deletes one; its secret goes in and never comes out", async () => {
    const texts: string[] = [];
    const made = await add({ access_policy: { conditions: [{ field: "level", op: "gte", value: 2 }] } });
    expect(made.body).toMatchObject({
      success: true,
      data: {
        slug: "work-sso",
        client_secret_set: true,
        pkce: "auto",
        auth_style: 0,
        username_field: "preferred_username",
        access_policy: { logic: "and", conditions: [{ field: "level", op: "gte", value: 2 }], groups: [] },
        identities: 0,
      },
    });
    texts.push(made.text);
    const { customProviders, logs } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(customProviders);
    expect(row?.clientSecretSealed).not.toContain(SECRET);
    expect(app.deps.seal.open("user", row?.clientSecretSealed ?? "")).toBe(SECRET);

    const renamed = await change({ name: "Works", client_secret: "", access_policy: null });
    expect(renamed.body.data).toMatchObject({ name: "Works", client_id: "weir", access_policy: null });
    texts.push(renamed.text);
    const [kept] = await app.deps.db.orm.select().from(customProviders);
    expect(kept?.clientSecretSealed).toBe(row?.clientSecretSealed ?? "");
    for (const path of ["", "work-sso"]) {
      const shown = await app.call("GET", ROOT_PATH + path, undefined, root);
      expect(shown.text).toContain('"client_secret_set":true');
      texts.push(shown.text);
    }
    const other = "another-secret-of-the-client";
    texts.push(
      (await change({ client_secret: other })).text,
      (await change({ client_secret: `${SECRET}\n\u0001x` })).text,
    );

    const { identities } = app.deps.db.t;
    for (const userId of [901, 902])
      await app.deps.db.orm
        .insert(identities)
        .values({ userId, provider: "work-sso", subject: `s${userId}` });
    await app.deps.db.orm.insert(identities).values({ userId: 901, provider: "github", subject: "1" });
    const counted = await app.call<Told>("GET", `${ROOT_PATH}work-sso`, undefined, root);
    expect(counted.body.data.identities).toBe(2);
    const gone = await app.call<Told>("DELETE", `${ROOT_PATH}work-sso`, undefined, root);
    expect(gone.body).toMatchObject({ success: true, data: { identities: 2 } });
    expect(await app.deps.db.orm.select({ p: identities.provider }).from(identities)).toEqual([
      { p: "github" },
    ]);
    const again = await app.call<Told>("DELETE", `${ROOT_PATH}work-sso`, undefined, root);
    expect(again.body).toMatchObject({ success: false, code: "provider_missing" });

    await app.deps.ledger.flush();
    const rows = await app.deps.db.orm.select().from(logs).where(eq(logs.userId, root.id));
    const actions = rows.flatMap(
      ({ other: text }) =>
        /"action":"(provider\.\w+)"/.exec(JSON.stringify(text).replaceAll("\\", ""))?.[1] ?? [],
    );
    expect(actions.toSorted()).toEqual([
      "provider.create",
      "provider.delete",
      "provider.update",
      "provider.update",
    ]);
    for (const text of [...texts, JSON.stringify(rows)]) {
      expect(text).not.toContain(SECRET);
      expect(text).not.toContain(other);
      expect(text).not.toContain("s1.");
    }
  });

  test("nobody else may as much as read the list", async () => {
    await add();
    const admin = await app.createUser({ role: 10 });
    const user = await app.createUser();
    for (const as of [undefined, user, admin]) {
      for (const [method, path, body] of [
        ["GET", "", undefined],
        ["POST", "", work],
        ["POST", "discovery", { issuer }],
        ["GET", "work-sso", undefined],
        ["PUT", "work-sso", { name: "Mine" }],
        ["DELETE", "work-sso", undefined],
      ] as const) {
        const answer = await app.call<Told>(method, ROOT_PATH + path, body, as);
        expect([method, path, answer.body.success, answer.text.includes("id.example")]).toEqual([
          method,
          path,
          false,
          false,
        ]);
      }
    }
    const { body } = await app.call<Told>("GET", `${ROOT_PATH}work-sso`, undefined, root);
    expect(body.data.name).toBe("Work");
  });

  test.each<[string, Record<string, unknown>, string, string]>([
    ["no name", { name: " " }, "provider_field_empty", "name"],
    ["a long name", { name: "x".repeat(61) }, "provider_field_long", "name"],
    ["a line feed in the name", { name: "a\nb" }, "provider_field_invalid", "name"],
    ["one letter", { slug: "w" }, "provider_slug_invalid", "slug"],
    ["33 letters", { slug: "w".repeat(33) }, "provider_slug_invalid", "slug"],
    ["capitals", { slug: "Work" }, "provider_slug_invalid", "slug"],
    ["a path", { slug: "../x" }, "provider_slug_invalid", "slug"],
    ["a built-in id", { slug: "github" }, "provider_slug_taken", "slug"],
    ["a word of an address", { slug: "state" }, "provider_slug_taken", "slug"],
    [
      "an address that is none",
      { token_endpoint: "id.example" },
      "provider_address_invalid",
      "token_endpoint",
    ],
    [
      "a script",
      { authorization_endpoint: "javascript:alert(1)" },
      "provider_address_invalid",
      "authorization_endpoint",
    ],
    [
      "a password in it",
      { token_endpoint: "https://a:b@id.example/" },
      "provider_address_invalid",
      "token_endpoint",
    ],
    [
      "plain http abroad",
      { token_endpoint: "http://192.0.2.7/token" },
      "provider_address_insecure",
      "token_endpoint",
    ],
    ["no endpoint", { user_info_endpoint: "" }, "provider_field_empty", "user_info_endpoint"],
    ["no client", { client_id: "" }, "provider_field_empty", "client_id"],
    ["no secret", { client_secret: "" }, "provider_field_empty", "client_secret"],
    ["a foreign path", { user_id_field: "data[0].id" }, "provider_path_invalid", "user_id_field"],
    ["no path of the subject", { user_id_field: "" }, "provider_path_invalid", "user_id_field"],
    ["scopes with quotes", { scopes: 'a"b' }, "provider_field_invalid", "scopes"],
    ["an icon that runs", { icon: "javascript:x" }, "provider_field_invalid", "icon"],
    ["a policy of text", { access_policy: "level > 2" }, "provider_policy_invalid", "access_policy"],
    [
      "an unknown operator",
      { access_policy: { conditions: [{ field: "a", op: "like", value: "b" }] } },
      "provider_policy_invalid",
      "access_policy",
    ],
    [
      "ten thousand groups",
      { access_policy: { groups: Array.from({ length: 10_000 }, () => ({ groups: [] })) } },
      "provider_policy_invalid",
      "access_policy",
    ],
  ])("refuses %s", async (_, fields, code, field) => {
    const { body, text } = await add(fields);
    expect(body).toMatchObject({ success: false, code, field });
    expect(text).not.toContain(SECRET);
    expect((await app.call<{ data: unknown[] }>("GET", ROOT_PATH, undefined, root)).body.data).toEqual([]);
  });

  test("half a provider may be kept while it is off", async () => {
    const { body } = await app.call<Told>("POST", ROOT_PATH, { name: "Draft", slug: "draft" }, root);
    expect(body).toMatchObject({
      success: true,
      data: { enabled: false, kind: "oidc", scopes: "openid profile email" },
    });
    expect((await change({ enabled: true }, "draft")).body).toMatchObject({ code: "provider_field_empty" });
  });

  test("none is switched on before people can be sent back", async () => {
    await app.deps.options.set("ServerAddress", "");
    expect((await add()).body).toMatchObject({ code: "provider_needs_server_address", field: "enabled" });
    await app.deps.options.set("ServerAddress", "https://gate.example");
  });

  test("a short name is one provider's, and stays", async () => {
    const twice = await Promise.all([add(), add({ name: "Second" })]);
    expect(twice.map(({ body }) => body.success).toSorted()).toEqual([false, true]);
    expect(twice.find(({ body }) => !body.success)?.body).toMatchObject({
      code: "provider_slug_taken",
      field: "slug",
    });
    expect((await change({ slug: "other" })).body).toMatchObject({
      code: "provider_slug_fixed",
      field: "slug",
    });
    expect((await change({ slug: "work-sso", name: "Same" })).body.success).toBe(true);
  });

  describe("discovery", () => {
    const ask = (typed = issuer) => app.call<Told>("POST", `${ROOT_PATH}discovery`, { issuer: typed }, root);

    test("gives the addresses, for the issuer and for its document", async () => {
      for (const typed of [issuer, `${issuer}/`, `${issuer}/.well-known/openid-configuration`])
        expect((await ask(typed)).body).toMatchObject({
          success: true,
          data: {
            issuer,
            token_endpoint: `${issuer}/token`,
            user_info_endpoint: `${issuer}/userinfo`,
            has_pkce: true,
          },
        });
    });

    test("refuses whoever names another server, and what is no document", async () => {
      const fine = document as Record<string, unknown>;
      for (const wrong of [
        { ...fine, issuer: "https://accounts.example" },
        { ...fine, token_endpoint: 7 },
        [],
        new Response("<h1>hello</h1>"),
        new Response(`{"issuer":"${"x".repeat(300_000)}"}`),
        Response.redirect("https://elsewhere.example/"),
      ]) {
        document = wrong;
        const { body } = await ask();
        expect(body).toMatchObject({ success: false, code: "provider_discovery_failed", field: "issuer" });
      }
      document = fine;
      status = 500;
      expect((await ask()).body).toMatchObject({ code: "provider_discovery_failed" });
      expect((await ask("https://10.0.0.1")).body).toMatchObject({ code: "provider_discovery_failed" });
      expect((await ask("http://10.0.0.1")).body).toMatchObject({ code: "provider_address_insecure" });
    });

    test("is asked when an issuer is saved, which is kept as the server writes it", async () => {
      const oidc = { kind: "oidc", issuer: `${issuer}/.well-known/openid-configuration` };
      const made = await add(oidc);
      expect(made.body).toMatchObject({ success: true, data: { issuer } });
      status = 404;
      expect((await change({ name: "Renamed" })).body.success).toBe(true);
      expect((await change({ issuer: `${issuer}/two` })).body).toMatchObject({
        code: "provider_discovery_failed",
      });
      expect((await change({ issuer: "" })).body).toMatchObject({
        code: "provider_field_empty",
        field: "issuer",
      });
    });
  });
});
