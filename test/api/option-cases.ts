// One row per option: a value that is taken and what it is read as, what must stand before it, and values that are refused
// with the code whose sentence root reads. The type asks for every key; test/api/option-table.test.ts plays them.
import type { OptionKey } from "../../src/core/options/definitions.ts";
import type { FailureCode } from "../../src/shared/failure-codes.ts";

/** A value, the refusal's code, and what its sentence names. */
type Refused = readonly [
  value: string,
  code: FailureCode,
  params?: Readonly<Record<string, string | number>>,
];

interface OptionCase {
  /** Other than the default. */
  good: string;
  /** As which the program reads it. */
  read: unknown;
  refused: readonly Refused[];
  /** Set before, in this order. */
  needs?: readonly (readonly [OptionKey, string])[];
  /** Refused as long as `needs` is not set. */
  unmet?: FailureCode;
  /** The good value is refused on a site like the test's, whatever is set before. */
  never?: FailureCode;
  /** What its sentence names. */
  neverParams?: Readonly<Record<string, string | number>>;
}

/** A switch, by the value that is not its default. */
const turned = (on: boolean): OptionCase => ({
  good: String(on),
  read: on,
  refused: [
    ["maybe", "option_not_bool"],
    ["1", "option_not_bool"],
  ],
});

/** A switch that needs others. */
const guarded = (unmet: FailureCode, ...needs: (readonly [OptionKey, string])[]): OptionCase => ({
  ...turned(true),
  needs,
  unmet,
});

const MOST = Number.MAX_SAFE_INTEGER;

const whole = (good: number, min = 0, max = MOST): OptionCase => ({
  good: String(good),
  read: good,
  refused: [
    String(min - 1),
    "2.5",
    "many",
    "",
    "NaN",
    ...(max === MOST ? ["9007199254740992"] : [String(max + 1)]),
  ].map((value) => [value, "option_not_int", { min, max }] as const),
});

const number = (good: number, min = 0, max = 1e12): OptionCase => ({
  good: String(good),
  read: good,
  refused: [String(min - 0.5), String(max * 2), "dear", "", "Infinity"].map(
    (value) => [value, "option_not_number", { min, max }] as const,
  ),
});

/** Whatever people write. */
/** Of a currency for a dollar. */
const rate = (good: number): OptionCase => ({
  good: String(good),
  read: good,
  refused: [
    ["0", "option_not_number", { min: 0.000001, max: 1e6 }],
    ["-1", "option_not_number", { min: 0.000001, max: 1e6 }],
    ["7.1234567", "option_too_precise", { decimals: 6 }],
  ],
});

const free = (good: string, read: unknown = good): OptionCase => ({ good, read, refused: [] });

const statuses = (good: string, read: readonly number[]): OptionCase => ({
  good,
  read: new Set(read),
  refused: ["99", "600", "503-500", "500-", "5xx", "401,,402", "401;402", "-1"].map(
    (value) => [value, "option_not_statuses"] as const,
  ),
});

const address = (good = "https://gw.example/base/"): OptionCase => ({
  good,
  read: good.replace(/\/+$/, ""),
  refused: [
    ["gw.example", "option_not_url"],
    ["javascript:alert(1)", "option_not_url"],
    ["ftp://gw.example", "option_not_url"],
    ["https://", "option_not_url"],
  ],
});

/** An address to its last slash. */
const endpoint = (): OptionCase => ({ ...address(), read: "https://gw.example/base/" });

const choice = (good: string, ...values: string[]): OptionCase => ({
  good,
  read: good,
  refused: ["", "other", good.toUpperCase()].map(
    (value) => [value, "option_not_one_of", { values: values.join(", ") }] as const,
  ),
});

const NO_MAP: readonly Refused[] = [
  ["{broken", "option_not_json"],
  ["[1]", "option_not_map"],
  ["null", "option_not_map"],
];

/** A map of prices, ratios or groups, which cannot be emptied either. */
const table = (key: OptionKey, good: object, refused: readonly Refused[]): OptionCase => ({
  good: JSON.stringify(good),
  read: good,
  refused: [...NO_MAP, ["", "option_table_empty", { name: key }], ...refused],
});

