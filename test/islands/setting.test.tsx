// The settings as root meets them: every option has a control, switches act at once, the rest is saved together, words find.
import { beforeEach, describe, expect, spyOn, test } from "bun:test";
import { act, fireEvent, screen, waitFor, within } from "@testing-library/react";
import { definitionOf, optionRows } from "../../src/core/options/definitions.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { optionGroups } from "../../src/core/options/groups.ts";
import { settingRows } from "../../src/core/options/setting-rows.ts";
import "../../src/core/payments/rails.ts";
import type { OptionRow, SettingTab } from "../../src/shared/setting-rows.ts";
import { findSettings } from "../../islands/lib/setting-words.ts";
import SettingScreen from "../../islands/screens/setting.tsx";
import { fetchEditors } from "../../islands/screens/setting/late-editors.ts";
import { differing } from "../../islands/screens/setting/review.tsx";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions, SentRequest } from "./render.tsx";

const TABS: readonly SettingTab[] = ["operation", "ratelimit", "models", "payment", "system", "other"];

// What the page fetches while it is idle is there.
await Promise.all([
  fetchEditors(),
  import("../../islands/screens/setting/late-control.tsx"),
  import("../../islands/screens/setting/review.tsx"),
]);

/** Options that no screen draws before what they rule is built; their controls are there. */
const LATER: OptionRow[] = (
  [
    ["GitHubOAuthEnabled", "switch", "github"],
    ["EpayId", "text", "payment"],
    ["TopupGroupRatio", "number_map", "payment"],
    ["oidc.well_known", "url", "oidc"],
    ["EmailDomainWhitelist", "csv", "email_domains"],
  ] as const
).map(([key, kind, group]) => ({
  key,
  kind,
  group,
  tab: "system",
  value: definitionOf(key as OptionKey).default,
  default: definitionOf(key as OptionKey).default,
  secret: false,
  changed: false,
}));

interface OpenOptions extends IslandOptions {
  tab?: SettingTab;
  /** What is stored and differs from the default. */
  stored?: Partial<Record<OptionKey, string>>;
  withLater?: boolean;
}

/** As the loader and the route give them. */
function rowsOf(stored: OpenOptions["stored"] = {}, choice: Parameters<typeof settingRows>[1] = {}) {
  return settingRows({ text: (key) => stored[key] ?? definitionOf(key).default }, choice);
}

function laterRows(stored: OpenOptions["stored"] = {}): OptionRow[] {
  return LATER.map((row) => ({ ...row, value: stored[row.key as OptionKey] ?? row.value }));
}

function open({ tab = "operation", stored = {}, withLater, ...options }: OpenOptions = {}): Island {
  const rows = rowsOf(stored, { tab });
  const island = renderScreen(SettingScreen, {
    url: `/setting?tab=${tab}`,
    user: { role: 100 },
    data: { tab, rows: withLater ? [...rows, ...laterRows(stored)] : rows },
    ...options,
  });
  island.answer("GET /api/option/rows", () => ({ success: true, data: rowsOf(stored, { isFull: true }) }));
  island.answer("PUT /api/option", { success: true, message: "" });
  island.answer("GET /api/option/ways_in", {
    success: true,
    data: { accounts_without_sign_in: 0, passkeys_orphaned: 0 },
  });
  return island;
}

const line = (key: string) => {
  const found = document.querySelector<HTMLElement>(`[data-option~="${CSS.escape(key)}"]`);
  if (!found) throw new Error(`${key} is not drawn`);
  return within(found);
};
const puts = (island: Island) =>
  island.requests.filter(({ method }) => method === "PUT").map(({ body }) => body as { key: string });
const bar = () => within(screen.getByRole("region", { name: "Unsaved changes" }));
// Counted, for a failed comparison of elements prints them for minutes.
const hasBar = () => screen.queryAllByRole("region", { name: "Unsaved changes" }).length > 0;
const type = (input: HTMLElement, value: string) => fireEvent.change(input, { target: { value } });
const failing = (keys: readonly string[]) => (call: SentRequest) => {
  const { key } = call.body as { key: string };
  return keys.includes(key)
    ? Response.json({ success: false, message: `no ${key}`, code: "option_unknown" }, { status: 400 })
    : { success: true, message: "" };
};

