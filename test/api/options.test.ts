// Options over the wire: typed, validated, secrets in and never out, guards, reset.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { definitionOf, isOptionKey, optionDefinitions } from "../../src/core/options/definitions.ts";
import { createOptions } from "../../src/core/options/store.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

/** A text that every secret takes: signing secrets have a form of their own. */
const hiddenIn = (key: string): string =>
  key === "StripeWebhookSecret" ? `whsec_hidden-${key}-and-more` : `hidden-${key}`;

describe.each(DATABASE_KINDS)("options on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  const put = (key: string, value: unknown) =>
    app.call<{ success: boolean; code?: string; message: string }>(
      "PUT",
      "/api/option/",
      { key, value },
      root,
    );

  beforeAll(async () => {
    app = await startTestApp({ database });
    root = await app.createUser({ role: 100 });
  });
  afterAll(() => app.close());

  test("no secret ever comes out, by its value or by its key", async () => {
    const secrets = Object.entries(optionDefinitions).filter(([, each]) => "secret" in each && each.secret);
    expect(secrets.length).toBeGreaterThan(8);
    for (const [key] of secrets) {
      expect((await put(key, hiddenIn(key))).body.success).toBe(true);
    }
    const answer = await app.call<{ data: { key: string }[]; secrets_set: string[] }>(
      "GET",
      "/api/option/",
      undefined,
      root,
    );
    const status = await app.call("GET", "/api/status");
    expect(answer.text).not.toContain("hidden-");
    expect(status.text).not.toContain("hidden-");
    expect(answer.body.secrets_set.toSorted()).toEqual(secrets.map(([key]) => key).toSorted());
    const listed = new Set(answer.body.data.map((each) => each.key));
    for (const [key] of secrets) expect(listed.has(key)).toBe(false);
    const { options } = app.deps.db.t;
    const rows = await app.deps.db.orm.select().from(options).where(eq(options.key, "SMTPToken"));
    expect(rows[0]?.value).not.toContain("hidden");
    expect(app.deps.options.get("SMTPToken")).toBe("hidden-SMTPToken");
  });

  test("wrong values are refused by kind and change nothing", async () => {
    const cases: [string, unknown, string][] = [
      ["RetryTimes", "-1", "option_not_int"],
      ["RetryTimes", "1e309", "option_not_int"],
      ["RetryTimes", "NaN", "option_not_int"],
      ["RetryTimes", "2.5", "option_not_int"],
      ["QuotaForNewUser", "9223372036854775808", "option_not_int"],
      ["Price", "-0.1", "option_not_number"],
      ["ModelRatio", "{broken", "option_not_json"],
      ["ModelRatio", "[1]", "option_not_map"],
      ["ModelRatio", '{"m": -1}', "option_bad_ratio"],
      ["ModelRatio", '{"m": "1"}', "option_bad_ratio"],
      ["GroupRatio", '{"vip": -0.5}', "option_group_ratio_negative"],
      ["PriceRules", '{"gpt-4o": {"when": [{"over": 1}]}}', "option_bad_price_rules"],
      ["PriceRules", '{"gpt-4o": {"call": 1}}', "option_bad_price_rules"],
      ["PriceRules", '{"gpt-4o": {"tools": {"web_search": -1}}}', "option_bad_price_rules"],
      ["PriceRules", '{"nobody-prices-this": {"unit": "second"}}', "option_rules_without_price"],
      ["ToolPrices", '{"web_search": "10"}', "option_bad_ratio"],
      ["ModelRequestRateLimitGroup", '{"vip": [0, 0]}', "option_bad_rate_limit"],
      ["ModelRequestRateLimitGroup", '{"vip": [1]}', "option_bad_rate_limit"],
      ["Chats", '[{"a": "b", "c": "d"}]', "option_bad_chat"],
      ["Chats", '[{"a": "javascript:alert(1)"}]', "option_chat_scheme"],
      ["Chats", '[{"ok": "https://weir.example"}, {"a": " DATA:text/html,x"}]', "option_chat_scheme"],
      ["Chats", '[{"a": "vb\\tscript:x"}]', "option_chat_scheme"],
      ["Chats", '[{"a": "file:///etc/passwd"}]', "option_chat_scheme"],
      ["Chats", '[{"a": "blob:https://weir.example/1"}]', "option_chat_scheme"],
      ["Chats", '[{"a": "about:blank"}]', "option_chat_scheme"],
      ["ServerAddress", "javascript:alert(1)", "option_not_url"],
      ["DrawingEnabled", "maybe", "option_not_bool"],
      ["DataExportDefaultTime", "year", "option_not_one_of"],
      ["gemini.thinking_adapter_budget_tokens_percentage", "0.05", "option_not_number"],
      ["claude.model_headers_settings", '{"m": {"bad header\\n": ["x"]}}', "option_bad_text"],
      ["relay.abandoned_read_seconds", "-1", "option_not_int"],
      ["relay.abandoned_read_seconds", "3601", "option_not_int"],
      ["relay.max_answer_mb", "0", "option_not_int"],
      ["relay.max_answer_mb", "1025", "option_not_int"],
      ["NoSuchOption", "1", "option_unknown"],
      ["GitHubOAuthEnabled", "true", "option_needs_github"],
      ["TurnstileCheckEnabled", "true", "option_needs_turnstile"],
    ];
    await put("GitHubClientSecret", "");
    await put("TurnstileSecretKey", "");
    const before = (await app.call("GET", "/api/option/", undefined, root)).text;
    for (const [key, value, code] of cases) {
      const answer = await put(key, value);
      expect([key, value, answer.body.success, answer.body.code]).toEqual([key, value, false, code]);
    }
    expect((await app.call("GET", "/api/option/", undefined, root)).text).toBe(before);
    expect((await app.call("PUT", "/api/option/", "{", root)).status).toBe(400);
  });

  test("a missing or null value means empty; a secret stays as it is, and the call succeeds", async () => {
    // The form in which older consoles send a field that they never got: without the member, or with null.
    const bodies = (key: string) => [{ key }, { key, value: null }];
    const send = (body: unknown) =>
      app.call<{ success: boolean; code?: string }>("PUT", "/api/option/", body, root);
    // Emptiness is read before any database is asked: PostgreSQL meets every third option, all of them in the long run.
    const isSample = database === "postgres" && Bun.env["WEIR_LONG"] !== "1";
    const keys = Object.keys(optionDefinitions).filter(isOptionKey);
    for (const key of keys.filter((_, at) => !isSample || at % 3 === 0)) {
      const { secret = false } = definitionOf(key);
      if (secret) await app.deps.options.set(key, hiddenIn(key));
      for (const body of bodies(key)) {
        const before = app.deps.options.text(key);
        const empty = await send({ key, value: "" });
        const emptied = app.deps.options.text(key);
        await app.deps.options.set(key, before);
        const answer = await send(body);
        expect([key, answer.status]).toEqual([key, 200]);
        if (secret)
          expect([key, answer.body.success, app.deps.options.text(key)]).toEqual([key, true, hiddenIn(key)]);
        else {
          expect([key, answer.body]).toEqual([key, empty.body]);
          expect([key, app.deps.options.text(key)]).toEqual([key, emptied]);
        }
        await app.deps.options.set(key, before);
      }
    }
    expect((await send({ key: "About" })).body.success).toBe(true);
    expect((await send({ key: "DrawingEnabled", value: null })).body.success).toBe(true);
    expect(app.deps.options.get("DrawingEnabled")).toBe(false);
    expect((await send({ key: "RetryTimes" })).body).toMatchObject({
      success: false,
      code: "option_not_int",
    });
    expect((await send({ key: "NoSuchOption" })).body).toMatchObject({
      success: false,
      code: "option_unknown",
    });
    // What is no text at all is still a body that cannot be read.
    for (const value of [[], {}, ["a"]]) expect((await send({ key: "About", value })).status).toBe(400);
    expect((await send({ value: "x" })).status).toBe(400);
  });

  /** Every map of prices, ratios and groups: a new one stands in the table by its kind. */
  const tables = Object.keys(optionDefinitions)
    .filter(isOptionKey)
    .filter((key) => definitionOf(key).kind.isTable === true);

  test("a map of prices, ratios or groups is not emptied, whichever way the emptiness is sent", async () => {
    expect(tables.toSorted()).toEqual([
      "AudioCompletionRatio",
      "AudioRatio",
      "AutoGroups",
      "CacheRatio",
      "CompletionRatio",
      "CreateCache1hRatio",
      "CreateCacheRatio",
      "GroupGroupRatio",
      "GroupRatio",
      "GroupSpecialUsableGroup",
      "ImageRatio",
      "KeyLimitsGroup",
      "ModelPrice",
      "ModelRatio",
      "ModelRequestRateLimitGroup",
      "PriceRules",
      "ToolPrices",
      "TopupGroupRatio",
      "UserUsableGroups",
    ]);
    for (const key of tables) {
      const before = app.deps.options.text(key);
      const shipped = definitionOf(key).default;
      const isList = shipped === "[]";
      const isEmptyShipped = shipped === "{}" || isList;
      const nothing = [undefined, null, "", " ", "\n\t ", "\ufeff"];
      for (const value of isEmptyShipped ? nothing : [...nothing, "{}", " { } "]) {
        const body = value === undefined ? { key } : { key, value };
        const answer = await app.call<{ success: boolean; code: string; message: string }>(
          "PUT",
          "/api/option/",
          body,
          root,
        );
        expect([key, value, answer.status, answer.body.success, answer.body.code]).toEqual([
          key,
          value,
          200,
          false,
          "option_table_empty",
        ]);
        expect(answer.body.message).toContain(key);
        expect([key, app.deps.options.text(key)]).toEqual([key, before]);
      }
      const code = isList ? "option_not_list" : "option_not_map";
      for (const value of ["null", isList ? "{}" : "[]", "false"])
        expect([key, value, (await put(key, value)).body.code]).toEqual([key, value, code]);
      // Where nothing is shipped, nothing is what an operator may go back to.
      if (isEmptyShipped) expect((await put(key, isList ? "[]" : "{}")).body.success).toBe(true);
      expect((await put(key, shipped)).body.success).toBe(true);
    }
    const rows = await app.deps.db.orm.select().from(app.deps.db.t.options);
    for (const { key, value } of rows)
      if (tables.some((each) => each === key)) expect(value.trim()).not.toBe("");
  });

  test("price rules live and go with the price that they are about", async () => {
    const { options } = app.deps;
    await put("ModelRatio", '{"a": 1, "b": 1}');
    await put("ModelPrice", '{"c": 1}');
    const rules = { a: { thinking: 4 }, b: { thinking: 4 }, c: { unit: "second" as const } };
    expect((await put("PriceRules", JSON.stringify(rules))).body.success).toBe(true);
    const answer = await put("PriceRules", '{"d": {"thinking": 4}}');
    expect(answer.body.code).toBe("option_rules_without_price");
    expect(options.get("PriceRules")).toEqual(rules);
    // Priced by the call from now on, and then not at all.
    await put("ModelPrice", '{"a": 1, "c": 1}');
    await put("ModelRatio", '{"b": 1}');
    expect(Object.keys(options.get("PriceRules"))).toEqual(["a", "b", "c"]);
    await put("ModelPrice", '{"c": 2}');
    expect(Object.keys(options.get("PriceRules"))).toEqual(["b", "c"]);
    const reread = await createOptions(app.deps.db, app.deps.seal);
    expect(Object.keys(reread.get("PriceRules"))).toEqual(["b", "c"]);
  });

  test("a change is in force at once, survives a restart, and shows in the status", async () => {
    await put("SystemName", "瀑布");
    await put("DisplayInCurrencyEnabled", false);
    await put("RetryTimes", 3);
    expect(app.deps.options.get("RetryTimes")).toBe(3);
    const status = await app.call<{ data: Record<string, unknown> }>("GET", "/api/status");
    expect(status.body.data).toMatchObject({ system_name: "瀑布", display_in_currency: false });
    const reread = await createOptions(app.deps.db, app.deps.seal);
    expect([reread.get("SystemName"), reread.get("RetryTimes")]).toEqual(["瀑布", 3]);
  });

  test("resetting the model ratios restores the shipped table and says so", async () => {
    await put("ModelRatio", '{"only": 1}');
    const answer = await app.call<{ message: string }>(
      "POST",
      "/api/option/rest_model_ratio",
      undefined,
      root,
    );
    expect(answer.body.message).toBe("重置模型倍率成功");
    expect(app.deps.options.get("ModelRatio")["gpt-4o"]).toBe(1.25);
  });
});