const ratios = (key: OptionKey): OptionCase =>
  table(key, { "a-model": 0.25, 另一个: 0 }, [
    ["{}", "option_table_empty", { name: key }],
    ['{"m": -1}', "option_bad_ratio", { name: "m" }],
    ['{"m": "1"}', "option_bad_ratio", { name: "m" }],
    ['{"m": 1e7}', "option_bad_ratio", { name: "m" }],
    ['{"m": null}', "option_bad_ratio", { name: "m" }],
  ]);

/** Maps that are shipped empty and may be so again. */
const ownRatios = (key: OptionKey): OptionCase =>
  table(key, { "a-model": 0.25, 另一个: 0 }, [
    ['{"m": -1}', "option_bad_ratio", { name: "m" }],
    ['{"m": 1e7}', "option_bad_ratio", { name: "m" }],
  ]);

const texts = (good: object): OptionCase => ({
  good: JSON.stringify(good),
  read: good,
  refused: [...NO_MAP, ['{"m": 1}', "option_bad_text", { name: "m" }]],
});

const CHATS = [{ 云雀: "https://chat.example/#/?key={key}" }, { Cat: "opencat://team/join?token={key}" }];
const AFFINITY_RULE = {
  name: "codex",
  model_regex: ["^gpt-"],
  path_regex: ["^/v1/responses"],
  user_agent_include: ["codex"],
  key_sources: [{ type: "gjson", key: "", path: "prompt_cache_key" }],
  value_regex: "^.{3,}$",
  ttl_seconds: 60,
  include_using_group: true,
  include_model_name: false,
  include_rule_name: true,
  param_override_template: { operations: [{ mode: "set", path: "store", value: false }] },
  skip_retry_on_failure: true,
};
const affinityRefused = (broken: object, field: string): Refused => [
  JSON.stringify([{ ...AFFINITY_RULE, ...broken }]),
  "option_bad_affinity_rule",
  { position: 1, field },
];
const NOTICE = { id: "a", models: ["m"], channels: [3], text: "slow", until: 0 };