/** What the server says would go with a way in. */
const loses = (island: Island, accounts: number, passkeys: number) =>
  island.answer("GET /api/option/ways_in", {
    success: true,
    data: { accounts_without_sign_in: accounts, passkeys_orphaned: passkeys },
  });

beforeEach(() => sessionStorage.clear());

describe("every option", () => {
  const tabOf = new Map(optionGroups.map(({ id, tab }) => [id as string, tab]));
  const visible = optionRows.filter(({ group, hidden }) => tabOf.get(group) !== "none" && !hidden);

  test.each(TABS)(
    "of the tab %s has a control under its name, and no tab but its own draws it",
    async (tab) => {
      const island = open({ tab });
      await settle();
      if (rowsOf({}, { tab }).some(({ isLong }) => isLong)) {
        // Prices come once their card is near; here, by a search.
        type(screen.getByRole("searchbox"), "nonsense");
        await waitFor(() => {
          if (!screen.queryByText(/No setting has these words/)) throw new Error("still loading");
        });
        type(screen.getByRole("searchbox"), "");
        await settle();
      }
      const lacking = () =>
        visible
          .filter(({ group, key }) => {
            const drawn = document.querySelector(`[data-option~="${CSS.escape(key)}"]`);
            const control = drawn?.querySelector("input, select, textarea, button");
            return (tabOf.get(group) === tab) !== (control !== null && control !== undefined);
          })
          .map(({ key }) => key);
      // A panel may be fetched when its card is drawn.
      await waitFor(() => {
        if (lacking().length > 0) throw new Error(`without a control, or on two tabs: ${lacking().join()}`);
      });
      // What has no control of its own may still be on its way.
      await waitFor(() => expect(document.querySelectorAll(".skeleton").length).toBe(0));
      expect(island.requests.every(({ method }) => method === "GET")).toBe(true);
    },
  );

  test("groups that no tab shows, and options that nothing acts on, are drawn nowhere", () => {
    const hidden = optionRows
      .filter((row) => tabOf.get(row.group) === "none" || row.hidden)
      .map(({ key }) => key as string);
    expect(hidden.length).toBeGreaterThan(0);
    expect(rowsOf().filter(({ key }) => hidden.includes(key))).toEqual([]);
  });

  test("shows unit, default, and that it differs from its default, with the way back", () => {
    const island = open({ stored: { RetryTimes: "3" } });
    const retries = line("RetryTimes");
    expect(retries.getByText("attempts")).toBeTruthy();
    expect(retries.getByText("Changed")).toBeTruthy();
    expect(retries.getByText("Default: 0")).toBeTruthy();
    fireEvent.click(retries.getByRole("button", { name: "Reset Retries to its default" }));
    expect(retries.getByRole<HTMLInputElement>("textbox").value).toBe("0");
    expect(bar().getByText("1 change")).toBeTruthy();
    expect(line("QuotaPerUnit").queryAllByText("Changed").length).toBe(0);
    expect(puts(island)).toEqual([]);
  });

  test("an amount of quota says what it is worth", () => {
    open({ stored: { QuotaForNewUser: "500000" } });
    expect(line("QuotaForNewUser").getByText("= $1.00")).toBeTruthy();
  });
});

