// How many requests of strangers one address may have open, and who is no stranger.
// Refuses stand-ins for sockets: every request here has come over one.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createVisitors, MAX_OPEN_REQUESTS } from "../../src/http/visitors.ts";
import type { Visitors } from "../../src/http/visitors.ts";
import { parseRanges } from "../../src/http/address.ts";
import { Failure } from "../../src/shared/failures.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { callFrom, connectRaw } from "../support/raw-client.ts";
import type { RawConnection } from "../support/raw-client.ts";

const PROXY = "127.0.0.9";
let app: TestApp;
let user: TestUser;
let key = "";
beforeAll(async () => {
  app = await startTestApp({ env: { TRUSTED_PROXIES: PROXY } });
  user = await app.createUser();
  ({ key } = await app.createToken(user.id));
});
afterAll(() => app.close());

const LOGIN = {
  method: "POST",
  path: "/api/user/login",
  body: '{"username":"nobody","password":"not the password"}',
};

/** Requests whose body does not come; ready when each has been taken in. */
async function unfinished(from: string, count: number, headers = ""): Promise<RawConnection[]> {
  const host = new URL(app.url).host;
  const open = await Promise.all(Array.from({ length: count }, () => connectRaw(app.url, from)));
  for (const each of open)
    each.write(
      `POST /api/user/login HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n${headers}content-length: 100\r\n\r\n{`,
    );
  return open;
}

async function crowded(from: string, headers: Record<string, string> = {}): Promise<RawConnection[]> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const open = await unfinished(from, MAX_OPEN_REQUESTS, lines.join(""));
  // Until all of them have been seen, one more is served.
  for (let i = 0; i < 1000; i++)
    if ((await callFrom(app.url, from, { path: "/api/status", headers })).status === 429) return open;
  throw new Error("strangers are not counted");
}

describe("an address with as many open requests as strangers may have", () => {
  let open: RawConnection[];
  beforeAll(async () => {
    open = await crowded("127.0.0.2");
  });
  afterAll(() => {
    for (const each of open) each.destroy();
  });

  test.each([
    ["en", "Too many requests from your address are open at once; try again in a moment"],
    ["zh", "来自您所在地址的未完成请求过多，请稍后再试"],
  ])("is refused one more, in %s", async (language, message) => {
    const { status, headers, text } = await callFrom(app.url, "127.0.0.2", {
      ...LOGIN,
      headers: { "accept-language": language },
    });
    expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
    expect(JSON.parse(text)).toMatchObject({ success: false, code: "too_many_open", message });
  });

  test("is refused nothing as soon as a session or a key is shown", async () => {
    const self = await callFrom(app.url, "127.0.0.2", { path: "/api/user/self", headers: user.headers });
    expect([self.status, self.text.includes('"success":true')]).toEqual([200, true]);
    const notice = await callFrom(app.url, "127.0.0.2", { path: "/api/notice", headers: user.headers });
    expect(notice.status).toBe(200);
    const headers = { authorization: `Bearer ${key}` };
    expect((await callFrom(app.url, "127.0.0.2", { path: "/v1/models", headers })).status).toBe(200);
  });

  test("takes no place of another address", async () => {
    expect((await callFrom(app.url, "127.0.0.3", LOGIN)).status).toBe(200);
  });

  test("may ask again when they have gone", async () => {
    const others = await crowded("127.0.0.4");
    for (const each of others) each.destroy();
    await Promise.all(others.map(({ closed }) => closed));
    const asked = async () => (await callFrom(app.url, "127.0.0.4", LOGIN)).status;
    let status = await asked();
    for (let i = 0; i < 100 && status === 429; i++) status = await asked();
    expect(status).toBe(200);
  });
});

test("what was answered is open no longer, however many follow each other", async () => {
  const statuses = new Set<number>();
  for (let i = 0; i < 3 * MAX_OPEN_REQUESTS; i++)
    statuses.add((await callFrom(app.url, "127.0.0.5", { path: "/api/status" })).status);
  expect([...statuses]).toEqual([200]);
});

test("behind a trusted proxy each visitor counts by the own address, and the proxy itself not at all", async () => {
  const visitor = { "x-forwarded-for": "198.51.100.7" };
  const open = await crowded(PROXY, visitor);
  const other = { "x-forwarded-for": "198.51.100.8" };
  expect((await callFrom(app.url, PROXY, { ...LOGIN, headers: other })).status).toBe(200);
  const own = await unfinished(PROXY, MAX_OPEN_REQUESTS + 10);
  expect((await callFrom(app.url, PROXY, LOGIN)).status).toBe(200);
  for (const each of [...open, ...own]) each.destroy();
});

describe("look-ups", () => {
  let visitors: Visitors;
  const taken = new Map<string, (request: Request) => void>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const end = Promise.withResolvers<Response>();
      taken.get(new URL(request.url).pathname)?.(request);
      return end.promise;
    },
  });
  beforeAll(() => {
    visitors = createVisitors(parseRanges([]));
    visitors.attach(server);
  });
  afterAll(async () => {
    visitors.close();
    await server.stop(true);
  });

  test("of as many keys wait at a time; a crowd with one key is one, and a key more is refused", async () => {
    const arrived = Promise.withResolvers<Request>();
    taken.set("/one", arrived.resolve);
    const connection = await connectRaw(server.url.href, "127.0.0.6");
    connection.write(`GET /one HTTP/1.1\r\nhost: ${server.url.host}\r\n\r\n`);
    const request = await arrived.promise;
    const answered = Promise.withResolvers<number>();
    const look = (shown: string) => visitors.lookUp(request, shown, () => answered.promise);
    const crowd = Array.from({ length: 300 }, () => look("one key"));
    const others = Array.from({ length: MAX_OPEN_REQUESTS - 1 }, (_, i) => look(`key ${i}`));
    const refused = await look("one more").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Failure);
    expect(refused).toMatchObject({ code: "too_many_open", retryAfterSeconds: 1 });
    crowd.push(look("one key"));
    answered.resolve(1);
    expect((await Promise.all([...crowd, ...others])).length).toBe(300 + MAX_OPEN_REQUESTS);
    expect(await look("one more")).toBe(1);
    connection.destroy();
  });
});
