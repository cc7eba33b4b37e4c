// The page of the settings and the call that brings its other tabs: root alone, every option, no secret, no long table.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Boot } from "../../islands/lib/boot.ts";
import { optionRows } from "../../src/core/options/definitions.ts";
import { OPTION_TABS, optionGroups } from "../../src/core/options/groups.ts";
import type { OptionRow, SettingPageData } from "../../src/shared/setting-rows.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

describe.each(DATABASE_KINDS)("the settings on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  let admin: TestUser;
  let ada: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database });
    root = await app.createUser({ username: "root", role: 100 });
    admin = await app.createUser({ username: "admin", role: 10 });
    ada = await app.createUser({ username: "ada" });
    await app.deps.db.orm.insert(app.deps.db.t.setups).values({ version: "test", initializedAt: 1 });
  });
  afterAll(() => app.close());

  async function open(path: string, as?: TestUser, language = "en") {
    const answer = await fetch(app.url + path, {
      headers: { ...as?.headers, "accept-language": language },
      redirect: "manual",
    });
    const html = await answer.text();
    const text = /<script[^>]*id="boot"[^>]*>(.*?)<\/script>/s.exec(html)?.[1];
    return { answer, html, boot: text ? (JSON.parse(text) as Boot<SettingPageData | null>) : undefined };
  }
  const rowsAs = (as: TestUser, query = "") =>
    app.call<{ data: OptionRow[]; success: boolean }>("GET", `/api/option/rows${query}`, undefined, as);

  test("root sees the page; administrators and users the forbidden one, strangers the login", async () => {
    const own = await open("/setting", root);
    expect([own.answer.status, own.boot?.screen, own.boot?.data?.tab]).toEqual([200, "setting", "operation"]);
    expect(own.html).toContain('href="/setting"');
    for (const other of [admin, ada]) {
      const { answer, html, boot } = await open("/setting?tab=system", other);
      // The page says whom it is for, and nothing of what stands there.
      expect([answer.status, boot?.screen ?? "", boot?.data]).toEqual([403, "", null]);
      expect(html).not.toContain("SMTPServer");
      expect(html).not.toContain('href="/setting"');
      expect((await rowsAs(other)).status).toBe(403);
    }
    const stranger = await open("/setting");
    expect(stranger.answer.status).toBe(302);
    expect(stranger.answer.headers.get("location")).toBe("/login?next=%2Fsetting");
  });

  test.each([...OPTION_TABS, "nothing"])(
    "the tab %s comes with its own options, in both languages",
    async (tab) => {
      const expected = OPTION_TABS.find((each) => each === tab) ?? "operation";
      const groups = new Set<string>(
        optionGroups.filter((group) => group.tab === expected).map(({ id }) => id),
      );
      const keys = optionRows
        .filter(({ group, hidden }) => groups.has(group) && !hidden)
        .map(({ key }) => key as string);
      expect(keys.length).toBeGreaterThan(3);
      for (const language of ["en", "zh"] as const) {
        const { boot, html } = await open(`/setting?tab=${tab}`, root, language);
        expect([boot?.data?.tab, boot?.data?.rows.map(({ key }) => key)]).toEqual([expected, keys]);
        // Drawn by the server already: each option has its line and its name.
        for (const key of keys) {
          expect([key, html.includes(`data-option="${key}`) || html.includes(`${key}"`)]).toEqual([
            key,
            true,
          ]);
          const brought = boot?.data?.rows.find((row) => row.key === key)?.texts?.title[language];
          const title = brought ?? boot?.texts[`option.title.${key}`];
          expect([key, typeof title]).toEqual([key, "string"]);
        }
      }
    },
  );

  test("secrets do not come along, only whether they are set; long tables neither", async () => {
    await app.deps.options.set("SMTPToken", "hunter2-hunter2");
    const { boot, html } = await open("/setting?tab=system", root);
    const rows = await rowsAs(root, "?full=true");
    expect(html).not.toContain("hunter2");
    expect(rows.text).not.toContain("hunter2");
    const secrets = rows.body.data.filter(({ secret }) => secret);
    expect(secrets.length).toBeGreaterThan(1);
    expect(secrets.filter(({ value }) => value !== "")).toEqual([]);
    expect(secrets.filter(({ isSet }) => isSet === true).map(({ key }) => key)).toEqual(["SMTPToken"]);
    expect(boot?.data?.rows.find(({ key }) => key === "SMTPToken")?.isSet).toBe(true);
    await app.deps.options.set("SMTPToken", "");

    const first = await open("/setting", root);
    const ratios = (all: readonly OptionRow[] = []) => all.find(({ key }) => key === "ModelRatio");
    expect(ratios(first.boot?.data?.rows)).toMatchObject({ isLong: true, value: "", default: "" });
    expect(first.html).not.toContain("gpt-4o-2024-05-13");
    expect(ratios((await rowsAs(root)).body.data)?.value).toBe("");
    expect(ratios((await rowsAs(root, "?full=true")).body.data)?.value).toBe(
      app.deps.options.text("ModelRatio"),
    );
    // A fresh site has the prices of its release, which counts as unchanged.
    expect(
      (await rowsAs(root)).body.data.filter(({ group, changed }) => group === "prices" && changed),
    ).toEqual([]);
  });

  test("a row says kind, bounds, unit, default, and what is stored", async () => {
    await app.call("PUT", "/api/option/", { key: "RetryTimes", value: "3" }, root);
    const byKey = new Map((await rowsAs(root)).body.data.map((row) => [row.key, row]));
    expect(byKey.get("RetryTimes")).toEqual({
      key: "RetryTimes",
      kind: "number",
      group: "general",
      tab: "operation",
      value: "3",
      default: "0",
      secret: false,
      unit: "attempts",
      changed: true,
      min: 0,
      max: 10,
      isWhole: true,
    });
    expect(byKey.get("DataExportDefaultTime")).toMatchObject({
      kind: "choice",
      values: ["hour", "day", "week"],
    });
    const kinds: Record<string, string> = {
      DrawingEnabled: "switch",
      SensitiveWords: "lines",
      PriceRules: "json_map",
      Notice: "long_text",
      "site.time_zone": "time_zone",
      ServerAddress: "url",
      GroupRatio: "number_map",
      UserUsableGroups: "text_map",
      "claude.model_headers_settings": "json_map",
      Chats: "json_list",
    };
    for (const [key, kind] of Object.entries(kinds))
      expect([key, byKey.get(key)?.kind]).toEqual([key, kind as never]);
    const tabs = new Map<string, string>(optionGroups.map(({ id, tab }) => [id, tab]));
    expect([...byKey.keys()]).toEqual(
      optionRows
        .filter(({ group, hidden }) => !["none", "desk"].includes(tabs.get(group) ?? "") && !hidden)
        .map(({ key }) => key as string),
    );
    await app.call("PUT", "/api/option/", { key: "RetryTimes", value: "0" }, root);
    expect((await rowsAs(root)).body.data.find(({ key }) => key === "RetryTimes")?.changed).toBe(false);
  });
});