describe("a switch", () => {
  test("is saved at once, and undone from the toast", async () => {
    const island = open();
    const toggle = () => line("DrawingEnabled").getByRole<HTMLInputElement>("switch");
    expect(toggle().checked).toBe(true);
    await island.user.click(toggle());
    await settle();
    expect(puts(island)).toEqual([{ key: "DrawingEnabled", value: "false" }] as never);
    expect(toggle().checked).toBe(false);
    expect(line("DrawingEnabled").getByText("Changed")).toBeTruthy();
    expect(hasBar()).toBe(false);
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(puts(island).at(-1)).toEqual({ key: "DrawingEnabled", value: "true" } as never);
    expect(toggle().checked).toBe(true);
  });

  test("that is refused goes back, with the reason beside it", async () => {
    const island = open({ withLater: true, tab: "system" });
    island.answer("PUT /api/option", failing(["GitHubOAuthEnabled"]));
    const github = line("GitHubOAuthEnabled");
    await island.user.click(github.getByRole("switch"));
    await settle();
    expect(github.getByRole<HTMLInputElement>("switch").checked).toBe(false);
    expect(github.getByRole("alert").textContent).toBe("no GitHubOAuthEnabled");
  });

  test("for password sign-in asks first, and cancelling leaves it on", async () => {
    const island = open({ withLater: true, tab: "system", stored: { GitHubOAuthEnabled: "true" } });
    const toggle = line("PasswordLoginEnabled").getByRole<HTMLInputElement>("switch");
    await island.user.click(toggle);
    await island.user.click(await screen.findByRole("button", { name: "Cancel" }));
    await settle();
    expect([toggle.checked, puts(island).length]).toEqual([true, 0]);
    await island.user.click(toggle);
    await island.user.click(await screen.findByRole("button", { name: "Turn it off" }));
    await settle();
    expect(puts(island)).toEqual([{ key: "PasswordLoginEnabled", value: "false" }] as never);
  });

  test("for password sign-in stays on where the server says that it is the last way in", async () => {
    const island = open({ tab: "system" });
    island.answer("GET /api/option/ways_in", {
      success: false,
      message: "nobody could sign in",
      code: "last_method",
    });
    await island.user.click(line("PasswordLoginEnabled").getByRole("switch"));
    await settle();
    expect(line("PasswordLoginEnabled").getByRole("alert").textContent).toContain("nobody could sign in");
    expect(puts(island)).toEqual([]);
  });

  test("for a way in tells first whom it leaves outside, and asks nothing where that is nobody", async () => {
    const island = open({ withLater: true, tab: "system", stored: { GitHubOAuthEnabled: "true" } });
    const toggle = line("GitHubOAuthEnabled").getByRole<HTMLInputElement>("switch");
    loses(island, 3, 0);
    await island.user.click(toggle);
    const dialog = await screen.findByRole("dialog");
    expect(dialog.textContent).toContain("3 accounts have no other way to sign in");
    await island.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
    await settle();
    expect([toggle.checked, puts(island).length]).toEqual([true, 0]);
    loses(island, 0, 0);
    await island.user.click(toggle);
    await settle();
    expect(puts(island)).toEqual([{ key: "GitHubOAuthEnabled", value: "false" }] as never);
  });

  test("another host is saved once somebody has read how many passkeys it ends", async () => {
    const island = open({ tab: "system", stored: { ServerAddress: "https://old.example" } });
    const input = line("ServerAddress").getByRole("textbox");
    type(input, "https://new.example");
    loses(island, 1, 2);
    await island.user.click(bar().getByRole("button", { name: /^Save/ }));
    const dialog = await screen.findByRole("dialog", { name: "Move the site to another host?" });
    expect(dialog.textContent).toContain("1 account has no other way");
    expect(dialog.textContent).toContain("2 passkeys belong to the present host");
    await island.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
    await settle();
    expect(puts(island)).toEqual([]);
    expect(line("ServerAddress").getByRole("alert").textContent).toContain("Not saved");
    await island.user.click(bar().getByRole("button", { name: /^Save/ }));
    await island.user.click(await screen.findByRole("button", { name: "Change the address" }));
    await settle();
    expect(puts(island)).toEqual([{ key: "ServerAddress", value: "https://new.example" }] as never);
  });
});

