// The forbidden page over the wire: at its own address and in place of what a role may not open, never a dead end.
// Refuses to say less than which role is needed, and to tell guests of pages: they are asked to sign in.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { moved, pages } from "../../src/pages/pages.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";

let app: TestApp;
let user: TestUser;
let admin: TestUser;
let root: TestUser;

beforeAll(async () => {
  app = await startTestApp();
  // The pages stand behind the setup.
  await app.deps.db.orm.insert(app.deps.db.t.setups).values({ id: 1, version: "0", initializedAt: 1 });
  root = await app.createUser({ role: 100 });
  admin = await app.createUser({ role: 10 });
  user = await app.createUser();
});
afterAll(() => app.close());

async function open(path: string, as?: TestUser, language = "en") {
  const answer = await fetch(app.url + path, {
    redirect: "manual",
    headers: { ...as?.headers, "accept-language": language },
  });
  const html = await answer.text();
  const main = /<section class="prose-page">.*?<\/section>/s.exec(html)?.[0] ?? "";
  const text = main
    .replaceAll(/<!--.*?-->/g, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
  const links = [...main.matchAll(/href="([^"]+)"/g)].map(([, href]) => href);
  return { status: answer.status, html, main, text, links, location: answer.headers.get("location") };
}

describe("at its own address", () => {
  test("everybody gets it with 403: with their role and the console around it, or the way to sign in", async () => {
    for (const [as, role] of [
      [user, "user"],
      [admin, "administrator"],
      [root, "super administrator"],
    ] as const) {
      const page = await open("/forbidden", as);
      expect(page.status).toBe(403);
      expect(page.text).toStartWith(
        `Not permitted The page you asked for is not open to you. Your role is ${role}.`,
      );
      expect(page.links).toEqual(["/token"]);
      // It says where it leads.
      expect(page.html).toContain('<a href="/token">API keys</a>');
      expect(page.main).toContain("data-palette");
      expect(page.html).toContain('data-late="');
    }
    const guest = await open("/forbidden");
    expect(guest.status).toBe(403);
    expect(guest.text).toContain("You are not signed in.");
    expect(guest.links).toEqual(["/login", "/"]);
    expect(guest.main).not.toContain("data-palette");
  });

  test("in Chinese", async () => {
    const page = await open("/forbidden", user, "zh");
    expect(page.text).toStartWith("无权访问 您无权打开该页面。 您当前的角色是普通用户。");
    expect((await open("/channel", user, "zh")).text).toStartWith(
      "无权访问 此页面需要管理员权限。 您当前的角色是普通用户。",
    );
    expect((await open("/forbidden", undefined, "zh")).text).toContain("您尚未登录。");
  });
});

describe("in place of a page", () => {
  const NAMES = { admin: "administrator", root: "super administrator" } as const;
  const closed = [...pages, ...moved].flatMap(({ path, access }) =>
    access === "admin" || access === "root" ? [{ path: path.replaceAll(/:\w+/g, "1"), access }] : [],
  );

  test("whoever lacks the role gets it at the address asked for, with 403 and the role that is needed", async () => {
    expect(closed.length).toBeGreaterThan(4);
    for (const { path, access } of closed) {
      const page = await open(path, user);
      expect([path, page.status]).toEqual([path, 403]);
      expect(page.text).toContain(`This page needs the role of ${NAMES[access]}. Your role is user.`);
      if (access === "root") expect((await open(path, admin)).status).toBe(403);
    }
  });

  test("guests are asked to sign in, and come back", async () => {
    for (const { path } of closed) {
      const page = await open(path);
      expect([page.status, page.location]).toEqual([302, `/login?next=${encodeURIComponent(path)}`]);
    }
  });
});
