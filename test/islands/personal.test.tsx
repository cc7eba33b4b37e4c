// The profile as its owner meets it: password, token, notices, prices, models, shortcuts, invitation, the way out.
import { beforeEach, describe, expect, spyOn, test } from "bun:test";
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import Personal from "../../islands/screens/personal.tsx";
import type { PersonalData } from "../../islands/screens/personal.tsx";
import { modelGroups } from "../../islands/screens/personal/models.tsx";
import { prefixOf } from "../../src/shared/model-prefix.ts";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const MODELS = [
  "claude-3-5-haiku",
  "claude-3-5-sonnet",
  "dall-e-3",
  "deepseek-chat",
  "deepseek-reasoner",
  "gpt-4o",
  "gpt-4o-mini",
  "gemini-1.5-pro",
  "gemini-2.0-flash",
  "meta-llama/llama-3-8b",
  "meta-llama/llama-3-70b",
  "o1",
];

let left: string[] = [];

beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
  left = [];
  interceptLeaving(
    (url) => left.push(url),
    () => undefined,
  );
});

function open(part: Partial<PersonalData> = {}, options: IslandOptions = {}): Island {
  const { self, ...rest } = part;
  const data: PersonalData = {
    self: {
      password: "",
      original_password: "",
      status: 1,
      verification_code: "",
      access_token: null,
      aff_code: "aB3x",
      aff_count: 0,
      aff_quota: 0,
      aff_history_quota: 0,
      inviter_id: 0,
      DeletedAt: null,
      id: 7,
      username: "ada",
      display_name: "Ada",
      role: 1,
      group: "default",
      email: "",
      quota: 5_000_000,
      used_quota: 250_000,
      request_count: 3,
      github_id: "ada-hub",
      oidc_id: "",
      wechat_id: "",
      telegram_id: "",
      linux_do_id: "",
      setting: "",
      limits: null,
      ...self,
    },
    invitation: { code: "aB3x", count: 0, quota: 0, history: 0 },
    models: MODELS,
    modelCount: MODELS.length,
    isExpanded: false,
    hasSecret: false,
    threshold: 750_000,
    hasPassword: true,
    hasAccessToken: false,
    security: {
      factor: { enabled: false, locked_until: 0, backup_codes_left: 0, created_at: 0 },
      passkeys: [],
      bindings: [],
    },
    devices: [],
    limits: null,
    ...rest,
  };
  const island = renderScreen(Personal, { url: "/personal", data, ...options });
  island.answer("PUT /api/user/self", { success: true });
  island.answer("PUT /api/user/setting", { success: true, message: "" });
  island.answer("POST /api/user/setting/test", { success: true });
  island.answer("GET /api/pricing", {
    success: true,
    data: [
      { model_name: "gpt-4o", quota_type: 0, model_ratio: 1.25, model_price: 0, completion_ratio: 4 },
      { model_name: "dall-e-3", quota_type: 1, model_ratio: 0, model_price: 0.04, completion_ratio: 0 },
    ],
    group_ratio: { default: 2 },
    usable_group: {},
  });
  return island;
}

const section = (name: string) => within(screen.getByRole("region", { name }));
const writes = (island: Island) => island.requests.filter(({ method }) => method !== "GET");

async function retype(island: Island, input: HTMLElement, text: string) {
  await island.user.clear(input);
  if (text !== "") await island.user.type(input, text);
}