describe("the save bar", () => {
  test("sends only what changed, one by one, what ends in Enabled first; with Ctrl Enter too", async () => {
    const island = open({ stored: { SelfUseModeEnabled: "true" } });
    let open_ = 0;
    let most = 0;
    island.answer("PUT /api/option", async () => {
      most = Math.max(most, ++open_);
      await Promise.resolve();
      open_--;
      return { success: true, message: "" };
    });
    type(line("RetryTimes").getByRole("textbox"), "2");
    type(line("TopUpLink").getByRole("textbox"), "https://shop.example.org");
    await island.user.click(line("DemoSiteEnabled").getByRole("radio", { name: "Demo site" }));
    expect(bar().getByText("4 changes")).toBeTruthy();
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    await settle();
    expect(puts(island).map(({ key }) => key)).toEqual([
      "SelfUseModeEnabled",
      "DemoSiteEnabled",
      "RetryTimes",
      "TopUpLink",
    ]);
    expect(most).toBe(1);
    expect(screen.getByText("4 changes saved")).toBeTruthy();
    expect(hasBar()).toBe(false);
    expect(line("RetryTimes").getByText("Changed")).toBeTruthy();
  });

  test("what is typed back to what is stored is no change; nothing to save is said", async () => {
    const island = open();
    const retries = line("RetryTimes").getByRole("textbox");
    type(retries, "2");
    type(retries, "0");
    expect(hasBar()).toBe(false);
    await island.user.keyboard("{Control>}{Enter}{/Control}");
    expect(screen.getByText("There is nothing to save")).toBeTruthy();
    expect(puts(island)).toEqual([]);
  });

  test("keeps what was refused, marked with its sentence, and saves the rest", async () => {
    const island = open();
    island.answer("PUT /api/option", failing(["TopUpLink"]));
    type(line("TopUpLink").getByRole("textbox"), "shop");
    type(line("RetryTimes").getByRole("textbox"), "2");
    type(line("QuotaPerUnit").getByRole("textbox"), "0");
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    // A number out of its bounds is not even sent.
    expect(puts(island).map(({ key }) => key)).toEqual(["TopUpLink", "RetryTimes"]);
    expect(line("TopUpLink").getByRole("alert").textContent).toBe("no TopUpLink");
    expect(line("TopUpLink").getByRole("textbox").getAttribute("aria-invalid")).toBe("true");
    expect(line("QuotaPerUnit").getByRole("alert").textContent).toBe(
      "The value must be a number from 1 to 1000000000",
    );
    expect(bar().getByText("2 changes")).toBeTruthy();
    expect(bar().getByText("2 refused")).toBeTruthy();
    expect(screen.getByText(/Only some changes could be saved/)).toBeTruthy();
    island.answer("PUT /api/option", failing(["TopUpLink", "QuotaPerUnit"]));
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    expect(screen.getByText("Saving failed, try again")).toBeTruthy();
  });

  test("shows old beside new, takes single changes back, discards all", async () => {
    const island = open({ stored: { RetryTimes: "1" } });
    type(line("RetryTimes").getByRole("textbox"), "2");
    type(line("TopUpLink").getByRole("textbox"), "https://shop.example.org");
    await island.user.click(bar().getByRole("button", { name: "Review" }));
    const review = within(await screen.findByRole("dialog", { name: "2 changes to save" }));
    const retries = within(review.getAllByRole("listitem")[0]!);
    expect(retries.getAllByRole("definition").map((each) => each.textContent)).toEqual([
      "1 attempts",
      "2 attempts",
    ]);
    await island.user.click(retries.getByRole("button", { name: "Revert Retries" }));
    expect(line("RetryTimes").getByRole<HTMLInputElement>("textbox").value).toBe("1");
    await island.user.click(review.getAllByRole("button", { name: "Close" })[0]!);
    await island.user.click(bar().getByRole("button", { name: "Discard" }));
    expect(line("TopUpLink").getByRole<HTMLInputElement>("textbox").value).toBe("");
    expect(puts(island)).toEqual([]);
  });

  test("of a long map the review shows what differs", () => {
    const map = Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`model-${at}`, at]));
    const [before, after] = differing(JSON.stringify(map), JSON.stringify({ ...map, "model-150": 9.5 }));
    expect(before).toContain('"model-150":150');
    expect(after).toContain('"model-150":9.5');
    expect(before.length).toBeLessThan(400);
  });

  test("leaving with changes asks; without them it does not", () => {
    open();
    const leave = () => {
      const event = new Event("beforeunload", { cancelable: true });
      window.dispatchEvent(event);
      return event.defaultPrevented;
    };
    expect(leave()).toBe(false);
    type(line("RetryTimes").getByRole("textbox"), "2");
    expect(leave()).toBe(true);
    type(line("RetryTimes").getByRole("textbox"), "0");
    expect(leave()).toBe(false);
  });

  test("payments are not saved before the server has an address", async () => {
    const island = open({ withLater: true, tab: "system" });
    type(line("EpayId").getByRole("textbox"), "1001");
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    expect(line("EpayId").getByRole("alert").textContent).toContain("Enter the server address first");
    expect(puts(island)).toEqual([]);
    await island.user.click(line("ServerAddress").getByRole("button", { name: /^Use http/ }));
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    expect(puts(island).map(({ key }) => key)).toEqual(["EpayId", "ServerAddress"]);
  });
});

