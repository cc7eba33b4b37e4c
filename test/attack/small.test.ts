// C7 and C8 from outside: secrets at rest, headers, odd upstreams, second processes, and what a channel's edit must not wake.
// Refuses to look into the product: the database is read as a thief of a backup would.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { promptOf } from "../support/mock-upstream.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { askFrom } from "../support/outsider.ts";
import { startServerProcess } from "../support/server.ts";
import { callPlan, MODELS, startSite } from "./site.ts";
import type { Site } from "./site.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe("C7", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
  });
  afterAll(() => site.remove());

  test("a webhook's secret is not in the database in clear", async () => {
    const person = await site.person(1000);
    const secret = "a-webhook-secret-of-mine";
    await person.send("PUT", "/api/user/setting", {
      notify_type: "webhook",
      webhook_url: "https://example.org/hook",
      webhook_secret: secret,
      quota_warning_threshold: 1000,
    });
    const [row] = await site.books.ask(`select setting from users where id = ${person.id}`);
    expect(String(row?.["setting"])).toContain("example.org");
    expect(String(row?.["setting"])).not.toContain(secret);
  });

  test("the site's own address does not follow a Host header", async () => {
    const forged: Record<string, string>[] = [
      { host: "evil.example" },
      { "x-forwarded-host": "evil.example" },
    ];
    for (const headers of forged) {
      const { text } = await askFrom("127.0.0.3", site.server.url, { path: "/api/status", headers });
      const told = (JSON.parse(text) as { data: { server_address: string } }).data.server_address;
      expect(told).not.toContain("evil.example");
    }
  });

  test("every JSON answer says that its type is not to be guessed", async () => {
    const person = await site.person(1_000_000);
    const key = await person.key();
    const answers = [
      await fetch(`${site.server.url}/api/status`),
      await fetch(`${site.server.url}/api/user/self`),
      await fetch(`${site.server.url}/api/nothing-here`),
      await fetch(`${site.server.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } }),
      await fetch(`${site.server.url}/v1/models`),
      await fetch(`${site.server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: MODELS["openai-chat"],
          messages: [{ role: "user", content: promptOf({ id: "nosniff" }) }],
        }),
      }),
    ];
    for (const answer of answers) await answer.text();
    expect(
      answers.map(({ headers, url }) => [new URL(url).pathname, headers.get("x-content-type-options")]),
    ).toEqual(answers.map(({ url }) => [new URL(url).pathname, "nosniff"]));
  });

  test("links that run script do not survive in an operator's page, however they are written", async () => {
    const links = [
      "&#106;avascript:alert(1)",
      "java&#9;script:alert(1)",
      "&#x6A;avascript&colon;alert(1)",
      " JaVaScRiPt:alert(1)",
    ];
    await site.set("About", links.map((link) => `<p><a href="${link}">x</a></p>`).join(""));
    const page = await (await fetch(`${site.server.url}/about`)).text();
    const hrefs = [...page.matchAll(/href="([^"]*)"/g)].map((match) =>
      (match[1] ?? "")
        .replaceAll(/&#x([0-9a-f]+);/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
        .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
        .replaceAll("&colon;", ":")
        .replaceAll(/[\s&]|amp;/g, ""),
    );
    expect(hrefs.filter((href) => /script:/i.test(href))).toEqual([]);
  });

  test("a removed lock file lets no second process in", async () => {
    rmSync(join(site.server.dataDir, "process.lock"), { force: true });
    const second = await startServerProcess(
      { ENCRYPTION_KEY: "one key for all nodes" },
      { dataDir: site.server.dataDir, startLimitMs: 60_000 },
    ).then(
      async (server) => {
        await server.kill();
        return "it started";
      },
      (error: unknown) => String(error),
    );
    expect(second).toContain("weir cannot start");
  }, 90_000);

  test("an upstream's [] with 200 is a failure, and free", async () => {
    const person = await site.person(1_000_000);
    const key = await person.key();
    for (const dialect of ["openai-chat", "anthropic"] as const) {
      const seen = await callPlan(site.server.url, key, { id: `list-${dialect}`, list: true }, { dialect });
      expect(seen.status).toBeGreaterThanOrEqual(500);
    }
    expect((await site.books.balance(person.id)).quota).toBe(1_000_000);
  });

  test("headers that name a conversation are scoped to their user", async () => {
    const [one, two] = [await site.person(1_000_000), await site.person(1_000_000)];
    const [oneKey, twoKey] = [await one.key(), await two.key()];
    const uuid = "123e4567-e89b-42d3-a456-426614174000";
    const names = ["idempotency-key", "session_id", "conversation_id"] as const;
    const sent = async (key: string, id: string, value: string) => {
      const answer = await fetch(`${site.server.url}/v1/responses`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          ...Object.fromEntries(names.map((name) => [name, value])),
        },
        body: JSON.stringify({ model: MODELS["openai-responses"], input: promptOf({ id }) }),
      });
      expect(answer.status).toBe(200);
      const [call] = site.upstream.of(id);
      return names.map((name) => String(call?.headers[name]));
    };
    const mine = await sent(oneKey, "scope-1", uuid);
    const again = await sent(oneKey, "scope-2", uuid);
    const theirs = await sent(twoKey, "scope-3", uuid);
    const text = await sent(oneKey, "scope-4", "my conversation");
    expect(again).toEqual(mine);
    for (const [index] of names.entries()) {
      expect(mine[index]).not.toBe(uuid);
      expect(mine[index]).not.toBe(theirs[index]);
      expect(mine[index]).toMatch(UUID);
      expect(text[index]).not.toContain("my conversation");
      expect(text[index]?.length).toBeGreaterThan(15);
    }
  });
});

