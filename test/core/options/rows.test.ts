// The option rows drive the status, the option list and the settings screens: each row is complete, none leaks.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { optionDefinitions, optionRows } from "../../../src/core/options/definitions.ts";
import { OPTION_TABS, optionGroups } from "../../../src/core/options/groups.ts";
import { OPTION_UNITS } from "../../../src/core/options/kinds.ts";
import { siteStatus } from "../../../src/core/site/status.ts";
import { LANGUAGES } from "../../../src/shared/enums.ts";
import type { Language } from "../../../src/shared/enums.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";

const texts = Object.fromEntries(
  LANGUAGES.map((language) => {
    const file = join(import.meta.dir, "../../../locales", language, "option.json");
    return [language, JSON.parse(readFileSync(file, "utf8")) as Record<string, string>];
  }),
) as Record<Language, Record<string, string>>;

/** Names in the area `option` that the rows, groups, tabs and units stand for. */
const named = [
  ...optionRows.flatMap(({ title, help, texts: own }) => (own ? [] : [title, help])),
  ...optionGroups.map(({ title }) => title),
  ...OPTION_TABS.map((tab) => `option.tab.${tab}`),
  ...OPTION_UNITS.map((unit) => `option.unit.${unit}`),
].map((key) => key.replace(/^option\./, ""));

/** What clients of GET /api/status know, by where it comes from. */
const STATUS_OF_OPTIONS =
  "chats custom_currency_exchange_rate custom_currency_symbol data_export_default_time default_collapse_sidebar default_use_auto_group demo_site_enabled discord_client_id discord_oauth display_in_currency docs_link email_verification enable_data_export enable_drawing enable_task footer_html github_client_id github_oauth linuxdo_client_id linuxdo_minimum_trust_level linuxdo_oauth logo maintenance_enabled max_topup min_topup mj_notify_enabled oidc_authorization_endpoint oidc_client_id oidc_enabled password_login_enabled password_register_enabled register_enabled price quota_display_type quota_per_unit self_use_mode_enabled server_address status_page system_name telegram_bot_name telegram_oauth time_zone top_up_link turnstile_check turnstile_site_key usd_exchange_rate wechat_login wechat_qrcode".split(
    " ",
  );
const STATUS_COMPUTED =
  "chat_link custom_oauth_providers enable_batch_update enable_online_topup has_status_page maintenance_message passkey_login password_max password_min reset_enabled setup sign_in_providers start_time terms_version username_max version".split(
    " ",
  );

describe("option rows", () => {
  test("each option is one row, in one group", () => {
    expect(new Set(optionRows.map(({ key }) => key)).size).toBe(optionRows.length);
    expect(optionRows.map(({ key }) => String(key)).toSorted()).toEqual(
      Object.keys(optionDefinitions).toSorted(),
    );
    const groups = new Set(optionGroups.map(({ id }) => id));
    expect(optionRows.filter(({ group }) => !groups.has(group))).toEqual([]);
  });

  test("each group has options, a tab, and its own place", () => {
    const used = new Set(optionRows.map(({ group }) => group));
    expect(optionGroups.filter(({ id }) => !used.has(id))).toEqual([]);
    expect(optionGroups.map(({ order }) => order)).toEqual(optionGroups.map((_, index) => index));
    expect(OPTION_TABS.filter((tab) => !optionGroups.some((group) => group.tab === tab))).toEqual([]);
  });

  test.each(LANGUAGES)(
    "each row, group, tab and unit has its texts in %s, and no text is left over",
    (language) => {
      expect(Object.keys(texts[language]).toSorted()).toEqual(named.toSorted());
    },
  );

  test("what is declared elsewhere brings its texts in both languages, of each its own", () => {
    const own = optionRows.flatMap(({ key, texts: brought }) =>
      brought ? [{ key: String(key), ...brought }] : [],
    );
    expect(own.map(({ key }) => key)).toEqual(expect.arrayContaining(["PayAddress", "StripeApiSecret"]));
    const wrong = own.filter(
      ({ title, help }) =>
        !/[a-z]/i.test(title.en + help.en) ||
        /[\u3000-\u9fff]/.test(title.en + help.en) ||
        !/[\u3000-\u9fff]/.test(help.zh) ||
        title.zh === "",
    );
    expect(wrong).toEqual([]);
  });

  test("titles tell the options of a group apart", () => {
    for (const language of LANGUAGES) {
      const seen = optionRows.map(
        ({ group, title, texts: own }) =>
          `${group}: ${own?.title[language] ?? texts[language][title.slice(7)]}`,
      );
      expect(seen.filter((each, index) => seen.indexOf(each) !== index)).toEqual([]);
    }
  });

  test("units stand at numbers only", () => {
    const wrong = optionRows.filter(
      (row) => row.unit !== undefined && typeof row.kind.parse(row.default) !== "number",
    );
    expect(wrong.map(({ key }) => key)).toEqual([]);
  });

  test("no secret is public, and no two options share a field", () => {
    expect(optionRows.filter((row) => row.secret === true && row.public !== undefined)).toEqual([]);
    const fields = optionRows.flatMap((row) => row.public ?? []);
    expect(fields.toSorted()).toEqual(STATUS_OF_OPTIONS.toSorted());
  });
});

describe("what follows from the rows", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp();
  });
  afterAll(() => app.close());

  test("the status has the public options as they are stored and the computed fields, nothing else", async () => {
    const { options } = app.deps;
    await options.set("Chats", '[{"Lobe": "https://chat.example.org/?key={key}"}]');
    await options.set("SystemName", "Brook");
    const status: Record<string, unknown> = await siteStatus(app.deps);
    expect(Object.keys(status).toSorted()).toEqual([...STATUS_OF_OPTIONS, ...STATUS_COMPUTED].toSorted());
    for (const row of optionRows)
      if (row.public !== undefined)
        expect([row.key, status[row.public]]).toEqual([row.key, options.get(row.key)]);
    const wire = await app.call<{ data: unknown }>("GET", "/api/status");
    expect(wire.body.data).toEqual(JSON.parse(JSON.stringify(status)));
    expect(wire.body.data).toMatchObject({
      system_name: "Brook",
      chats: [{ Lobe: "https://chat.example.org/?key={key}" }],
      enable_online_topup: false,
      enable_batch_update: false,
      chat_link: "https://chat.example.org",
      setup: false,
    });
  });

  test("the option list has every row that is no secret", async () => {
    const root = await app.createUser({ role: 100 });
    const { body } = await app.call<{ data: { key: string; value: string }[] }>(
      "GET",
      "/api/option/",
      undefined,
      root,
    );
    const open = optionRows.filter((row) => row.secret !== true).map(({ key }) => String(key));
    expect(body.data.map(({ key }) => key)).toEqual(open);
  });
});