describe("controls by kind", () => {
  test.each([
    ["en", "system", "TopupGroupRatio", "Invalid JSON: line 1, column 2"],
    ["zh", "system", "TopupGroupRatio", "不是合法的 JSON 字符串：第 1 行第 2 列"],
  ] as const)(
    "a map's raw text in %s is checked with the specified sentence",
    async (language, tab, key, text) => {
      const island = open({ withLater: true, tab, language });
      await settle();
      await island.user.click(line(key).getByRole("tab", { name: language === "zh" ? "文本" : "Text" }));
      type(line(key).getByRole("textbox"), "{x");
      await waitFor(() => {
        if (!line(key).queryByText(text)) throw new Error(`it does not say ${text}`);
      });
    },
  );

  test.each([
    ["en", "TopupGroupRatio", "The top-up group ratio is not a legal JSON string"],
    ["zh", "TopupGroupRatio", "充值分组倍率不是合法的 JSON 字符串"],
    ["zh", "ServerAddress", "不是合法的网址，应以 http:// 或 https:// 开头"],
    ["zh", "oidc.well_known", "Well-Known URL 必须以 http:// 或 https:// 开头"],
  ] as const)("leaving the field, in %s: %s", async (language, key, text) => {
    const island = open({ withLater: true, tab: "system", language, stored: { TopupGroupRatio: "{}" } });
    await settle();
    const raw = line(key).queryByRole("tab", { name: language === "zh" ? "文本" : "Text" });
    if (raw) await island.user.click(raw);
    const input = line(key).getByRole("textbox");
    await island.user.type(input, "x");
    await island.user.tab();
    await island.user.click(document.body);
    await waitFor(() => {
      const said = line(key).queryByRole("alert")?.textContent;
      if (said !== text) throw new Error(`it says ${said}`);
    });
  });

  test("a name that stands twice in a map is not saved: one of the two would be lost", async () => {
    const island = open({
      withLater: true,
      tab: "system",
      stored: { ServerAddress: "https://ai.example.org" },
    });
    await settle();
    const map = line("TopupGroupRatio");
    await island.user.click(map.getByRole("tab", { name: "Text" }));
    type(map.getByRole("textbox"), '{"default":1,"default":2}');
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    expect(map.getByRole("alert").textContent).toBe("“default” appears twice (line 1)");
    expect(puts(island)).toEqual([]);
  });

  test("a row of a map is a change of the option", async () => {
    const island = open({
      withLater: true,
      tab: "system",
      stored: { ServerAddress: "https://ai.example.org" },
    });
    await settle();
    const map = line("TopupGroupRatio");
    type(map.getByRole("textbox", { name: "Value, row 1" }), "2");
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    expect(puts(island)).toEqual([{ key: "TopupGroupRatio", value: expect.anything() }] as never);
    expect(JSON.parse((puts(island)[0] as unknown as { value: string }).value)).toMatchObject({
      default: 2,
    });
  });

  test("what somebody else stored meanwhile in the same map or list stays stored", async () => {
    const stored: NonNullable<OpenOptions["stored"]> = {
      ServerAddress: "https://ai.example.org",
      TopupGroupRatio: '{"default":1}',
      EmailDomainWhitelist: "gmail.com,old.example",
    };
    const island = open({ withLater: true, tab: "system", stored });
    const now = () => [
      ...rowsOf(stored, { isFull: true }).filter(({ key }) => !(key in stored)),
      ...laterRows(stored),
    ];
    island.answer("GET /api/option/rows", () => ({ success: true, data: now() }));
    await settle();
    type(line("TopupGroupRatio").getByRole("textbox", { name: "Value, row 1" }), "2");
    await island.user.type(line("EmailDomainWhitelist").getByRole("textbox"), "mine.example{Enter}");
    stored.TopupGroupRatio = '{"default":1,"vip":0.5}';
    stored.EmailDomainWhitelist = "gmail.com,theirs.example";
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    const sent = Object.fromEntries(
      (puts(island) as { key: string; value?: string }[]).map(({ key, value = "" }) => [key, value]),
    );
    expect(JSON.parse(sent.TopupGroupRatio ?? "")).toEqual({ default: 2, vip: 0.5 });
    expect(sent.EmailDomainWhitelist).toBe("gmail.com,mine.example,theirs.example");
    expect(hasBar()).toBe(false);
  });

  test("a secret is set or not set, replaced, emptied, never shown", async () => {
    const island = open({ tab: "system", stored: { SMTPToken: "hunter2" } });
    await settle();
    expect(document.body.textContent).not.toContain("hunter2");
    const token = line("SMTPToken");
    expect(token.getByText("Set")).toBeTruthy();
    await island.user.click(token.getByRole("button", { name: "Empty Password" }));
    expect(token.getByText("Will be emptied")).toBeTruthy();
    await island.user.click(token.getByRole("button", { name: "Keep Password" }));
    expect(hasBar()).toBe(false);
    await island.user.click(token.getByRole("button", { name: "Replace Password" }));
    const input = document.querySelector<HTMLInputElement>("#SMTPToken input");
    expect(input?.type).toBe("password");
    await island.user.type(input!, "new");
    // Emptied again means keep.
    await island.user.clear(input!);
    expect(hasBar()).toBe(false);
    await island.user.type(input!, "better");
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    expect(puts(island)).toEqual([{ key: "SMTPToken", value: "better" }] as never);
    expect(token.getByText("Set")).toBeTruthy();
  });

  test("domains are tags: none twice, none that is no domain", async () => {
    const island = open({ withLater: true, tab: "system", stored: { EmailDomainWhitelist: "gmail.com" } });
    await settle();
    const domains = line("EmailDomainWhitelist");
    const input = domains.getByRole("textbox");
    await island.user.type(input, "gmail.com{Enter}");
    expect(domains.getByRole("alert").textContent).toBe("gmail.com is in the list already");
    await island.user.clear(input);
    await island.user.type(input, "nonsense{Enter}");
    expect(domains.getByRole("alert").textContent).toBe("nonsense is not a domain such as example.com");
    await island.user.clear(input);
    await island.user.type(input, "example.org,");
    await island.user.click(domains.getByRole("button", { name: "Remove gmail.com" }));
    await island.user.click(bar().getByRole("button", { name: "Save" }));
    await settle();
    expect(puts(island)).toEqual([{ key: "EmailDomainWhitelist", value: "example.org" }] as never);
  });

  test("usage mode is one choice over two options", async () => {
    const island = open();
    const mode = line("SelfUseModeEnabled");
    expect(mode.getByRole<HTMLInputElement>("radio", { name: "External operation" }).checked).toBe(true);
    await island.user.click(mode.getByRole("radio", { name: "Self-use" }));
    expect(bar().getByText("1 change")).toBeTruthy();
    await island.user.click(mode.getByRole("radio", { name: "External operation" }));
    expect(hasBar()).toBe(false);
  });
});

