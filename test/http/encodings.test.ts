// Console answers in the encoding that a client takes: the same answer in fewer bytes, with its status, cookies and headers.
// Refuses to compress small answers, answers of the relay, secrets, and what another site's page asked for.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gunzipSync } from "node:zlib";
import { Elysia } from "elysia";
import { createApp } from "../../src/app.ts";
import { bestEncoding, compressed, SMALL_BYTES, varyByEncoding } from "../../src/http/encodings.ts";
import { listen } from "../../src/http/listen.ts";
import { policy } from "../../src/http/session.ts";
import { HI, MODEL, startGateway } from "../relay/support.ts";
import type { Gateway } from "../relay/support.ts";
import type { TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const OFFERED = ["zstd", "gzip"] as const;

interface Raw {
  status: number;
  headers: Headers;
  /** As they came over the wire. */
  bytes: Uint8Array;
  /** Unpacked by what the answer says of itself. */
  text: string;
}

function unpacked(bytes: Uint8Array, encoding: string | null): Uint8Array {
  if (bytes.length === 0) return bytes;
  if (encoding === "gzip") return gunzipSync(bytes);
  if (encoding === "zstd") return Bun.zstdDecompressSync(bytes);
  return bytes;
}

async function ask(
  url: string,
  { encoding, as, ...init }: RequestInit & { encoding?: string; as?: TestUser } = {},
): Promise<Raw> {
  const headers = new Headers(as?.headers);
  new Headers(init.headers).forEach((value, name) => headers.set(name, value));
  // Without one the client would name its own.
  headers.set("accept-encoding", encoding ?? "identity");
  const answer = await fetch(url, { ...init, headers, decompress: false });
  const bytes = await answer.bytes();
  const text = new TextDecoder().decode(unpacked(bytes, answer.headers.get("content-encoding")));
  return { status: answer.status, headers: answer.headers, bytes, text };
}

describe("a long list", () => {
  const data = Array.from({ length: 12_001 }, (_, id) => ({ id, name: `"行" ${id}`, none: undefined }));
  const value = { success: true, message: 'a "quoted" text', nothing: undefined, data, after: null };
  const answerTo = (encoding: string) =>
    compressed({
      request: new Request("http://weir.test/api/data/", { headers: { "accept-encoding": encoding } }),
      value,
      headers: {},
      isForeign: false,
    });

  test.each(["identity", "gzip", "zstd"])("is the text of JSON.stringify, as %s", async (encoding) => {
    const answer = await answerTo(encoding);
    const bytes = (await answer?.bytes()) ?? new Uint8Array();
    const found = new TextDecoder().decode(unpacked(bytes, answer?.headers.get("content-encoding") ?? null));
    expect(found === JSON.stringify(value)).toBe(true);
    expect(answer?.headers.get("content-type")).toBe("application/json;charset=utf-8");
  });

  test("is written in several turns, in which others are served", async () => {
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns++;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await answerTo("identity");
    isDone = true;
    expect(turns).toBeGreaterThanOrEqual(3);
  });
});

describe("what a client takes", () => {
  test.each<[string | null, (typeof OFFERED)[number] | undefined]>([
    ["gzip, deflate, br, zstd", "zstd"],
    ["gzip", "gzip"],
    ["x-gzip", "gzip"],
    ["GZIP", "gzip"],
    ["zstd;q=0.1, gzip", "gzip"],
    ["zstd;q=0, gzip;q=0.001", "gzip"],
    ["zstd; q=0 , gzip ; q=0.5", "gzip"],
    ["*", "zstd"],
    ["*;q=0.5, zstd;q=0", "gzip"],
    ["gzip;q=0.5, identity;q=0.4", "gzip"],
    ["gzip;q=0.5, identity", undefined],
    ["gzip;q=0", undefined],
    ["gzip;q=0.0, *;q=0", undefined],
    ["gzip;q=nonsense", undefined],
    ["identity", undefined],
    ["br, deflate", undefined],
    ["gzipped", undefined],
    ["", undefined],
    [null, undefined],
  ])("%p: %p", (header, encoding) => {
    expect(bestEncoding(header, OFFERED)).toBe(encoding);
  });

  test("Vary names it once, beside whatever stood there", () => {
    expect(varyByEncoding(undefined)).toBe("Accept-Encoding");
    expect(varyByEncoding("Cookie")).toBe("Cookie, Accept-Encoding");
    expect(varyByEncoding("accept-encoding")).toBe("accept-encoding");
    expect(varyByEncoding("*")).toBe("*");
  });
});

test.each(OFFERED)(
  "%s of a huge answer is made beside the event loop, which goes on meanwhile",
  async (encoding) => {
    const request = new Request("http://localhost/api/log/", { headers: { "accept-encoding": encoding } });
    const value = { rows: "0123456789".repeat(1_000_000) };
    let isDone = false;
    const made = compressed({ request, value, headers: {}, isForeign: false }).finally(() => (isDone = true));
    // What is made on the event loop itself is there within its turn; what another thread makes comes with a later one.
    for (let step = 0; step < 1000; step++) await Promise.resolve();
    expect(isDone).toBe(false);
    const answer = (await made) as Response;
    expect(unpacked(await answer.bytes(), encoding).length).toBe(JSON.stringify(value).length);
  },
);

describe("the framework around it", () => {
  test("status, several cookies and headers of a large answer stay as the route set them", async () => {
    const g = await startGateway();
    const rows = Array.from({ length: 500 }, (_, id) => ({ id, name: `row ${id}`, gone: undefined }));
    const app = new Elysia().use(policy(g.app.services.session)).post(
      "/api/large",
      ({ set }) => {
        set.status = 201;
        set.headers["set-cookie"] = ["one=1; HttpOnly", "two=2; Secure"];
        set.headers["vary"] = "Cookie";
        set.headers["x-more"] = "kept";
        return { success: true, data: rows };
      },
      { open: "public" },
    );
    listen(app, g.app.services.session.visitors, { port: 0, hostname: "127.0.0.1" });
    const url = `http://127.0.0.1:${app.server?.port}/api/large`;
    const plain = await ask(url, { method: "POST" });
    for (const encoding of OFFERED) {
      const answer = await ask(url, { method: "POST", encoding });
      expect(answer.headers.get("content-encoding")).toBe(encoding);
      expect(answer.headers.get("content-length")).toBe(String(answer.bytes.length));
      expect(answer.text).toBe(plain.text);
      expect(answer.bytes.length).toBeLessThan(plain.bytes.length / 4);
      for (const { status, headers } of [plain, answer]) {
        expect(status).toBe(201);
        expect(headers.getSetCookie()).toEqual(["one=1; HttpOnly", "two=2; Secure"]);
        expect(headers.get("x-more")).toBe("kept");
        expect(headers.get("vary")).toBe("Cookie, Accept-Encoding");
        expect(headers.get("cache-control")).toBe("no-store");
        expect(headers.get("content-type")?.replace(" ", "").toLowerCase()).toBe(
          "application/json;charset=utf-8",
        );
      }
    }
    await app.server?.stop(true);
    await g.close();
  });
});

describe.each(DATABASE_KINDS)("over the wire on %s", (database) => {
  let g: Gateway;
  let admin: TestUser;
  let root: TestUser;
  const models = Array.from({ length: 400 }, (_, number) => `model-${number}`).join();
  beforeAll(async () => {
    g = await startGateway({ database });
    admin = await g.app.createUser({ role: 10 });
    root = await g.app.createUser({ role: 100 });
    for (let number = 0; number < 20; number++)
      await g.app.createChannel({ name: `channel ${number}`, models, key: `sk-upstream-${number}` });
  });
  afterAll(() => g.close());

  const LIST = "/api/channel/?p=0&page_size=100";

  test("a list is the same, in a fraction of the bytes, and says what it depends on", async () => {
    const plain = await ask(g.app.url + LIST, { as: admin });
    expect(plain.headers.get("content-encoding")).toBe(null);
    expect(plain.headers.get("vary")).toBe("Accept-Encoding");
    expect((JSON.parse(plain.text) as { data: unknown[] }).data).toHaveLength(21);
    for (const encoding of ["gzip, deflate, br, zstd", "gzip", "br;q=1, gzip;q=0.2"]) {
      const answer = await ask(g.app.url + LIST, { as: admin, encoding });
      expect(answer.headers.get("content-encoding")).toBe(encoding.includes("zstd") ? "zstd" : "gzip");
      expect(answer.headers.get("vary")).toBe("Accept-Encoding");
      expect(answer.text).toBe(plain.text);
      expect(answer.bytes.length).toBeLessThan(plain.bytes.length / 10);
    }
  });

  test("whoever takes none gets it plain", async () => {
    for (const encoding of ["identity", "gzip;q=0", "deflate", "gzip;q=0.5, identity;q=1"]) {
      const answer = await ask(g.app.url + LIST, { as: admin, encoding });
      expect(answer.headers.get("content-encoding")).toBe(null);
      expect(answer.bytes.length).toBeGreaterThan(20_000);
    }
  });

  test("small answers and refusals are sent as they are, with their status", async () => {
    const cases: [string, number, TestUser | undefined][] = [
      ["/api/user/aff", 200, g.user],
      ["/api/channel/987654", 200, admin],
      [`/api/channel/test/1?model=${"m".repeat(300)}`, 200, admin],
      [LIST, 401, undefined],
      [LIST, 403, g.user],
      ["/api/nothing-like-this", 404, admin],
    ];
    for (const [path, status, as] of cases) {
      const answer = await ask(g.app.url + path, { encoding: "gzip, zstd", ...(as ? { as } : {}) });
      expect([path, answer.status, answer.headers.get("content-encoding")]).toEqual([path, status, null]);
      expect(typeof JSON.parse(answer.text)).toBe("object");
    }
  });

  test("a sign-in keeps its cookie, which opens the next, compressed answer", async () => {
    await g.setOption("QuotaForNewUser", "0");
    const body = { username: "signer", password: "long enough 1", display_name: "x" };
    expect((await g.app.call("POST", "/api/user/", body, root)).body["success"]).toBe(true);
    const signed = await ask(`${g.app.url}/api/user/login`, {
      method: "POST",
      encoding: "gzip, zstd",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: body.username, password: body.password }),
    });
    const { data } = JSON.parse(signed.text) as { data: { id: number } };
    const [cookie = ""] = signed.headers.getSetCookie();
    expect(signed.status).toBe(200);
    expect(cookie).toStartWith("session=");
    const own = await ask(`${g.app.url}/api/user/self`, {
      encoding: "gzip, zstd",
      headers: { cookie: cookie.split(";")[0] ?? "", "new-api-user": String(data.id) },
    });
    expect((JSON.parse(own.text) as { data: { username: string } }).data.username).toBe("signer");
  });

  test("HEAD tells what GET would send, without a body", async () => {
    for (const encoding of ["gzip", "identity"]) {
      const get = await ask(g.app.url + LIST, { as: admin, encoding });
      const head = await ask(g.app.url + LIST, { method: "HEAD", as: admin, encoding });
      expect([head.status, head.bytes.length]).toEqual([200, 0]);
      for (const name of ["content-encoding", "content-length", "content-type", "vary"])
        expect([name, head.headers.get(name)]).toEqual([name, get.headers.get(name)]);
      expect(head.headers.get("content-length")).toBe(String(get.bytes.length));
    }
  });

  test("what another site's page asks for is not compressed: its length would tell", async () => {
    for (const site of ["cross-site", "same-site"]) {
      const answer = await ask(g.app.url + LIST, {
        as: admin,
        encoding: "gzip, zstd",
        headers: { "sec-fetch-site": site },
      });
      expect(answer.headers.get("content-encoding")).toBe(null);
      const page = await ask(`${g.app.url}/channel?keyword=guess`, {
        as: admin,
        encoding: "gzip, zstd",
        headers: { "sec-fetch-site": site },
      });
      expect([page.status, page.headers.get("content-encoding")]).toEqual([200, null]);
    }
    const own = await ask(`${g.app.url}/channel?keyword=guess`, {
      as: admin,
      encoding: "gzip, zstd",
      headers: { "sec-fetch-site": "same-origin" },
    });
    expect(own.headers.get("content-encoding")).toBe("zstd");
  });

  test("no compressed answer carries a key, a code or a token", async () => {
    const secrets = Array.from({ length: 20 }, (_, number) => `sk-upstream-${number}`);
    for (let number = 0; number < 30; number++)
      secrets.push((await g.app.createToken(root.id, { name: `key ${number}` })).key.replace("sk-", ""));
    const made = await g.app.call<{ data: string[] }>(
      "POST",
      "/api/redemption/",
      { name: "code", quota: 500_000, count: 50 },
      root,
    );
    secrets.push(...made.body.data);
    const setting = {
      notify_type: "webhook",
      webhook_url: "https://example.com/hook",
      webhook_secret: "the secret of the webhook",
    };
    await g.app.call("PUT", "/api/user/setting", setting, root);
    secrets.push(setting.webhook_secret);
    for (const [key, value] of [
      ["SMTPToken", "the password of the mail"],
      ["WorkerValidKey", "the key of the worker"],
    ] as const) {
      await g.setOption(key, value);
      secrets.push(value);
    }
    const routes = (await createApp(g.app.services)).routes.filter(
      ({ method, path }) =>
        method === "GET" && path.startsWith("/api/") && !/\/(logout|test|update_)/.test(path),
    );
    const large = new Set<string>();
    let compressedAnswers = 0;
    for (const { path } of routes) {
      const address = path.replace(":id", "1");
      for (const query of ["", "?page_size=100&size=100&p=0"]) {
        const answer = await ask(g.app.url + address + query, { as: root, encoding: "gzip, zstd" });
        const found = secrets.filter((secret) => answer.text.includes(secret));
        const isPacked = answer.headers.get("content-encoding") !== null;
        if (isPacked) compressedAnswers++;
        if (found.length > 0 && answer.text.length >= SMALL_BYTES) large.add(path);
        expect([path, isPacked && found.length > 0]).toEqual([path, false]);
      }
    }
    // The lists that do carry some were long enough to be compressed.
    expect([...large].sort()).toContainValues(["/api/redemption/", "/api/token/"]);
    expect(compressedAnswers).toBeGreaterThan(5);
  });

  test("answers of the relay go out as ever: models, full answers, streams", async () => {
    const headers = { authorization: `Bearer ${g.key}`, "content-type": "application/json" };
    const list = await ask(`${g.app.url}/v1/models`, { encoding: "gzip, zstd", headers });
    expect(list.bytes.length).toBeGreaterThan(10_000);
    expect(list.headers.get("content-encoding")).toBe(null);
    for (const stream of [false, true]) {
      const answer = await ask(`${g.app.url}/v1/chat/completions`, {
        method: "POST",
        encoding: "gzip, zstd",
        headers,
        body: JSON.stringify({ model: MODEL, messages: HI, stream }),
      });
      expect([answer.status, answer.headers.get("content-encoding")]).toEqual([200, null]);
      expect(answer.text).toContain(stream ? "data: [DONE]" : '"choices"');
    }
  });
});