/** Every option that clients of this API know, in the order of the specification's reference. */
const KNOWN_KEYS =
  "FileUploadPermission FileDownloadPermission ImageUploadPermission ImageDownloadPermission PasswordLoginEnabled PasswordRegisterEnabled RegisterEnabled EmailVerificationEnabled GitHubOAuthEnabled LinuxDOOAuthEnabled TelegramOAuthEnabled WeChatAuthEnabled TurnstileCheckEnabled EmailDomainRestrictionEnabled EmailAliasRestrictionEnabled EmailDomainWhitelist SMTPServer SMTPPort SMTPAccount SMTPFrom SMTPToken SMTPSSLEnabled GitHubClientId GitHubClientSecret LinuxDOClientId LinuxDOClientSecret WeChatServerAddress WeChatServerToken WeChatAccountQRCodeImageURL TelegramBotToken TelegramBotName TurnstileSiteKey TurnstileSecretKey oidc.enabled oidc.client_id oidc.client_secret oidc.well_known oidc.authorization_endpoint oidc.token_endpoint oidc.user_info_endpoint ServerAddress SystemName Logo Footer Notice About HomePageContent TopUpLink Chats WorkerUrl WorkerValidKey WorkerAllowHttpImageRequestEnabled PayAddress CustomCallbackAddress EpayId EpayKey Price MinTopUp TopupGroupRatio QuotaForNewUser QuotaForInviter QuotaForInvitee QuotaRemindThreshold PreConsumedQuota QuotaPerUnit DisplayInCurrencyEnabled DisplayTokenStatEnabled ModelRatio ModelPrice CompletionRatio CacheRatio GroupRatio UserUsableGroups RetryTimes ChannelDisableThreshold AutomaticDisableChannelEnabled AutomaticEnableChannelEnabled AutomaticDisableKeywords ModelRequestRateLimitEnabled ModelRequestRateLimitCount ModelRequestRateLimitSuccessCount ModelRequestRateLimitDurationMinutes ModelRequestRateLimitGroup CheckSensitiveEnabled CheckSensitiveOnPromptEnabled StopOnSensitiveEnabled StreamCacheQueueLength SensitiveWords LogConsumeEnabled DataExportEnabled DataExportInterval DataExportDefaultTime DefaultCollapseSidebar DrawingEnabled TaskEnabled MjNotifyEnabled MjAccountFilterEnabled MjModeClearEnabled MjForwardUrlEnabled MjActionCheckSuccessEnabled DemoSiteEnabled SelfUseModeEnabled general_setting.docs_link general_setting.ping_interval_enabled general_setting.ping_interval_seconds global.pass_through_request_enabled claude.model_headers_settings claude.thinking_adapter_enabled claude.default_max_tokens claude.thinking_adapter_budget_tokens_percentage gemini.safety_settings gemini.version_settings gemini.supported_imagine_models gemini.thinking_adapter_enabled gemini.thinking_adapter_budget_tokens_percentage".split(
    " ",
  );

test("every option key that clients know is registered and its default is a legal value", () => {
  expect(KNOWN_KEYS.length).toBe(115);
  for (const key of KNOWN_KEYS) expect([key, Object.hasOwn(optionDefinitions, key)]).toEqual([key, true]);
  for (const [key, definition] of Object.entries(optionDefinitions)) {
    expect([key, definition.kind.parse(definition.default) !== undefined]).toEqual([key, true]);
  }
});