describe("the search", () => {
  const keysOf = (question: string) =>
    findSettings(rowsOf({}, { isFull: true }), question).map(({ key }) => key);

  test.each([
    ["RetryTimes", "RetryTimes"],
    ["retry times", "RetryTimes"],
    ["重试", "RetryTimes"],
    ["shiqu", "site.time_zone"],
    ["sq", "site.time_zone"],
    ["smtp port", "SMTPPort"],
    ["sensitive", "SensitiveWords"],
    ["敏感词", "SensitiveWords"],
    ["mgc", "SensitiveWords"],
    ["ping_interval", "general_setting.ping_interval_seconds"],
  ])("%s finds %s", (question, key) => {
    expect(keysOf(question)).toContain(key);
  });

  test.each([
    ["shiqu", "site.time_zone"],
    ["retries", "RetryTimes"],
    ["SMTPPort", "SMTPPort"],
    ["敏感词", "SensitiveWords"],
  ])("%s finds %s before whatever else has the word", (question, key) => {
    expect(keysOf(question)[0]).toBe(key);
  });

  test("finds every option by its key", () => {
    expect(rowsOf({}).filter(({ key }) => !keysOf(key).includes(key))).toEqual([]);
  });

  test.each(["en", "zh"] as const)(
    "shows hits of every tab under its name in %s, and edits them there",
    async (language) => {
      const island = open({ language });
      await island.user.type(screen.getByRole("searchbox"), "smtp");
      const name = language === "en" ? "System · Mail server (SMTP)" : "系统 · 邮件服务器（SMTP）";
      const card = within(await screen.findByRole("region", { name }));
      type(card.getByDisplayValue("587"), "465");
      await island.user.clear(screen.getByRole("searchbox"));
      // The change is kept although its option is out of sight.
      await island.user.keyboard("{Control>}{Enter}{/Control}");
      await settle();
      expect(puts(island)).toEqual([{ key: "SMTPPort", value: "465" }] as never);
    },
  );

  test("stands in the address, so that it can be shared; a tab ends it", async () => {
    const island = open({ url: "/setting?tab=models&q=smtp" });
    await screen.findByRole("region", { name: "System · Mail server (SMTP)" });
    expect(screen.getByRole<HTMLInputElement>("searchbox").value).toBe("smtp");
    await island.user.type(screen.getByRole("searchbox"), " port");
    expect(location.search).toBe("?tab=models&q=smtp+port");
    await island.user.click(screen.getByRole("link", { name: "Other" }));
    expect(location.search).toBe("?tab=other");
  });

  test("says so where nothing has the words", async () => {
    const island = open();
    await island.user.type(screen.getByRole("searchbox"), "nonsense");
    expect(await screen.findByText(/No setting has these words/)).toBeTruthy();
  });
});

