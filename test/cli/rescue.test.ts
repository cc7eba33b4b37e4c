// weir rescue, as somebody without any other way in uses it: the program prints a link beside the running server, a press
// on its page signs root in, once.
// Refuses the product's insides: the program, the wire, and the directory as whoever runs the machine sees them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { signIn, startSite } from "../attack/site.ts";
import type { Site } from "../attack/site.ts";
import { prepareRescue } from "../../src/core/users/rescue.ts";
import { startTestApp } from "../support/app.ts";
import { testClock } from "../support/clock.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startServerProcess } from "../support/server.ts";

describe.each(DATABASE_KINDS)("on %s", (kind) => {
  let site: Site;
  beforeAll(async () => {
    site = await startSite({ kind });
  });
  afterAll(() => site.remove());

  function printed(): { link: string; token: string } {
    const { code, text } = site.server.run(["rescue"]);
    const [link = ""] = text.split("\n");
    expect(code).toBe(0);
    expect(link).toMatch(/^http:\/\/localhost:\d+\/rescue#[0-9a-f]{64}$/);
    return { link, token: link.slice(-64) };
  }

  async function press(token: string, headers: Record<string, string> = {}) {
    const answer = await fetch(`${site.server.url}/api/user/rescue`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ token }),
    });
    const told = (await answer.json()) as {
      success: boolean;
      code?: string;
      data?: { id: number; role: number };
    };
    const cookie = answer.headers.getSetCookie().map((line) => line.split(";")[0]);
    return { status: answer.status, told, cookie: cookie.join("; ") };
  }

  test("the link signs root in once; looking at it, guessing and other sites do nothing to it", async () => {
    const { token } = printed();
    const file = join(site.server.dataDir, "rescue.link");
    expect(existsSync(file)).toBe(kind === "sqlite");
    if (kind === "sqlite") expect(statSync(file).mode & 0o777).toBe(0o600);
    for (const method of ["GET", "HEAD"]) {
      const page = await fetch(`${site.server.url}/rescue`, { method });
      await page.text();
      expect([page.status, page.headers.getSetCookie()]).toEqual([200, []]);
      await (await fetch(`${site.server.url}/api/user/rescue?token=${token}`, { method })).text();
    }
    expect((await press("0".repeat(64))).told.code).toBe("rescue_link_wrong");
    expect((await press(token, { "sec-fetch-site": "cross-site" })).status).toBe(403);
    // Two at once: one is in.
    const both = await Promise.all([press(token), press(token)]);
    expect(both.map(({ told }) => told.success).toSorted()).toEqual([false, true]);
    const won = both.find(({ told }) => told.success);
    expect([won?.told.data?.id, won?.told.data?.role]).toEqual([1, 100]);
    const self = await fetch(`${site.server.url}/api/user/self`, {
      headers: { cookie: won?.cookie ?? "", "new-api-user": "1" },
    });
    expect(self.status).toBe(200);
    expect((await press(token)).told.code).toBe("rescue_link_wrong");
    expect(existsSync(file)).toBe(false);
    const rows = await site.until(async () => {
      await site.root.send("GET", "/api/log/?p=1&page_size=1");
      const found = (await site.books.log(7)).filter(({ content }) => content.includes("weir rescue"));
      return found.length > 0 && found;
    });
    expect(rows.length).toBe(1);
    expect(JSON.stringify(rows)).not.toContain(token);
    expect(site.server.log()).not.toContain(token);
  });

  test("a newer link ends the older one", async () => {
    const older = printed();
    const newer = printed();
    expect((await press(older.token)).told.code).toBe("rescue_link_wrong");
    expect((await press(newer.token)).told.success).toBe(true);
  });

  test("it lifts what wrong passwords have locked, and opens while only it is let in", async () => {
    const wrong = () =>
      fetch(`${site.server.url}/api/user/login`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ username: "root", password: "wrong guess" }),
      });
    let status = 0;
    for (let i = 0; i < 12 && status !== 429; i++) {
      const answer = await wrong();
      await answer.text();
      ({ status } = answer);
    }
    expect([status, (await signIn(site.server.url, "root")).status]).toEqual([429, 429]);
    await site.set("site.maintenance_enabled", "true");
    const { told } = await press(printed().token);
    expect(told.success).toBe(true);
    await site.set("site.maintenance_enabled", "false");
    expect((await signIn(site.server.url, "root")).id).toBe(1);
  });

  test("one is printed for a stopped server, too, and taken after its start", async () => {
    await site.server.stop();
    const { token } = printed();
    await site.server.restart();
    expect((await press(token)).told.success).toBe(true);
  });
});

test.each(DATABASE_KINDS)("after ten minutes the link is nothing, on %s", async (database) => {
  const clock = testClock();
  const app = await startTestApp({ database, clock });
  const root = await app.createUser({ role: 100 });
  const { db, dataDir } = app.deps;
  const prepare = () => prepareRescue(db, { dataDir, nowSeconds: Math.floor(clock.nowMs() / 1000) });
  const press = async (token = "") =>
    (await app.call<{ code?: string; data?: { id: number } }>("POST", "/api/user/rescue", { token })).body;
  const late = await prepare();
  clock.advance(600_000);
  expect((await press(late)).code).toBe("rescue_link_wrong");
  const timely = await prepare();
  clock.advance(599_000);
  expect((await press(timely)).data?.id).toBe(root.id);
  await app.close();
});

test("before there is a root account there is nothing to rescue", async () => {
  const server = await startServerProcess();
  expect(server.run(["rescue"])).toMatchObject({
    code: 1,
    text: expect.stringContaining("no root account yet"),
  });
  await server.remove();
});