describe("the account", () => {
  test("a display name is saved without a password; the role is a word", async () => {
    const island = open();
    const card = section("Identity");
    expect(card.getByText("User")).toBeTruthy();
    await retype(island, card.getByRole("textbox", { name: "Display name" }), "Countess{Enter}");
    await settle();
    expect(writes(island)[0]?.body).toEqual({ display_name: "Countess" });
  });

  test.each([
    ["", "longenough", "longenough", "Enter your current password"],
    ["old password", "", "", "Enter a new password"],
    ["old password", "short", "short", "A password must have 8 to 64 characters"],
    ["old password", "x".repeat(65), "x".repeat(65), "A password must have 8 to 64 characters"],
    ["old password", "old password", "old password", "The new password must differ from the old one"],
    ["old password", "new password", "new passwort", "The two passwords do not match"],
  ])("old %p, new %p, again %p is refused", async (old, next, again, problem) => {
    const island = open();
    const card = section("Password");
    // Something has to be typed before the button works.
    await retype(island, card.getByLabelText(/^Confirm the new password/), `${again}x`);
    await retype(island, card.getByLabelText(/^Current password/), old);
    await retype(island, card.getByLabelText(/^New password\b(?! again)/), next);
    await retype(island, card.getByLabelText(/^Confirm the new password/), again);
    // An empty form has its button switched off; the rules hold without it.
    const form = card.getByLabelText(/^Confirm the new password/).closest("form");
    if (form) fireEvent.submit(form);
    await settle();
    expect(card.getByText(problem)).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("a new password goes with the old one, and both leave the form", async () => {
    const island = open();
    const card = section("Password");
    await island.user.type(card.getByLabelText(/^Current password/), "old password");
    await island.user.type(card.getByLabelText(/^New password\b(?! again)/), "new password");
    await island.user.type(card.getByLabelText(/^Confirm the new password/), "new password{Enter}");
    await settle();
    expect(writes(island)[0]?.body).toEqual({
      original_password: "old password",
      password: "new password",
    });
    expect((card.getByLabelText(/^Current password/) as HTMLInputElement).value).toBe("");
    expect(screen.getByText("Password changed")).toBeTruthy();
  });

  test("who has no password yet is not asked for one", () => {
    open({ hasPassword: false });
    expect(section("Password").queryByLabelText(/^Current password/)).toBeNull();
  });

  test("the system token is shown once; a second one asks first", async () => {
    const island = open();
    island.answer("GET /api/user/token", { success: true, data: "secret-token" });
    const card = section("System access token");
    await island.user.click(card.getByRole("button", { name: "Make a token" }));
    await settle();
    expect(card.getByText("secret-token")).toBeTruthy();
    await island.user.click(card.getByRole("button", { name: "Close" }));
    expect(card.queryByText("secret-token")).toBeNull();
    await island.user.click(card.getByRole("button", { name: "Renew the token" }));
    const dialog = await screen.findByRole("dialog", { name: "Renew the system access token?" });
    await island.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
    expect(island.requests.filter(({ path }) => path === "/api/user/token")).toHaveLength(1);
  });

  test("single-key shortcuts are switched off and on", async () => {
    const island = open();
    const toggle = screen.getByRole("switch", { name: /^Single-key shortcuts/ });
    await island.user.click(toggle);
    expect(localStorage.getItem("shortcuts")).toBe("off");
    await island.user.click(toggle);
    expect(localStorage.getItem("shortcuts")).toBeNull();
  });

  test("the account goes only when its name is typed, and says what goes with it", async () => {
    const island = open();
    island.answer("DELETE /api/user/self", { success: true });
    await island.user.click(section("Danger zone").getByRole("button", { name: "Delete my account" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete your account?" });
    expect(dialog.textContent).toContain("$10.00 is lost");
    await island.user.type(within(dialog).getByRole("textbox"), "Ada{Enter}");
    await settle();
    expect(writes(island)).toEqual([]);
    await retype(island, within(dialog).getByRole("textbox"), "ada{Enter}");
    await settle();
    expect(writes(island)).toMatchObject([{ method: "DELETE", path: "/api/user/self" }]);
    expect(left).toEqual(["/login"]);
  });

  test("erasing is a second, heavier way out, and says what stays", async () => {
    const island = open();
    island.answer("DELETE /api/user/self", { success: true });
    await island.user.click(section("Danger zone").getByRole("button", { name: "Delete and erase my data" }));
    const dialog = await screen.findByRole("dialog", { name: "Delete your account and erase your data?" });
    expect(dialog.textContent).toContain("only amounts and numbers stay for the books");
    await island.user.type(within(dialog).getByRole("textbox"), "ada{Enter}");
    await settle();
    expect(writes(island)).toMatchObject([
      { method: "DELETE", path: "/api/user/self", body: { erase: true } },
    ]);
  });

  test("one's own data comes as a file, and a refusal never does", async () => {
    spyOn(URL, "createObjectURL").mockImplementation(() => "blob:x");
    const click = spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => undefined);
    const island = open();
    island.answer("GET /api/user/self/export", { success: false, code: "internal_error", message: "No." });
    const button = section("Your data").getByRole("button", { name: "Download my data" });
    await island.user.click(button);
    // The answer's body is read first, which no settling waits for.
    expect([(await screen.findAllByText("No.")).length, click.mock.calls.length]).toEqual([1, 0]);
    const headers = { "content-disposition": 'attachment; filename="my-data-2026-11-27.json"' };
    island.answer("GET /api/user/self/export", new Response("{}", { headers }));
    await island.user.click(button);
    await waitFor(() =>
      expect(click.mock.contexts[0]).toMatchObject({ download: "my-data-2026-11-27.json" }),
    );
    click.mockRestore();
  });

  test("root has no way out", () => {
    open({ self: { role: 100 } as PersonalData["self"] });
    expect(screen.queryByRole("region", { name: "Danger zone" })).toBeNull();
  });
});

describe("notices", () => {
  test("the threshold in force stands there and says whose it is, until one is chosen", async () => {
    const island = open({ threshold: 250_000 });
    const card = section("Notices");
    expect((card.getByRole("textbox", { name: /^Warn below/ }) as HTMLInputElement).value).toBe("0.5");
    const note = /the site's default is in force: \$0\.50/;
    expect(card.queryByText(note)).not.toBeNull();
    await retype(island, card.getByRole("textbox", { name: /^Warn below/ }), "2");
    await island.user.click(card.getByRole("button", { name: "Save" }));
    await settle();
    expect(card.queryByText(note)).toBeNull();
  });

  test("one's own threshold has no such note", () => {
    open({
      threshold: 1_000_000,
      self: { setting: '{"quota_warning_threshold":1000000}' } as PersonalData["self"],
    });
    expect((section("Notices").getByRole("textbox", { name: /^Warn below/ }) as HTMLInputElement).value).toBe(
      "2",
    );
    expect(section("Notices").queryByText(/in force/)).toBeNull();
  });

  test("where nobody has chosen one, that is said, and the field begins empty", () => {
    open({ threshold: 0 });
    expect(section("Notices").queryByText(/The site has no default/)).not.toBeNull();
    expect((section("Notices").getByRole("textbox", { name: /^Warn below/ }) as HTMLInputElement).value).toBe(
      "",
    );
  });

  test("the specification's choices stand as money, and are saved as units", async () => {
    const island = open();
    const card = section("Notices");
    expect((card.getByRole("textbox", { name: /^Warn below/ }) as HTMLInputElement).value).toBe("1.5");
    const choices = within(card.getByRole("group", { name: "Common thresholds" }));
    expect(choices.getAllByRole("button").map((each) => each.textContent)).toEqual([
      "$0.2",
      "$1",
      "$2",
      "$10",
    ]);
    await island.user.click(choices.getByRole("button", { name: "$10" }));
    await island.user.click(card.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island)[0]?.body).toEqual({
      notify_type: "email",
      quota_warning_threshold: 5_000_000,
      notification_email: "",
      accept_unset_model_ratio_model: false,
    });
  });

  test("a webhook has to be https; its secret is sent and then gone from the form", async () => {
    const island = open();
    const card = section("Notices");
    await island.user.click(card.getByRole("radio", { name: "Webhook" }));
    const url = card.getByRole("textbox", { name: /^Webhook address/ });
    await island.user.type(url, "http://h.example/");
    await island.user.click(card.getByRole("button", { name: "Save" }));
    await settle();
    expect(card.getByText("A webhook address starts with https://")).toBeTruthy();
    await retype(island, url, "https://h.example/x");
    const secret = card.getByLabelText("Secret (optional)");
    await island.user.type(secret, "s3cret");
    await island.user.click(card.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island)[0]?.body).toMatchObject({
      notify_type: "webhook",
      webhook_url: "https://h.example/x",
      webhook_secret: "s3cret",
    });
    expect((secret as HTMLInputElement).value).toBe("");
    expect(card.getByText("Set; leave empty to keep it")).toBeTruthy();
  });

  test("a webhook's secret is removed, after asking", async () => {
    const island = open({
      hasSecret: true,
      self: {
        setting: '{"notify_type":"webhook","webhook_url":"https://h.example/x"}',
      } as PersonalData["self"],
    });
    const card = section("Notices");
    await island.user.click(card.getByRole("button", { name: "Remove the secret" }));
    const dialog = within(await screen.findByRole("dialog", { name: "Remove the webhook secret?" }));
    await island.user.click(dialog.getByRole("button", { name: "Cancel" }));
    await settle();
    expect(writes(island)).toEqual([]);
    await island.user.click(card.getByRole("button", { name: "Remove the secret" }));
    await island.user.click(
      within(await screen.findByRole("dialog")).getByRole("button", { name: "Remove the secret" }),
    );
    await settle();
    expect(writes(island)[0]?.body).toMatchObject({ webhook_secret: "" });
    expect(card.queryByText("Set; leave empty to keep it")).toBeNull();
  });

  test.each([
    ["0", "The threshold must be greater than 0"],
    ["-3", "The threshold must be greater than 0"],
    ["", "The threshold must be greater than 0"],
  ])("a threshold of %p is refused, for a test as well", async (text, problem) => {
    const island = open();
    const card = section("Notices");
    await retype(island, card.getByRole("textbox", { name: /^Warn below/ }), text);
    await island.user.click(card.getByRole("button", { name: "Send a test" }));
    await settle();
    expect(card.getByText(problem)).toBeTruthy();
    expect(writes(island)).toEqual([]);
  });

  test("a test sends what is typed, saves nothing, and shows the receiver's refusal", async () => {
    const island = open();
    const card = section("Notices");
    await island.user.type(card.getByRole("textbox", { name: /^Email for notices/ }), "a@b.example");
    await island.user.click(card.getByRole("button", { name: "Send a test" }));
    await settle();
    expect(writes(island)).toMatchObject([
      { method: "POST", path: "/api/user/setting/test", body: { notification_email: "a@b.example" } },
    ]);
    expect(screen.getByText("The test email is on its way")).toBeTruthy();
    expect((card.getByRole("button", { name: "Save" }) as HTMLButtonElement).disabled).toBe(false);
    island.answer("POST /api/user/setting/test", {
      success: false,
      message: "no server",
      code: "smtp_missing",
    });
    await island.user.click(card.getByRole("button", { name: "Send a test" }));
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("no server");
  });

  test("unpriced models are accepted at once, undone at once, and remembered by the other card", async () => {
    const island = open();
    await island.user.click(screen.getByRole("switch", { name: /^Accept models without a price/ }));
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ accept_unset_model_ratio_model: true });
    const card = section("Notices");
    await island.user.click(card.getByRole("button", { name: "$2" }));
    await island.user.click(card.getByRole("button", { name: "Save" }));
    await settle();
    expect(writes(island).at(-1)?.body).toMatchObject({ accept_unset_model_ratio_model: true });
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await settle();
    expect(writes(island).at(-1)?.body).toEqual({ accept_unset_model_ratio_model: false });
  });
});