/** A provider that answers every call alike, and counts them. */
function startSulky(status: number, headers: Record<string, string> = {}) {
  let calls = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      calls++;
      return Response.json(
        { error: { message: "no", type: "mock", code: "invalid_api_key" } },
        { status, headers },
      );
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    calls: () => calls,
    stop: () => server.stop(true),
  };
}

describe.each(DATABASE_KINDS)("C8 on %s", (kind) => {
  test("a test by hand changes nothing, and an edit elsewhere wakes no resting channel on any node", async () => {
    const site = await startSite({ kind });
    await site.set("AutomaticDisableChannelEnabled", "true");
    await site.set("RetryTimes", "2");
    const [dead, busy] = [startSulky(401), startSulky(429, { "retry-after": "600" })];
    await site.channel({ name: "dead", models: "never-called", base_url: dead.url });
    const list = async () =>
      (await site.root.send("GET", "/api/channel/?p=0&page_size=50")) as {
        id: number;
        name: string;
        status: number;
        models: string;
      }[];
    const id = (await list()).find(({ name }) => name === "dead")?.id ?? 0;
    for (let round = 0; round < 2; round++)
      await site.root.send("GET", `/api/channel/test/${id}`).catch(() => undefined);
    expect(dead.calls()).toBeGreaterThan(0);
    expect((await list()).find(({ name }) => name === "dead")?.status).toBe(1);

    await site.channel({ name: "busy", models: MODELS["openai-chat"], base_url: busy.url, priority: 100 });
    const nodes = [site.server, ...(kind === "postgres" ? [await site.join()] : [])];
    const person = await site.person(1_000_000);
    const key = await person.key();
    const calls = async () => {
      for (const { url } of nodes)
        for (let round = 0; round < 5; round++)
          expect((await callPlan(url, key, { id: "busy" })).status).toBe(200);
    };
    await calls();
    const asked = busy.calls();
    expect(asked).toBeGreaterThan(0);
    await calls();
    expect(busy.calls()).toBe(asked);
    // Another channel is renamed, one is added, and time passes in which nodes look for changes.
    const other = (await list()).find(({ models }) => models === MODELS.gemini);
    await site.root.send("PUT", "/api/channel/", { id: other?.id ?? 0, name: "renamed" });
    await site.channel({ name: "new", models: "brand-new" });
    await Bun.sleep(1500);
    await calls();
    expect(busy.calls()).toBe(asked);
    // The edit itself arrived everywhere.
    await site.root.send("PUT", "/api/channel/", { id: other?.id ?? 0, status: 2 });
    for (const { url } of nodes)
      await site.until(
        async () => (await callPlan(url, key, { id: "gone" }, { dialect: "gemini" })).status === 503,
        2000,
      );
    await dead.stop();
    await busy.stop();
    await site.remove();
  }, 150_000);
});