/** Rails bring their own options: which those are, the test that plays them compares. */
export const OPTION_CASES: Record<OptionKey, OptionCase> & Record<string, OptionCase> = {
  TopUpLink: free("https://shop.example/cards"),
  "general_setting.docs_link": free("https://docs.example"),
  QuotaPerUnit: number(100_000, 1, 1e9),
  RetryTimes: whole(3, 0, 10),
  DisplayInCurrencyEnabled: turned(false),
  QuotaDisplayType: {
    good: "CNY",
    read: "CNY",
    refused: [
      ["", "option_not_one_of", { values: "USD, CNY, TOKENS, CUSTOM" }],
      ["usd", "option_not_one_of", { values: "USD, CNY, TOKENS, CUSTOM" }],
    ],
  },
  USDExchangeRate: rate(6.9),
  CustomCurrencySymbol: {
    ...free("HK$"),
    refused: [
      ["", "option_bad_symbol"],
      ["far too long", "option_bad_symbol"],
      ["<b>", "option_bad_symbol"],
      ["1", "option_bad_symbol"],
    ],
  },
  CustomCurrencyExchangeRate: rate(7.8),
  DisplayTokenStatEnabled: turned(false),
  DefaultCollapseSidebar: turned(true),
  SelfUseModeEnabled: turned(true),
  DemoSiteEnabled: turned(true),
  DrawingEnabled: turned(false),
  TaskEnabled: turned(false),
  MjNotifyEnabled: turned(true),
  MjAccountFilterEnabled: turned(true),
  MjForwardUrlEnabled: turned(false),
  MjModeClearEnabled: turned(true),
  MjActionCheckSuccessEnabled: turned(false),
  CheckSensitiveEnabled: turned(false),
  CheckSensitiveOnPromptEnabled: turned(false),
  CheckSensitiveOnCompletionEnabled: turned(true),
  StopOnSensitiveEnabled: turned(false),
  SensitiveWords: free(" one\n\n二 \n", ["one", "二"]),
  LogConsumeEnabled: turned(false),
  ErrorLogEnabled: turned(false),
  AuditRetentionDays: whole(365, 0, 36_500),
  DataExportEnabled: turned(false),
  DataExportInterval: whole(1, 1, 1e6),
  DataExportDefaultTime: choice("week", "hour", "day", "week"),
  ChannelDisableThreshold: number(7.5),
  QuotaRemindThreshold: whole(500_000),
  AutomaticDisableChannelEnabled: turned(true),
  AutomaticEnableChannelEnabled: turned(true),
  AutomaticRetryStatusCodes: statuses("500-502，429, 599", [429, 500, 501, 502, 599]),
  AutomaticDisableStatusCodes: statuses("", []),
  AutomaticDisableKeywords: free("out of credit\nbanned", ["out of credit", "banned"]),
  "relay.channel_test_minutes": whole(30, 0, 100_000),
  "relay.channel_balance_minutes": whole(60, 0, 100_000),
  QuotaForNewUser: whole(250_000),
  AdminBalanceDailyCeiling: {
    ...whole(5_000_000),
    refused: ["-1", "2.5", "many"].map((value) => [value, "option_not_int", { min: 0, max: MOST }] as const),
  },
  PreConsumedQuota: whole(1),
  QuotaForInviter: whole(5),
  QuotaForInvitee: whole(6),
  InviteRewardAfterFirstOrder: turned(true),
  Chats: {
    good: JSON.stringify(CHATS),
    read: CHATS,
    refused: [
      ["{broken", "option_not_json"],
      ["{}", "option_not_list"],
      ['[{"a": "b", "c": "d"}]', "option_bad_chat", { position: 1 }],
      ['[{"a": "https://x.example"}, {"b": 1}]', "option_bad_chat", { position: 2 }],
      ...[
        ["javascript:alert(1)", "javascript"],
        [" JavaScript:x", "javascript"],
        ["java\\nscript:x", "javascript"],
        ["data:text/html,x", "data"],
        ["vbscript:x", "vbscript"],
        ["file:///etc", "file"],
        ["blob:x", "blob"],
        ["about:blank", "about"],
      ].map(
        ([link, scheme]) =>
          [
            `[{"a": "https://x.example"}, {"b": "${link}"}]`,
            "option_chat_scheme",
            { position: 2, scheme: scheme ?? "" },
          ] as const,
      ),
    ],
  },
  ModelPrice: ratios("ModelPrice"),
  ModelRatio: ratios("ModelRatio"),
  CompletionRatio: ratios("CompletionRatio"),
  CacheRatio: ratios("CacheRatio"),
  CreateCacheRatio: ratios("CreateCacheRatio"),
  ImageRatio: ratios("ImageRatio"),
  CreateCache1hRatio: ownRatios("CreateCache1hRatio"),
  AudioRatio: ownRatios("AudioRatio"),
  AudioCompletionRatio: ownRatios("AudioCompletionRatio"),
  ToolPrices: ownRatios("ToolPrices"),
  PriceRules: table("PriceRules", { "gpt-4o": { when: [{ over: 1000, times: 2 }] } }, [
    [
      '{"nobody-sells-it": {"when": [{"over": 1000, "times": 2}]}}',
      "option_rules_without_price",
      { name: "nobody-sells-it" },
    ],
    ['{"gpt-4o": {"when": [{"times": 2}]}}', "option_bad_price_rules", { name: "gpt-4o", place: "when[0]" }],
    [
      '{"gpt-4o": {"when": [{"above": 1000, "times": 2}]}}',
      "option_bad_price_rules",
      { name: "gpt-4o", place: "when[0].above" },
    ],
  ]),
  PriceAddNew: turned(false),
  PriceSources: {
    good: '[{"name":"lists","source":"litellm","strip":["openai/"],"auto":true,"limit":5}]',
    read: [{ name: "lists", source: "litellm", url: "", strip: ["openai/"], auto: true, limit: 5 }],
    refused: [
      ["{}", "option_not_list"],
      ["[", "option_not_json"],
      ...[
        '{"name":"a","source":"nowhere"}',
        '{"name":"","source":"litellm"}',
        '{"name":"own","source":"litellm"}',
        '{"name":"a@b","source":"litellm"}',
        '{"name":"a","source":"detect","url":"file:///etc/passwd"}',
        '{"name":"a","source":"litellm","limit":0}',
        '{"name":"a","source":"litellm","limit":101}',
        '{"name":"a","source":"litellm","key":"x"}',
      ].map((entry) => [`[${entry}]`, "option_bad_price_source", { position: 1 }] as const),
      [
        '[{"name":"a","source":"litellm"},{"name":"a","source":"openrouter"}]',
        "option_bad_price_source",
        { position: 2 },
      ],
    ],
  },
  ExposeRatioEnabled: turned(true),
  GroupRatio: table("GroupRatio", { default: 1, vip: 0.5 }, [
    ["{}", "option_table_empty", { name: "GroupRatio" }],
    ['{"vip": -0.5}', "option_group_ratio_negative", { name: "vip" }],
    ['{"auto": 1}', "option_group_auto"],
    ['{"vip": "1"}', "option_bad_ratio", { name: "vip" }],
  ]),
  UserUsableGroups: table("UserUsableGroups", { default: "所有人" }, [
    ["{}", "option_table_empty", { name: "UserUsableGroups" }],
    ['{"vip": 1}', "option_bad_text", { name: "vip" }],
  ]),
  GroupGroupRatio: table("GroupGroupRatio", { vip: { default: 0.8, vip: 0 } }, [
    ['{"vip": 0.8}', "option_bad_override", { name: "vip" }],
    ['{"vip": {"default": "1"}}', "option_bad_ratio", { name: "vip: default" }],
    ['{"vip": {"default": 1e7}}', "option_bad_ratio", { name: "vip: default" }],
    ['{"vip": {"default": -1}}', "option_group_ratio_negative", { name: "vip: default" }],
    ['{"vip": {"auto": 1}}', "option_group_auto"],
  ]),
  GroupSpecialUsableGroup: {
    good: '{"vip": {"+:beta": "Beta", "svip": "More", "-:default": ""}}',
    read: { vip: { added: { beta: "Beta", svip: "More" }, removed: new Set(["default"]) } },
    refused: [
      ["", "option_table_empty", { name: "GroupSpecialUsableGroup" }],
      ["[]", "option_not_map"],
      ["{", "option_not_json"],
      ['{"vip": "beta"}', "option_bad_special", { name: "vip" }],
      ['{"vip": {"+:beta": 1}}', "option_bad_special", { name: "vip: +:beta" }],
      ['{"vip": {"+:": "x"}}', "option_bad_special", { name: "vip: +:" }],
      ['{"vip": {"+:beta": "x", "-:beta": ""}}', "option_special_both", { name: "vip: beta" }],
      ['{"vip": {"-:auto": ""}}', "option_group_auto"],
    ],
  },
  AutoGroups: {
    good: '["vip","default"]',
    read: ["vip", "default"],
    refused: [
      ["", "option_table_empty", { name: "AutoGroups" }],
      ["{}", "option_not_list"],
      ["[1]", "option_not_list"],
      ['["vip","vip"]', "option_bad_group_list", { name: "vip" }],
      ['[""]', "option_bad_group_list", { name: "" }],
      ['["auto"]', "option_group_auto"],
    ],
  },
  DefaultUseAutoGroup: turned(true),
  ModelRequestRateLimitEnabled: turned(true),
  ModelRequestRateLimitDurationMinutes: whole(5, 0, 43_200),
  ModelRequestRateLimitCount: whole(200, 0, 1e9),
  ModelRequestRateLimitSuccessCount: whole(100, 1, 1e9),
  KeyLimitsDefault: {
    good: '{"budget_quota": 500000, "budget_period": "day", "max_concurrency": 4}',
    read: { budget_quota: 500_000, budget_period: "day", max_concurrency: 4 },
    refused: [
      ["{", "option_not_json"],
      ["[1]", "option_bad_key_limits", { place: "" }],
      ['{"budget_quota": 1.5}', "option_bad_key_limits", { place: "budget_quota" }],
      ['{"colour": 1}', "option_bad_key_limits", { place: "colour" }],
    ],
  },
  KeyLimitsGroup: table("KeyLimitsGroup", { vip: { rpm_limit: 600 }, default: { rpm_limit: 60 } }, [
    ['{"vip": {"rpm_limit": -1}}', "option_bad_key_limits", { place: "vip.rpm_limit" }],
    ['{"vip": {"budget_period": "year"}}', "option_bad_key_limits", { place: "vip.budget_period" }],
    ['{"vip": 5}', "option_bad_key_limits", { place: "vip" }],
  ]),
  ModelRequestRateLimitGroup: table("ModelRequestRateLimitGroup", { default: [200, 100], vip: [0, 1000] }, [
    ['{"vip": [0, 0]}', "option_bad_rate_limit", { name: "vip", total: 0, success: 0 }],
    ['{"vip": [-1, 5]}', "option_bad_rate_limit", { name: "vip", total: -1, success: 5 }],
    ['{"vip": [1]}', "option_bad_rate_limit", { name: "vip", total: "?", success: "?" }],
  ]),
  "global.pass_through_request_enabled": turned(true),
  "relay.language": choice("en", "auto", "zh", "en"),
  "general_setting.ping_interval_enabled": turned(false),
  "general_setting.ping_interval_seconds": whole(1, 1, 3600),
  "relay.first_byte_timeout_seconds": whole(30, 0, 3600),
  "relay.stream_idle_timeout_seconds": whole(5, 1, 3600),
  "relay.queue_ms": whole(500, 0, 600_000),
  "relay.retry_wait_seconds": whole(9, 0, 600),
  "relay.probe_max_quota_per_day": whole(50_000),
  "relay.deadline_seconds": whole(120, 1, 7200),
  "relay.abandoned_read_seconds": whole(0, 0, 3600),
  "relay.max_body_mb": whole(8, 1, 1024),
  "relay.max_answer_mb": whole(8, 1, 1024),
  "channel_affinity_setting.enabled": turned(false),
  "channel_affinity_setting.switch_on_success": turned(false),
  "channel_affinity_setting.max_entries": whole(10, 1, 10_000_000),
  "channel_affinity_setting.default_ttl_seconds": whole(60, 1, 2_592_000),
  "channel_affinity_setting.keep_on_channel_disabled": turned(true),
  "channel_affinity_setting.rules": {
    good: JSON.stringify([AFFINITY_RULE]),
    read: [AFFINITY_RULE],
    refused: [
      ["{broken", "option_not_json"],
      ["{}", "option_not_list"],
      ["[{}]", "option_bad_affinity_rule", { position: 1, field: "name" }],
      ['[{"name": "a"}]', "option_bad_affinity_rule", { position: 1, field: "key_sources" }],
      affinityRefused({ model_regex: ["("] }, "model_regex"),
      affinityRefused({ key_sources: [{ type: "context_int", key: "no" }] }, "key_sources"),
      affinityRefused({ ttl_seconds: -1 }, "ttl_seconds"),
      affinityRefused(
        { param_override_template: { operations: [{ mode: "no" }] } },
        "param_override_template",
      ),
      [
        JSON.stringify([AFFINITY_RULE, AFFINITY_RULE]),
        "option_bad_affinity_rule",
        { position: 2, field: "name" },
      ],
    ],
  },
  "gemini.safety_settings": texts({ default: "BLOCK_NONE" }),
  "gemini.version_settings": texts({ default: "v1" }),
  "gemini.supported_imagine_models": {
    good: '["gemini-3-image"]',
    read: ["gemini-3-image"],
    refused: [
      ["{broken", "option_not_json"],
      ["{}", "option_not_list"],
      ["[1]", "option_not_list"],
    ],
  },
  "gemini.thinking_adapter_enabled": turned(true),
  "gemini.thinking_adapter_budget_tokens_percentage": {
    ...number(0.5, 0.1, 1),
    refused: [
      ["0.05", "option_not_number", { min: 0.1, max: 1 }],
      ["1.1", "option_not_number", { min: 0.1, max: 1 }],
    ],
  },
  "claude.model_headers_settings": {
    good: '{"claude-x": {"anthropic-beta": ["a", "b"]}}',
    read: { "claude-x": { "anthropic-beta": ["a", "b"] } },
    refused: [
      ...NO_MAP,
      ['{"m": "x"}', "option_bad_text", { name: "m" }],
      ['{"m": {"bad header": ["x"]}}', "option_bad_text", { name: "m.bad header" }],
      ['{"m": {"x-a": ["a\\r\\nx-b: c"]}}', "option_bad_text", { name: "m.x-a" }],
    ],
  },
  "claude.default_max_tokens": {
    good: '{"default": 4096, "claude-x": 64000}',
    read: { default: 4096, "claude-x": 64_000 },
    refused: [
      ...NO_MAP,
      ['{"default": -1}', "option_bad_count", { name: "default" }],
      ['{"default": 1.5}', "option_bad_count", { name: "default" }],
      ['{"claude-x": 1}', "option_no_default"],
      ["{}", "option_no_default"],
    ],
  },
  "claude.thinking_adapter_enabled": turned(false),
  "claude.thinking_adapter_budget_tokens_percentage": {
    ...number(0.5, 0.1, 1),
    refused: [
      ["0.09", "option_not_number", { min: 0.1, max: 1 }],
      ["2", "option_not_number", { min: 0.1, max: 1 }],
    ],
  },
  ServerAddress: address(),
  WorkerUrl: address("https://worker.example/"),
  WorkerValidKey: free("worker-key"),
  WorkerAllowHttpImageRequestEnabled: guarded("option_needs_worker", ["WorkerUrl", "https://worker.example"]),
  PayAddress: {
    ...address("https://pay.example/epay/"),
    needs: [["ServerAddress", "https://gw.example"]],
    unmet: "option_needs_server_address",
  },
  EpayId: free("1001"),
  EpayKey: free("epay-key"),
  Price: {
    good: "7.123456",
    read: 7.123_456,
    refused: [
      ["-0.1", "option_not_number", { min: 0, max: 1e6 }],
      ["dear", "option_not_number", { min: 0, max: 1e6 }],
      ["7.1234567", "option_too_precise", { decimals: 6 }],
      ["1e-3", "option_too_precise", { decimals: 6 }],
      ["0x10", "option_too_precise", { decimals: 6 }],
    ],
  },
  MinTopUp: whole(5),
  MaxTopUp: whole(500, 1),
  StripeApiSecret: free("sk_test_0123456789"),
  StripeWebhookSecret: {
    ...free("whsec_0123456789abcdefghij,whsec_abcdefghij0123456789"),
    refused: [
      ["whsec_short", "option_bad_webhook_secret"],
      ["0123456789abcdefghijklmnop", "option_bad_webhook_secret"],
    ],
  },
  StripeApiBase: address("https://stripe.example"),
  StripeCurrency: {
    ...free("jpy"),
    refused: [
      ["", "option_bad_currency"],
      ["dollars", "option_bad_currency"],
      ["xxx", "option_bad_currency"],
    ],
  },
  StripeUnitPrice: {
    good: "1.25",
    read: 1.25,
    refused: [
      ["-0.1", "option_not_number", { min: 0, max: 1e6 }],
      ["1e-3", "option_too_precise", { decimals: 6 }],
    ],
  },
  StripeMinTopUp: whole(5),
  PayMethods: {
    good: '[{"name":"QQ","type":"qqpay","min_topup":5}]',
    read: [{ name: "QQ", type: "qqpay", min_topup: 5 }],
    refused: [
      ["{}", "option_bad_pay_methods"],
      ['[{"name":"QQ"}]', "option_bad_pay_methods"],
      ['[{"name":"A","type":"a"},{"name":"B","type":"a"}]', "option_bad_pay_methods"],
      ["[", "option_not_json"],
    ],
  },
  "payment_setting.amount_options": {
    good: "[5,10]",
    read: [5, 10],
    refused: [
      ["[0]", "option_bad_amounts"],
      ["[1.5]", "option_bad_amounts"],
      ["{}", "option_bad_amounts"],
    ],
  },
  "payment_setting.amount_discount": {
    good: '{"100":0.9}',
    read: { "100": 0.9 },
    refused: [
      ['{"100":0}', "option_bad_discounts"],
      ['{"100":1.1}', "option_bad_discounts"],
      ['{"x":0.9}', "option_bad_discounts"],
      ["[]", "option_bad_discounts"],
    ],
  },
  CustomCallbackAddress: address("https://callback.example"),
  EpayAskOrders: turned(true),
  TopupGroupRatio: ratios("TopupGroupRatio"),
  "passkey.enabled": guarded("option_needs_passkey_host", ["ServerAddress", "https://gw.example"]),
  SecurityStepUp: choice("always", "factor", "always"),
  AdminSecondFactorRequired: { ...turned(true), never: "option_needs_own_factor" },
  PasswordLoginEnabled: { ...turned(false), never: "last_method" },
  PasswordRegisterEnabled: turned(false),
  EmailVerificationEnabled: guarded(
    "option_needs_smtp",
    ["SMTPServer", "mail.example"],
    ["SMTPFrom", "site@mail.example"],
  ),
  RegisterEnabled: turned(false),
  GenerateDefaultToken: turned(true),
  // Its list of domains is shipped.
  EmailDomainRestrictionEnabled: turned(true),
  EmailAliasRestrictionEnabled: turned(true),
  EmailDomainWhitelist: {
    good: "example.org, 例子.中国,mail.co.uk",
    read: ["example.org", "例子.中国", "mail.co.uk"],
    refused: ["host", "@example.org", "a b.org", "https://x.org", "-x.org", "x..org"].map(
      (value) => [`example.org,${value}`, "option_bad_domain", { name: value }] as const,
    ),
  },
  SMTPServer: free("mail.example"),
  SMTPPort: whole(465, 1, 65_535),
  SMTPAccount: free("site@mail.example"),
  SMTPFrom: free("Weir <site@mail.example>"),
  SMTPToken: free("mail-password"),
  SMTPSSLEnabled: turned(true),
  "oidc.enabled": guarded(
    "option_needs_oidc",
    ["oidc.client_id", "id"],
    ["oidc.client_secret", "secret"],
    ["oidc.authorization_endpoint", "https://id.example/authorize"],
    ["oidc.token_endpoint", "https://id.example/token"],
    ["oidc.user_info_endpoint", "https://id.example/me"],
    ["ServerAddress", "https://gw.example"],
  ),
  // Asked for before it is stored, and nobody answers there (test/api/oidc.test.ts has one who does).
  "oidc.well_known": {
    ...endpoint(),
    good: "http://127.0.0.1:9/.well-known/openid-configuration",
    never: "oidc_discovery_failed",
    neverParams: { reason: "address_unreachable" },
  },
  "oidc.client_id": free("client"),
  "oidc.client_secret": free("oidc-secret"),
  "oidc.authorization_endpoint": endpoint(),
  "oidc.token_endpoint": endpoint(),
  "oidc.user_info_endpoint": endpoint(),
  GitHubOAuthEnabled: guarded(
    "option_needs_github",
    ["GitHubClientId", "id"],
    ["GitHubClientSecret", "secret"],
    ["ServerAddress", "https://gw.example"],
  ),
  GitHubClientId: free("client"),
  GitHubClientSecret: free("github-secret"),
  GitHubBaseUrl: address(),
  GitHubLegacyNames: turned(false),
  "google.enabled": guarded(
    "option_needs_google",
    ["google.client_id", "id"],
    ["google.client_secret", "secret"],
    ["ServerAddress", "https://gw.example"],
  ),
  "google.client_id": free("client"),
  "google.client_secret": free("google-secret"),
  "google.hosted_domain": free("company.example"),
  "discord.enabled": guarded(
    "option_needs_discord",
    ["discord.client_id", "id"],
    ["discord.client_secret", "secret"],
    ["ServerAddress", "https://gw.example"],
  ),
  "discord.client_id": free("client"),
  "discord.client_secret": free("discord-secret"),
  DiscordBaseUrl: address(),
  LinuxDOOAuthEnabled: guarded(
    "option_needs_linuxdo",
    ["LinuxDOClientId", "id"],
    ["LinuxDOClientSecret", "secret"],
    ["ServerAddress", "https://gw.example"],
  ),
  LinuxDOClientId: free("client"),
  LinuxDOClientSecret: free("linuxdo-secret"),
  LinuxDOBaseUrl: address(),
  LinuxDOMinimumTrustLevel: whole(2, 0, 4),
  WeChatAuthEnabled: guarded(
    "option_needs_wechat",
    ["WeChatServerAddress", "https://wechat.example"],
    ["WeChatServerToken", "token"],
    ["WeChatAccountQRCodeImageURL", "https://wechat.example/qr.png"],
  ),
  WeChatServerAddress: address("https://wechat.example"),
  WeChatServerToken: free("wechat-token"),
  WeChatAccountQRCodeImageURL: free("https://wechat.example/qr.png"),
  TelegramOAuthEnabled: guarded(
    "option_needs_telegram",
    ["TelegramBotToken", "1:a"],
    ["TelegramBotName", "weir_bot"],
  ),
  TelegramBotToken: free("1:telegram"),
  TelegramBotName: free("weir_bot"),
  TurnstileCheckEnabled: guarded(
    "option_needs_turnstile",
    ["TurnstileSiteKey", "site"],
    ["TurnstileSecretKey", "secret"],
  ),
  TurnstileSiteKey: free("site-key"),
  TurnstileSecretKey: free("turnstile-secret"),
  TurnstileVerifyUrl: endpoint(),
  SystemName: free("瀑布"),
  "site.language": choice("en", "zh", "en"),
  "site.time_zone": {
    good: "Asia/Shanghai",
    read: "Asia/Shanghai",
    refused: ["", "Mars/Base", "UTC+8", "+08:00"].map((value) => [value, "option_not_time_zone"] as const),
  },
  Logo: free("https://gw.example/logo.svg"),
  "site.maintenance_enabled": turned(true),
  "site.maintenance_message": free("Back at six."),
  "site.status_page": choice("public", "off", "users", "public"),
  "site.maintenance_quiet": turned(true),
  Notice: free("# 公告\n\nhello"),
  HomePageContent: free("<h1>Hi</h1>"),
  About: free("https://about.example"),
  "legal.terms": free("# Terms"),
  "legal.privacy": free("https://gw.example/privacy"),
  Footer: free("<b>©</b>"),
  "site.model_notices": {
    good: JSON.stringify([NOTICE]),
    read: [NOTICE],
    refused: [
      ["{broken", "option_not_json"],
      ["{}", "option_not_list"],
      [JSON.stringify([NOTICE, { text: "nobody's" }]), "option_bad_notice", { position: 2 }],
    ],
  },
  FileUploadPermission: whole(1),
  FileDownloadPermission: whole(1),
  ImageUploadPermission: whole(1),
  ImageDownloadPermission: whole(1),
  "inbox.letters.channel": turned(false),
  "inbox.letters.price": turned(false),
  "inbox.letters.audit": turned(false),
  "inbox.letters.balance": turned(false),
  "inbox.letters.settlement": turned(false),
  "inbox.letters.disk": turned(false),
  "inbox.letters.database": turned(false),
  "inbox.letters.mail": turned(false),
  "inbox.letters.payment": turned(false),
  "inbox.audit_hours": whole(12, 0, 8760),
  "inbox.disk_free_share": number(0.25, 0, 0.9),
  "site.version_check_enabled": turned(false),
  "site.version_check_url": address(),
  StreamCacheQueueLength: whole(1),
};
