// Bodies of console calls: who may send one, how large it may be, and in which form.
// Refuses nothing itself; everything goes over the wire.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { sha256Hex } from "../../src/core/kit/seal.ts";
import { startTestApp } from "../support/app.ts";
import { connectRaw } from "../support/raw-client.ts";
import type { TestApp, TestUser } from "../support/app.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

let app: TestApp;
let user: TestUser;
beforeAll(async () => {
  app = await startTestApp();
  user = await app.createUser();
});
afterAll(() => app.close());

async function post(
  path: string,
  body: BodyInit | null,
  headers: Record<string, string>,
  method = "POST",
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(app.url + path, { method, headers, body });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** A body whose length nobody knows beforehand. */
function endless(bytes: number): ReadableStream<Uint8Array> {
  let left = bytes;
  return new ReadableStream({
    pull(controller) {
      if (left <= 0) return controller.close();
      left -= 64 * 1024;
      controller.enqueue(new Uint8Array(64 * 1024).fill(0x20));
    },
  });
}

const JSON_TYPE = { "content-type": "application/json" };

test("a length that lies does not open the cap", async () => {
  const connection = await connectRaw(app.url, "127.0.0.31");
  const head = `POST /api/user/login HTTP/1.1\r\nhost: ${new URL(app.url).host}\r\ncontent-type: application/json\r\n`;
  connection.write(`${head}transfer-encoding: chunked\r\n\r\n`);
  const part = `8000\r\n${"x".repeat(0x8000)}\r\n`;
  for (let sent = 0; sent < 3; sent++) connection.write(part);
  // The answer does not wait for an end that never comes.
  expect(await connection.status()).toBe(413);
  connection.destroy();
});

test("what a console call packs is not unpacked", async () => {
  const packed = Bun.gzipSync(new TextEncoder().encode('{"name":"packed"}'));
  const answer = await post("/api/token/", new Blob([packed]), {
    ...user.headers,
    ...JSON_TYPE,
    "content-encoding": "gzip",
  });
  expect(answer.body["success"]).toBe(false);
});

test("a stranger's large body is answered with 401 and not read", async () => {
  const answer = await post("/api/token/", endless(33 * MIB), JSON_TYPE);
  expect([answer.status, answer.body["code"]]).toEqual([401, "auth_not_signed_in"]);
});

test.each(['"text"', "7", "true", '[{"name":"k"}]'])("%s is no body of a call", async (text) => {
  const answer = await post("/api/token/", text, { ...user.headers, ...JSON_TYPE });
  expect([answer.body["success"], answer.body["code"]]).toEqual([false, "invalid_params"]);
});

test.each([
  "application/json",
  "application/json; charset=utf-8",
  "Application/JSON",
  "application/vnd.api+json",
])("JSON as %s is read", async (type) => {
  const answer = await post("/api/token/", '{"name":"k"}', { ...user.headers, "content-type": type });
  expect(answer.body).toMatchObject({ success: true, data: { name: "k" } });
});

test.each([
  "",
  "text/plain",
  "text/plain;charset=UTF-8",
  "application/x-www-form-urlencoded",
  "application/octet-stream",
  "nonsense",
])("JSON as %j is read from whoever shows New-Api-User or an access token, as scripts do", async (type) => {
  const { orm, t } = app.deps.db;
  const accessToken = `script-${crypto.randomUUID()}`;
  await orm
    .update(t.users)
    .set({ accessTokenHash: sha256Hex(accessToken) })
    .where(eq(t.users.id, user.id));
  await app.deps.accounts.userChanged(user.id);
  const id = { "new-api-user": String(user.id) };
  for (const headers of [
    user.headers,
    { ...id, authorization: accessToken },
    { ...id, authorization: `Bearer ${accessToken}` },
  ]) {
    const body = new Blob(['{"name":"k"}']);
    const answer = await post("/api/token/", body, {
      ...headers,
      ...(type === "" ? {} : { "content-type": type }),
    });
    expect([answer.status, answer.body]).toMatchObject([200, { success: true, data: { name: "k" } }]);
  }
});

test("what is no JSON stays refused under any type, whoever sends it", async () => {
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
    const answer = await post("/api/token/", "name=k", { ...user.headers, "content-type": type });
    expect([type, answer.body["success"], answer.body["code"]]).toEqual([type, false, "invalid_params"]);
  }
});

test.each(["", "Basic cm9vdDpwdw==", "basic x", "Negotiate x", "Digest username=x"])(
  "a session's cookie without New-Api-User changes nothing, with what a browser attaches (%j) neither",
  async (authorization) => {
    const { cookie = "" } = user.headers;
    const attached = {
      cookie,
      "content-type": "text/plain",
      ...(authorization === "" ? {} : { authorization }),
    };
    const answer = await post("/api/token/", '{"name":"forged"}', attached);
    expect([answer.status, answer.body["code"]]).toEqual([401, "auth_user_header_missing"]);
    const form = '{"username":"root","password":"longenough","confirmPassword":"longenough"}';
    expect((await post("/api/setup", form, attached)).status).toBe(400);
    const tokens = await app.deps.db.orm.select().from(app.deps.db.t.tokens);
    expect(tokens.map(({ name }) => name)).not.toContain("forged");
  },
);

test.each([
  ["text/plain", '{"username":"root","password":"longenough","confirmPassword":"longenough"}'],
  ["application/x-www-form-urlencoded", "username=root&password=longenough&confirmPassword=longenough"],
  ["application/octet-stream", "{}"],
  ["", '{"username":"root"}'],
])("a body as %j, which a foreign page could send unasked, sets nothing up", async (type, body) => {
  const answer = await post("/api/setup", new Blob([body]), type === "" ? {} : { "content-type": type });
  expect([answer.status, answer.body["success"]]).toEqual([400, false]);
  const state = await app.call<{ data: object }>("GET", "/api/setup");
  expect(state.body.data).toMatchObject({ status: false, root_init: false });
});

describe("caps", () => {
  /** By what they may do. */
  const people = new Map<string, TestUser>();
  beforeAll(async () => {
    people.set("user", user);
    people.set("admin", await app.createUser({ role: 10 }));
    people.set("root", await app.createUser({ role: 100 }));
  });

  test.each<[string, string, string, number]>([
    ["a sign-in", "/api/user/login", "nobody", 64 * KIB],
    ["the setup", "/api/setup", "nobody", 64 * KIB],
    ["a call of the signed in", "/api/token/", "user", MIB],
    ["an administrator's call", "/api/channel/", "admin", 8 * MIB],
    ["an option", "/api/option/", "root", 32 * MIB],
  ])("%s has its own cap: above it 413, announced or not", async (_, path, who, cap) => {
    const headers = { ...JSON_TYPE, ...(who === "nobody" ? {} : (people.get(who)?.headers ?? {})) };
    const method = path === "/api/option/" ? "PUT" : "POST";
    const limit = cap < MIB ? `${cap / KIB} KiB` : `${cap / MIB} MiB`;
    for (const body of ["x".repeat(cap + 1), endless(cap + 64 * KIB)]) {
      const answer = await post(path, body, headers, method);
      expect([path, answer.status, answer.body]).toMatchObject([
        path,
        413,
        { success: false, code: "body_too_large" },
      ]);
      expect(String(answer.body["message"])).toContain(limit);
    }
    const below = await post(path, "x".repeat(cap), headers, method);
    expect([path, below.status === 413, below.body["success"]]).toEqual([path, false, false]);
  });
});
