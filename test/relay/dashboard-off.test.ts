// The dashboard switched off: its page and every route of its figures are gone for everybody, and the sums behind them go
// on, so that nothing is missing when it is switched on again.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp } from "../../src/app.ts";
import type { TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let g: Gateway;
  let root: TestUser;
  beforeAll(async () => {
    g = await startGateway({ database });
    root = await g.app.createUser({ role: 100 });
    const { setups } = g.app.deps.db.t;
    await g.app.deps.db.orm.insert(setups).values({ id: 1, version: "test", initializedAt: 1 });
    await g.setOption("DataExportEnabled", "false");
  });
  afterAll(() => g.close());

  const figures = async (path: string, as: TestUser) =>
    (await g.app.call<{ data: { count: number }[] }>("GET", path, undefined, as)).body.data.reduce(
      (sum, { count }) => sum + count,
      0,
    );

  test("every route of its figures is refused to everybody, strangers are told nothing of it", async () => {
    const paths = (await createApp(g.app.services)).routes
      .map(({ path }) => path)
      .filter((path) => path.startsWith("/api/data"));
    expect(paths.length).toBeGreaterThan(4);
    for (const path of paths) {
      const { status, body } = await g.app.call("GET", path, undefined, root);
      expect([path, status, body["code"]]).toEqual([path, 403, "data_export_disabled"]);
      expect([path, (await g.app.call("GET", path)).body["code"]]).toEqual([path, "auth_not_signed_in"]);
    }
    const own = await g.app.call("GET", "/api/data/self", undefined, g.user);
    expect(own.body["message"]).toBe("管理员已关闭数据看板");
  });

  test("its page is not there, neither is the way to it, and nobody lands on it", async () => {
    for (const who of [g.user, root]) {
      const page = await g.app.call("GET", "/detail", undefined, who);
      expect(page.status).toBe(404);
      expect(page.text).not.toContain('href="/detail"');
    }
    const moved = await g.app.call("GET", "/setup", undefined, g.user);
    expect(moved.headers.get("location")).toBe("/token");
  });

  test("what is spent meanwhile is there when it is switched on again", async () => {
    await g.charged(() => g.chat());
    await g.charged(() => g.chat());
    await g.setOption("DataExportEnabled", "true");
    expect(await figures("/api/data/self", g.user)).toBe(2);
    expect(await figures("/api/data/", root)).toBe(2);
    const page = await g.app.call("GET", "/detail", undefined, g.user);
    expect(page.status).toBe(200);
    expect(page.text).toContain('href="/detail"');
    const moved = await g.app.call("GET", "/setup", undefined, g.user);
    expect(moved.headers.get("location")).toBe("/detail");
  });
});