describe("models", () => {
  const shown = () =>
    section("Available models")
      .getAllByRole("listitem")
      .map((item) => item.textContent);

  test("ten first, gpt before the others; then all by the beginning of their names, and it is remembered", async () => {
    const island = open();
    const card = section("Available models");
    expect(shown()).toHaveLength(10);
    expect(shown().slice(0, 2)).toEqual(["gpt-4o", "gpt-4o-mini"]);
    await island.user.click(card.getByRole("button", { name: "Show all 12 models" }));
    expect(shown()).toHaveLength(12);
    expect(card.getAllByRole("heading", { level: 3 }).map((each) => each.textContent)).toEqual([
      "gpt · 2",
      "claude · 2",
      "deepseek · 2",
      "gemini · 2",
      "meta-llama · 2",
      "Other · 2",
    ]);
    expect(localStorage.getItem("modelsExpanded")).toBe("true");
    await island.user.click(card.getByRole("button", { name: "Show fewer" }));
    expect(localStorage.getItem("modelsExpanded")).toBe("false");
  });

  test("as it was left, it comes up", () => {
    open({ isExpanded: true });
    expect(shown()).toHaveLength(12);
  });

  test("a search narrows; a click copies; a look shows what it costs in the own group", async () => {
    const island = open();
    const card = section("Available models");
    await island.user.type(card.getByRole("searchbox", { name: "Search models" }), "4O");
    expect(shown()).toEqual(["gpt-4o", "gpt-4o-mini"]);
    await island.user.click(card.getByRole("button", { name: "gpt-4o" }));
    expect(await navigator.clipboard.readText()).toBe("gpt-4o");
    await settle();
    expect(card.getByRole("button", { name: "gpt-4o" }).title).toContain("$5.00 in, $20.00 out");
    await retype(island, card.getByRole("searchbox", { name: "Search models" }), "nothing like it");
    expect(card.getByText("No model matches")).toBeTruthy();
  });

  test("what did not come with the page is fetched when it is asked for", async () => {
    const island = open({ modelCount: 14 });
    island.answer("GET /api/user/models", { success: true, data: [...MODELS, "o3", "zeta"] });
    const card = section("Available models");
    await island.user.type(card.getByRole("searchbox", { name: "Search models" }), "zeta");
    await settle();
    expect(shown()).toEqual(["zeta"]);
  });

  test.each([
    ["gpt-4o", "gpt"],
    ["o1", "o"],
    ["meta-llama/llama-3", "meta-llama"],
    ["@cf/qwen", "@cf"],
    ["4ever", ""],
    ["通义千问-7b", "通义千问"],
  ])("%s begins with %p", (model, prefix) => expect(prefixOf(model)).toBe(prefix));

  test("twenty thousand models are grouped, each once", () => {
    const many = Array.from({ length: 20_000 }, (_, index) => `model-${index}`);
    const groups = modelGroups(many);
    expect(groups).toHaveLength(1);
    expect(new Set(groups[0]?.models).size).toBe(20_000);
  });
});

