// C2, C5 and C6 from outside: channel keys, locked accounts, and sessions that end.
// Refuses one seat for all: strangers, owners and administrators come from addresses and sessions of their own.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startMockUpstream } from "../support/mock-upstream.ts";
import { askFrom } from "../support/outsider.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { callPlan, IS_LONG, MODELS, PASSWORD, sender, signIn, startSite } from "./site.ts";
import type { Site } from "./site.ts";
import { startStretch } from "../support/stretch.ts";

const login = (username: string, password: string, cookie = "") => ({
  method: "POST",
  path: "/api/user/login",
  headers: { cookie },
  body: JSON.stringify({ username, password }),
});

describe("C2: an administrator and a channel's key", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
  });
  afterAll(() => site.remove());

  test("a changed origin or proxy needs the key again; nothing with the old key ever reaches the new address", async () => {
    const trap = await startMockUpstream();
    const made = await site.root.send("POST", "/api/user/", { username: "helper", password: PASSWORD });
    await site.root.send("POST", "/api/user/manage", { id: (made as { id: number }).id, action: "promote" });
    const helper = await signIn(site.server.url, "helper");
    const send = sender(site.server.url, helper.id, helper.cookie);
    const list = (await site.root.send("GET", "/api/channel/?p=0&page_size=20")) as {
      id: number;
      models: string;
    }[];
    const channel = list.find(({ models }) => models.includes(MODELS["openai-chat"]));
    const id = channel?.id ?? 0;
    const tries = [
      { id, base_url: trap.url },
      { id, base_url: `${trap.url}/` },
      { id, base_url: trap.url, key: "" },
      { id, setting: JSON.stringify({ proxy: trap.url, allow_networks: ["127.0.0.1"] }) },
    ];
    const accepted: unknown[] = [];
    for (const change of tries)
      await send("PUT", "/api/channel/", change).then(
        () => accepted.push(change),
        () => undefined,
      );
    const person = await site.person(1_000_000);
    await callPlan(site.server.url, await person.key(), { id: "trap" });
    await send("GET", `/api/channel/test/${id}`).catch(() => undefined);
    expect(trap.calls.map(({ headers }) => headers.authorization)).toEqual([]);
    expect(accepted.length).toBe(0);
    // With the key in hand it may be moved, and root may move it in any case.
    await send("PUT", "/api/channel/", { id, base_url: trap.url, key: "of-the-new-place" });
    await callPlan(site.server.url, await person.key(), { id: "moved" });
    expect(trap.of("moved").map(({ headers }) => headers.authorization)).toEqual(["Bearer of-the-new-place"]);
    await site.root.send("PUT", "/api/channel/", { id, base_url: site.upstream.url });
    trap.stop();
  });
});

describe("C5: wrong passwords of strangers", () => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite();
  });
  afterAll(() => site.remove());

  test("ten of them lock the stranger's address out of this account, not its owner", async () => {
    const person = await site.person(1000);
    const known = person.cookie;
    const wrong = await Promise.all(
      Array.from({ length: 14 }, () =>
        askFrom("127.0.0.6", site.server.url, login(person.username, "wrong")),
      ),
    );
    expect(wrong.filter(({ status }) => status === 429).length).toBeGreaterThanOrEqual(4);
    // From elsewhere, without any cookie.
    const elsewhere = await askFrom("127.0.0.7", site.server.url, login(person.username, PASSWORD));
    expect([elsewhere.status, elsewhere.text.includes('"success":true')]).toEqual([200, true]);
    // From the stranger's own address, on the device that has signed in before.
    const device = await askFrom("127.0.0.6", site.server.url, login(person.username, PASSWORD, known));
    expect([device.status, device.text.includes('"success":true')]).toEqual([200, true]);
    // Without it that address is not even told whether the password is right.
    expect((await askFrom("127.0.0.6", site.server.url, login(person.username, PASSWORD))).status).toBe(429);
  }, 60_000);

  if (IS_LONG)
    test("200 an hour from everywhere close the account to unknown devices only", async () => {
      const person = await site.person(1000);
      for (let address = 20; address < 45; address++)
        await Promise.all(
          Array.from({ length: 9 }, () =>
            askFrom(`127.0.1.${address}`, site.server.url, login(person.username, "wrong")),
          ),
        );
      expect((await askFrom("127.0.2.1", site.server.url, login(person.username, PASSWORD))).status).toBe(
        429,
      );
      const device = await askFrom(
        "127.0.2.2",
        site.server.url,
        login(person.username, PASSWORD, person.cookie),
      );
      expect(device.status).toBe(200);
    }, 180_000);
});

describe.each(DATABASE_KINDS)("C6: sessions on %s", (kind) => {
  test("a sign-out ends that session alone, on every node within a second", async () => {
    const site = await startSite({ kind });
    const nodes = [site.server, ...(kind === "postgres" ? [await site.join()] : [])];
    const person = await site.person(1000);
    const [left, kept] = [
      await signIn(site.server.url, person.username),
      await signIn(site.server.url, person.username),
    ];
    const isIn = async (url: string, cookie: string) =>
      (await fetch(`${url}/api/user/self`, { headers: { cookie, "new-api-user": String(person.id) } }))
        .status === 200;
    for (const { url } of nodes)
      expect([await isIn(url, left.cookie), await isIn(url, kept.cookie)]).toEqual([true, true]);
    await fetch(`${site.server.url}/api/user/logout`, {
      headers: { cookie: left.cookie, "new-api-user": String(person.id) },
    });
    const stretch = startStretch(site.server.pid);
    const endedMs = performance.now();
    const lagsMs = await Promise.all(
      nodes.map(async ({ url }) => {
        await site.until(async () => !(await isIn(url, left.cookie)), 10_000);
        return performance.now() - endedMs;
      }),
    );
    expect(Math.max(...lagsMs)).toBeLessThan(1500 * stretch());
    for (const { url } of nodes) expect(await isIn(url, kept.cookie)).toBe(true);
    // Nor does a restart bring it back.
    await site.server.stop();
    await site.server.restart();
    expect(await isIn(site.server.url, left.cookie)).toBe(false);
    expect(await isIn(site.server.url, kept.cookie)).toBe(true);
    await site.remove();
  }, 60_000);
});