describe("tabs and addresses", () => {
  test("another tab comes with one call, stands in the address, and keeps what was typed", async () => {
    const island = open();
    type(line("RetryTimes").getByRole("textbox"), "2");
    await island.user.click(screen.getByRole("link", { name: "Models" }));
    await waitFor(() => line("relay.deadline_seconds"));
    expect(location.search).toBe("?tab=models");
    await island.user.click(screen.getByRole("link", { name: "Operation" }));
    expect(location.search).toBe("");
    expect(line("RetryTimes").getByRole<HTMLInputElement>("textbox").value).toBe("2");
    expect(island.requests.filter(({ path }) => path === "/api/option/rows").length).toBe(1);
  });

  test("an option in the address is focused and marked, now and when the address changes", async () => {
    open({ url: "/setting#RetryTimes" });
    await settle();
    expect(document.activeElement === line("RetryTimes").getByRole("textbox")).toBe(true);
    expect(document.getElementById("RetryTimes")?.dataset.marked).toBe("");
    await act(async () => {
      history.replaceState(null, "", "/setting#general_setting.docs_link");
      window.dispatchEvent(new Event("hashchange"));
    });
    expect(document.activeElement === line("general_setting.docs_link").getByRole("textbox")).toBe(true);
  });

  test("the palette finds a setting and opens it at its place", async () => {
    const island = open({ tab: "ratelimit" });
    await island.user.keyboard("{Control>}k{/Control}");
    for (const call of ["channel/search", "token/search", "user/search", "channel/models_enabled"])
      island.answer(`GET /api/${call}`, { success: true, data: call === "user/search" ? { items: [] } : [] });
    // Others stand in the settings themselves.
    type(within(await screen.findByRole("dialog")).getByRole("combobox"), "shiqu");
    const found = await waitFor(() => {
      const lines = [...document.querySelectorAll("dialog [role=option]")];
      const place = lines.find((each) => each.textContent === "Time zoneSetting");
      if (!place) throw new Error(`found ${lines.map((each) => each.textContent).join()}`);
      return place;
    });
    let to = "";
    const assign = spyOn(location, "assign").mockImplementation((url) => void (to = String(url)));
    fireEvent.click(found);
    assign.mockRestore();
    expect(to).toBe("/setting?tab=other#site.time_zone");
  });
});
