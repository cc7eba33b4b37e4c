// C1 and C3 from outside: whose address counts, and what connections without a key may hold open.
// Refuses a single address: strangers and visitors come from different ones of loopback, as on a real network.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { askFrom, connectFrom } from "../support/outsider.ts";
import type { RawConnection } from "../support/outsider.ts";
import { callPlan, PASSWORD, startSite } from "./site.ts";
import type { Site } from "./site.ts";

const login = (password: string, username = "root") => ({
  method: "POST",
  path: "/api/user/login",
  body: JSON.stringify({ username, password }),
});
/** Silent and dripping connections are closed within this. */
const CLOSE_LIMIT_MS = 75_000;
const MAX_OPEN = 64;

const unfinished = (host: string, path: string, extra = "") =>
  `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\n${extra}content-length: 1000\r\n\r\n{"username":"`;

describe("the address of a caller", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
  });
  afterAll(() => site.remove());

  test("C1: one visitor's wrong sign-ins lock nobody else out, and a forwarded address of his own making helps him nothing", async () => {
    const statuses: number[] = [];
    for (let round = 0; round < 5; round++) {
      const batch = Array.from({ length: 8 }, (_, index) => {
        const number = round * 8 + index;
        const forged = { "x-forwarded-for": `203.0.113.${number}`, "x-real-ip": `203.0.113.${number}` };
        return askFrom("127.0.0.2", site.server.url, {
          ...login("wrong", `nobody${number}`),
          headers: forged,
        });
      });
      statuses.push(...(await Promise.all(batch)).map(({ status }) => status));
    }
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(10);
    const other = await askFrom("127.0.0.3", site.server.url, login(PASSWORD));
    expect([other.status, other.text.includes('"success":true')]).toEqual([200, true]);
  }, 60_000);

  test("C1: a key that is bound to an address works from there alone, whatever a header says", async () => {
    const person = await site.person(1_000_000);
    const token = (await person.send("POST", "/api/token/", {
      name: "bound",
      unlimited_quota: true,
      allow_ips: "127.0.0.9",
    })) as { key: string };
    const body = { model: "mock-chat", messages: [{ role: "user", content: "hi" }] };
    const chat = (address: string, forwarded?: string) =>
      askFrom(address, site.server.url, {
        method: "POST",
        path: "/v1/chat/completions",
        headers: {
          authorization: `Bearer sk-${token.key}`,
          ...(forwarded ? { "x-forwarded-for": forwarded, "x-real-ip": forwarded } : {}),
        },
        body: JSON.stringify(body),
      });
    expect((await chat("127.0.0.9")).status).toBe(200);
    expect((await chat("127.0.0.8")).status).toBe(403);
    expect((await chat("127.0.0.8", "127.0.0.9")).status).toBe(403);
  });

  test("C1: behind a trusted proxy the visitor's address counts", async () => {
    const behind = await startSite({ env: { TRUSTED_PROXIES: "127.0.0.10/32" } });
    const through = (visitor: string, password: string, username?: string) =>
      askFrom("127.0.0.10", behind.server.url, {
        ...login(password, username),
        headers: { "x-forwarded-for": visitor },
      });
    const wrong: number[] = [];
    for (let round = 0; round < 5; round++) {
      const batch = Array.from({ length: 8 }, (_, index) =>
        through("203.0.113.1", "wrong", `nobody${round * 8 + index}`),
      );
      wrong.push(...(await Promise.all(batch)).map(({ status }) => status));
    }
    expect(wrong.filter((status) => status === 429).length).toBeGreaterThanOrEqual(10);
    expect((await through("203.0.113.2", PASSWORD)).status).toBe(200);
    await behind.remove();
  }, 60_000);
});

describe("connections without a key", () => {
  let site: Site;
  let host = "";
  beforeAll(async () => {
    site = await startSite();
    host = new URL(site.server.url).host;
  });
  afterAll(() => site.remove());

  test("C3: 64 open requests of one address are the most before a key or session, others are served", async () => {
    const open: RawConnection[] = [];
    for (let number = 0; number < MAX_OPEN + 26; number++) {
      const connection = await connectFrom("127.0.0.4", site.server.url);
      connection.send(unfinished(host, "/api/user/login"));
      open.push(connection);
    }
    await site.until(
      () => open.filter((each) => each.received().includes("too_many_open")).length >= 20,
      5000,
    );
    expect(open.filter((each) => each.received().includes(" 429 ")).length).toBeLessThanOrEqual(26);
    expect((await askFrom("127.0.0.5", site.server.url, login(PASSWORD))).status).toBe(200);
    for (const each of open) each.end();
    await site.until(
      async () => (await askFrom("127.0.0.4", site.server.url, { path: "/api/status" })).status === 200,
    );
  }, 30_000);

  test("C3: with a key there is no such limit", async () => {
    const person = await site.person(1_000_000_000);
    const key = await person.key();
    const streams = Array.from({ length: MAX_OPEN + 40 }, (_, number) =>
      callPlan(
        site.server.url,
        key,
        { id: `many-${number}`, words: 20, per: 2, paceMs: 100 },
        { stream: true },
      ),
    );
    expect(
      (await Promise.all(streams)).filter(({ status, words }) => status === 200 && words === 20).length,
    ).toBe(MAX_OPEN + 40);
  }, 30_000);

  const kinds: readonly (readonly [string, (connection: RawConnection) => () => void])[] = [
    ["a silent connection", () => () => {}],
    [
      "headers that drip",
      (connection) => {
        connection.send(`GET /api/status HTTP/1.1\r\nhost: ${host}\r\n`);
        return () => connection.send("x-drip: 1\r\n");
      },
    ],
    [
      "a body that stops",
      (connection) => {
        connection.send(unfinished(host, "/api/user/login"));
        return () => {};
      },
    ],
    [
      "a body that drips",
      (connection) => {
        connection.send(unfinished(host, "/api/user/login"));
        return () => connection.send("x");
      },
    ],
    [
      "a connection that had been served",
      (connection) => {
        connection.send(`GET /api/status HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
        return () => {};
      },
    ],
  ];
  for (const [name, begin] of kinds) {
    test.concurrent(
      `C3: ${name} is closed`,
      async () => {
        const connection = await connectFrom("127.0.0.11", site.server.url);
        const drip = begin(connection);
        const timer = setInterval(drip, 1000);
        const outcome = await Promise.race([
          connection.closed,
          Bun.sleep(CLOSE_LIMIT_MS).then(() => "still open"),
        ]);
        clearInterval(timer);
        connection.end();
        expect(typeof outcome).toBe("number");
      },
      CLOSE_LIMIT_MS + 10_000,
    );
  }

  test.concurrent(
    "C3: a quiet stream that is fed now and then stays open",
    async () => {
      const person = await site.person(1_000_000_000);
      const outcome = await callPlan(
        site.server.url,
        await person.key(),
        { id: "quiet", words: 2, per: 1, paceMs: 13_000 },
        { stream: true },
      );
      expect([outcome.status, outcome.words, outcome.isWhole]).toEqual([200, 2, true]);
    },
    60_000,
  );
});
