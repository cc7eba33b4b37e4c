// Bodies of console calls: who may send one, how large it may be, and in which form.
// Refuses nothing itself; everything goes over the wire.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";

const MIB = 1024 * 1024;

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
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(app.url + path, { method: "POST", headers, body });
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

test("a body above 32 MiB is refused with 413 in the envelope, announced or not, signed in or at the door", async () => {
  for (const [path, headers] of [
    ["/api/token/", { ...JSON_TYPE, ...user.headers }],
    ["/api/user/login", JSON_TYPE],
    ["/api/setup", JSON_TYPE],
  ] as const) {
    for (const body of ["x".repeat(33 * MIB), endless(33 * MIB)]) {
      const answer = await post(path, body, headers);
      expect([path, answer.status, answer.body]).toMatchObject([
        path,
        413,
        { success: false, code: "body_too_large" },
      ]);
    }
  }
});

test("a stranger's large body is answered with 401 and not read", async () => {
  const answer = await post("/api/token/", endless(33 * MIB), JSON_TYPE);
  expect([answer.status, answer.body["code"]]).toEqual([401, "auth_not_signed_in"]);
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