describe("devices", () => {
  const device = (id: string, current: boolean) => ({
    id,
    current,
    device: current ? "Firefox 132 · Linux" : "Chrome 131 · Windows",
    ip: "203.0.113.9",
    method: "password",
    provider: "",
    created_at: 1_763_596_800,
    last_seen_at: 1_763_596_800,
    expires_at: 1_766_188_800,
  });

  test("this one has no way out, another one is signed out by its id, all others after a question", async () => {
    const devices = [device("a", true), device("b", false)];
    const island = open({ devices });
    island.answer("GET /api/user/sessions", { success: true, data: devices });
    island.answer("DELETE /api/user/sessions/b", { success: true });
    island.answer("POST /api/user/sessions/revoke-others", { success: true });
    await settle();
    const card = screen.getByRole("region", { name: "Devices" });
    expect(within(card).getAllByRole("listitem")[0]?.textContent).toContain("This device");
    expect(within(card).queryByRole("button", { name: "Sign out Firefox 132 · Linux" })).toBeNull();
    await island.user.click(within(card).getByRole("button", { name: "Sign out Chrome 131 · Windows" }));
    await settle();
    await island.user.click(within(card).getByRole("button", { name: "Sign out all others" }));
    const dialog = await screen.findByRole("dialog");
    await island.user.click(within(dialog).getByRole("button", { name: "Sign out all others" }));
    await settle();
    const sent = island.requests.filter(({ method }) => method !== "GET");
    expect(sent.map(({ method, path }) => `${method} ${path}`)).toEqual([
      "DELETE /api/user/sessions/b",
      "POST /api/user/sessions/revoke-others",
    ]);
  });
});

describe("budget and limits", () => {
  test("are shown with what is spent and when they open anew; without any there is no such section", () => {
    const limits = {
      budget_quota: 1_000_000,
      budget_period: "week",
      rpm_limit: 30,
      tpm_limit: 0,
      max_concurrency: 2,
      budget_used: 1_000_000,
      budget_resets_at: 1_795_000_000,
    } as const;
    open({ limits });
    const part = section("Budget and limits");
    expect(part.getByRole("meter").getAttribute("aria-valuetext")).toBe("$2.00 / $2.00");
    expect(part.getByText("Opens anew").nextElementSibling?.textContent).toStartWith("2026-11-18");
    expect(part.getByText("Requests a minute").nextElementSibling?.textContent).toBe("30");
    expect(part.queryByText("Tokens a minute")).toBeNull();
    open();
    expect(screen.queryAllByRole("region", { name: "Budget and limits" })).toHaveLength(1);
  });
});
