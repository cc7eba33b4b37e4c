// Every option of the site as a row: kind, default, group, secret, the name under which /api/status shows it, its unit.
// What is stored, listed, shown to everybody and drawn on the settings screens follows from these rows.
import type { FailureCode } from "../../shared/failure-codes.ts";
import { DISPLAY_TYPES } from "../../shared/quota-display.ts";
import type { OptionTexts } from "../../shared/setting-rows.ts";
import {
  defaultCacheRatio,
  defaultCompletionRatio,
  defaultCreateCacheRatio,
  defaultGroupRatio,
  defaultImageRatio,
  defaultModelPrice,
  defaultModelRatio,
  defaultTopupGroupRatio,
  defaultUserUsableGroups,
} from "./default-prices.ts";
import { priceSources } from "./price-sources.ts";
import { isHidden } from "./hidden.ts";
import { affinityRules } from "./affinity-kind.ts";
import {
  bool,
  chatList,
  domains,
  endpoint,
  float,
  groupList,
  groupOverrideMap,
  groupRatioMap,
  groupTextMap,
  headerMap,
  int,
  lines,
  modelNotices,
  money,
  oneOf,
  optionalInt,
  priceRulesMap,
  keyLimits,
  keyLimitsMap,
  rateLimitMap,
  ratioMap,
  specialGroupMap,
  statusRanges,
  text,
  textList,
  textMap,
  timeZone,
  tokenCountMapWithDefault,
  url,
} from "./kinds.ts";
import type { OptionDefinition } from "./kinds.ts";
import { amountList, currencySymbol, discountMap, payMethods } from "./payment-kinds.ts";
import type { OptionGroupId } from "./groups.ts";

/** In the order in which the settings screens show them; each line is one option. */
const optionsByGroup = {
  general: {
    TopUpLink: { kind: text, default: "", public: "top_up_link" },
    "general_setting.docs_link": { kind: text, default: "", public: "docs_link" },
    QuotaPerUnit: {
      kind: float(1, 1e9),
      default: "500000",
      public: "quota_per_unit",
      unit: "quota_per_dollar",
    },
    RetryTimes: { kind: int(0, 10), default: "0", unit: "attempts" },
    DisplayInCurrencyEnabled: { kind: bool, default: "true", public: "display_in_currency" },
    DisplayTokenStatEnabled: { kind: bool, default: "true" },
    DefaultCollapseSidebar: { kind: bool, default: "false", public: "default_collapse_sidebar" },
    SelfUseModeEnabled: { kind: bool, default: "false", public: "self_use_mode_enabled" },
    DemoSiteEnabled: { kind: bool, default: "false", public: "demo_site_enabled" },
  },
  drawing: {
    DrawingEnabled: { kind: bool, default: "true", public: "enable_drawing" },
    TaskEnabled: { kind: bool, default: "true", public: "enable_task" },
    MjNotifyEnabled: { kind: bool, default: "false", public: "mj_notify_enabled" },
    MjAccountFilterEnabled: { kind: bool, default: "false" },
    MjForwardUrlEnabled: { kind: bool, default: "true" },
    MjModeClearEnabled: { kind: bool, default: "false" },
    MjActionCheckSuccessEnabled: { kind: bool, default: "true" },
  },
  sensitive: {
    CheckSensitiveEnabled: { kind: bool, default: "true" },
    CheckSensitiveOnPromptEnabled: { kind: bool, default: "true" },
    CheckSensitiveOnCompletionEnabled: { kind: bool, default: "false" },
    StopOnSensitiveEnabled: { kind: bool, default: "true" },
    SensitiveWords: { kind: lines, default: "test_sensitive" },
  },
  log: {
    LogConsumeEnabled: { kind: bool, default: "true" },
    /** Writes a log row of type 5 for each failed relay call. */
    ErrorLogEnabled: { kind: bool, default: "true" },
    /** So long a clearing spares top-ups and the audit trail. */
    AuditRetentionDays: { kind: int(0, 36_500), default: "180", unit: "days" },
  },
  dashboard: {
    DataExportEnabled: { kind: bool, default: "true", public: "enable_data_export" },
    DataExportInterval: { kind: int(1, 1e6), default: "5", unit: "minutes" },
    DataExportDefaultTime: {
      kind: oneOf("hour", "day", "week"),
      default: "hour",
      public: "data_export_default_time",
    },
  },
  monitoring: {
    ChannelDisableThreshold: { kind: float(), default: "5", unit: "seconds" },
    QuotaRemindThreshold: { kind: int(), default: "1000", unit: "quota" },
    AutomaticDisableChannelEnabled: { kind: bool, default: "false" },
    AutomaticEnableChannelEnabled: { kind: bool, default: "false" },
    /** After an upstream's answer with one of these a call goes on to the next channel; some never do (retry-rules.ts). */
    AutomaticRetryStatusCodes: {
      kind: statusRanges,
      default: "100-199,300-399,401-407,409-499,500-503,505-523,525-599",
    },
    /** An upstream's answer with one of these takes the key that it refused out of service. */
    AutomaticDisableStatusCodes: { kind: statusRanges, default: "401" },
    AutomaticDisableKeywords: {
      kind: lines,
      default:
        "Your credit balance is too low\nThis organization has been disabled.\nYou exceeded your current quota\nPermission denied\nThe security token included in the request is invalid\nOperation not allowed\nYour account is not authorized",
    },
    /** Minutes between tests of all channels, and between reads of all balances; 0 = never. */
    "relay.channel_test_minutes": { kind: int(0, 100_000), default: "0", unit: "minutes" },
    "relay.channel_balance_minutes": { kind: int(0, 100_000), default: "0", unit: "minutes" },
  },
  inbox: {
    /** Whether root is told of an item by letter or webhook; the kinds stand in shared/inbox.ts. */
    "inbox.letters.channel": { kind: bool, default: "true" },
    "inbox.letters.price": { kind: bool, default: "true" },
    "inbox.letters.audit": { kind: bool, default: "true" },
    "inbox.letters.settlement": { kind: bool, default: "true" },
    "inbox.letters.disk": { kind: bool, default: "true" },
    "inbox.letters.database": { kind: bool, default: "true" },
    "inbox.letters.mail": { kind: bool, default: "true" },
    "inbox.letters.payment": { kind: bool, default: "true" },
    "inbox.letters.balance": { kind: bool, default: "true" },
    /** Hours between two audits of the books, and the share of the disk that has to be free; 0 = never. */
    "inbox.audit_hours": { kind: int(0, 8760), default: "24", unit: "hours" },
    "inbox.disk_free_share": { kind: float(0, 0.9), default: "0.1", unit: "partShare" },
  },
  quota: {
    QuotaForNewUser: { kind: int(), default: "0", unit: "quota" },
    PreConsumedQuota: { kind: int(), default: "500", unit: "tokens" },
    QuotaForInviter: { kind: int(), default: "0", unit: "quota" },
    QuotaForInvitee: { kind: int(), default: "0", unit: "quota" },
    /** Who invited is rewarded once the invited account has paid for an order. */
    InviteRewardAfterFirstOrder: { kind: bool, default: "false" },
    /** What one administrator may change balances by in a day of the site; empty: no ceiling, 0: nothing. */
    AdminBalanceDailyCeiling: { kind: optionalInt(), default: "" },
  },
  chats: {
    Chats: { kind: chatList, default: "[]", public: "chats" },
  },
  prices: {
    ModelPrice: { kind: ratioMap, default: JSON.stringify(defaultModelPrice) },
    ModelRatio: { kind: ratioMap, default: JSON.stringify(defaultModelRatio) },
    CompletionRatio: { kind: ratioMap, default: JSON.stringify(defaultCompletionRatio) },
    CacheRatio: { kind: ratioMap, default: JSON.stringify(defaultCacheRatio) },
    CreateCacheRatio: { kind: ratioMap, default: JSON.stringify(defaultCreateCacheRatio) },
    CreateCache1hRatio: { kind: ratioMap, default: "{}" },
    ImageRatio: { kind: ratioMap, default: JSON.stringify(defaultImageRatio) },
    AudioRatio: { kind: ratioMap, default: "{}" },
    AudioCompletionRatio: { kind: ratioMap, default: "{}" },
    /** What the maps above cannot say: thresholds, hours, tiers of service, tools, units. */
    PriceRules: { kind: priceRulesMap, default: "{}" },
    /** Dollars per thousand calls: "tool" or "tool:prefix*" -> price. */
    ToolPrices: { kind: ratioMap, default: "{}" },
    /** Whether other instances may read this site's ratios: GET /api/ratio_config. */
    ExposeRatioEnabled: { kind: bool, default: "false" },
    /** Whether a release's new models get the prices that it ships; known ones are only proposed. */
    PriceAddNew: { kind: bool, default: "true" },
  },
  groups: {
    GroupRatio: { kind: groupRatioMap, default: JSON.stringify(defaultGroupRatio) },
    UserUsableGroups: { kind: groupTextMap, default: JSON.stringify(defaultUserUsableGroups) },
  },
  price_sources: {
    /** Where prices are compared with, and what of them is taken every day. */
    PriceSources: { kind: priceSources, default: "[]" },
  },
  group_choices: {
    GroupGroupRatio: { kind: groupOverrideMap, default: "{}" },
    GroupSpecialUsableGroup: { kind: specialGroupMap, default: "{}" },
    AutoGroups: { kind: groupList, default: "[]" },
    /** Of keys that are made without a word about their group; consoles offer it first. */
    DefaultUseAutoGroup: { kind: bool, default: "false", public: "default_use_auto_group" },
  },
  rate_limit: {
    ModelRequestRateLimitEnabled: { kind: bool, default: "false" },
    ModelRequestRateLimitDurationMinutes: { kind: int(0, 43200), default: "1", unit: "minutes" },
    ModelRequestRateLimitCount: { kind: int(0, 1e9), default: "0", unit: "requests" },
    ModelRequestRateLimitSuccessCount: { kind: int(1, 1e9), default: "1000", unit: "requests" },
    ModelRequestRateLimitGroup: { kind: rateLimitMap, default: "{}" },
    /** Of each user: what neither their own limits nor their group's say. */
    KeyLimitsDefault: { kind: keyLimits, default: "{}" },
    KeyLimitsGroup: { kind: keyLimitsMap, default: "{}" },
  },
  global: {
    "global.pass_through_request_enabled": { kind: bool, default: "false" },
    /** Of the gateway's own sentences to programs; `auto`: as they ask, else the site's. */
    "relay.language": { kind: oneOf("auto", "zh", "en"), default: "auto" },
    "general_setting.ping_interval_enabled": { kind: bool, default: "true" },
    "general_setting.ping_interval_seconds": { kind: int(1, 3600), default: "15", unit: "seconds" },
  },
  upstream: {
    /** Seconds until the first byte of an upstream answer; 0 = no limit of its own. */
    "relay.first_byte_timeout_seconds": { kind: int(0, 3600), default: "300", unit: "seconds" },
    /** Seconds of upstream silence in the middle of a stream (doubled for models whose name starts with o). */
    "relay.stream_idle_timeout_seconds": { kind: int(1, 3600), default: "60", unit: "seconds" },
    /** Milliseconds that a call waits for room where every channel that could serve it is at its caps; 0 = not at all. */
    "relay.queue_ms": { kind: int(0, 600_000), default: "0", unit: "milliseconds" },
    /** Seconds that a call waits where everybody who could serve it asked for patience; 0 = not at all. */
    "relay.retry_wait_seconds": { kind: int(0, 600), default: "5", unit: "seconds" },
    /** Units that probes of resting and idle channels may cost the house a day of the site; 0 = no probes. */
    "relay.probe_max_quota_per_day": { kind: int(), default: "0", unit: "quota" },
    /** One deadline over all attempts of a call until its first byte, in seconds. */
    "relay.deadline_seconds": { kind: int(1, 7200), default: "600", unit: "seconds" },
    /**
     * Seconds that an upstream is read on for its answer, and with it its usage, when the client has left before anything
     * of it was passed on; 0 = hung up on at once. What has not answered by then is charged its prompt.
     */
    "relay.abandoned_read_seconds": { kind: int(0, 3600), default: "120", unit: "seconds" },
    /** Largest request body in MiB; larger ones are refused with 413. */
    "relay.max_body_mb": { kind: int(1, 1024), default: "64", unit: "mebibytes" },
    /**
     * Largest answer of an upstream that is read as one piece, in MiB, unpacked; above it another channel is tried. Streams, and
     * sound that is passed on as it comes, have no such limit.
     */
    "relay.max_answer_mb": { kind: int(1, 1024), default: "64", unit: "mebibytes" },
  },
  affinity: {
    "channel_affinity_setting.enabled": { kind: bool, default: "true" },
    /** Whoever answers is bound in the place of the one that was; off: only in the place of one that is gone or off. */
    "channel_affinity_setting.switch_on_success": { kind: bool, default: "true" },
    /** Of each node; the longest unused go first. */
    "channel_affinity_setting.max_entries": { kind: int(1, 10_000_000), default: "100000" },
    /** After the last use. */
    "channel_affinity_setting.default_ttl_seconds": {
      kind: int(1, 2_592_000),
      default: "3600",
      unit: "seconds",
    },
    "channel_affinity_setting.rules": { kind: affinityRules, default: "[]" },
    "channel_affinity_setting.keep_on_channel_disabled": { kind: bool, default: "false" },
  },
  gemini: {
    "gemini.safety_settings": {
      kind: textMap,
      default: '{"HARM_CATEGORY_CIVIC_INTEGRITY":"BLOCK_NONE","default":"OFF"}',
    },
    "gemini.version_settings": { kind: textMap, default: '{"default":"v1beta","gemini-1.0-pro":"v1"}' },
    "gemini.supported_imagine_models": {
      kind: textList,
      default: '["gemini-2.0-flash-exp-image-generation","gemini-2.0-flash-exp"]',
    },
    "gemini.thinking_adapter_enabled": { kind: bool, default: "false" },
    "gemini.thinking_adapter_budget_tokens_percentage": {
      kind: float(0.1, 1),
      default: "0.6",
      unit: "share",
    },
  },
  claude: {
    "claude.model_headers_settings": { kind: headerMap, default: "{}" },
    "claude.default_max_tokens": { kind: tokenCountMapWithDefault, default: '{"default":8192}' },
    "claude.thinking_adapter_enabled": { kind: bool, default: "true" },
    "claude.thinking_adapter_budget_tokens_percentage": {
      kind: float(0.1, 1),
      default: "0.8",
      unit: "share",
    },
  },
  server: {
    ServerAddress: { kind: url, default: "", public: "server_address" },
  },
  worker: {
    WorkerUrl: { kind: url, default: "" },
    WorkerValidKey: { kind: text, default: "", secret: true },
    WorkerAllowHttpImageRequestEnabled: { kind: bool, default: "false" },
  },
  payment: {
    Price: { kind: money(0, 1e6, 6), default: "7.3", public: "price", unit: "currency_per_dollar" },
    MinTopUp: { kind: int(), default: "1", public: "min_topup", unit: "dollars" },
    /** In dollars of credit. */
    MaxTopUp: { kind: int(1), default: "10000", public: "max_topup", unit: "dollars" },
    PayMethods: {
      kind: payMethods,
      default: '[{"name":"支付宝","type":"alipay"},{"name":"微信","type":"wxpay"}]',
    },
    "payment_setting.amount_options": { kind: amountList, default: "[10,20,50,100,200,500]" },
    "payment_setting.amount_discount": { kind: discountMap, default: "{}" },
    CustomCallbackAddress: { kind: url, default: "" },
    TopupGroupRatio: { kind: ratioMap, default: JSON.stringify(defaultTopupGroupRatio) },
  },
  sign_in: {
    PasswordLoginEnabled: { kind: bool, default: "true", public: "password_login_enabled" },
    PasswordRegisterEnabled: { kind: bool, default: "true", public: "password_register_enabled" },
    EmailVerificationEnabled: { kind: bool, default: "false", public: "email_verification" },
    RegisterEnabled: { kind: bool, default: "true", public: "register_enabled" },
    "passkey.enabled": { kind: bool, default: "false" },
    /** Whom sensitive actions ask for fresh proof: accounts with a second factor, or all. */
    SecurityStepUp: { kind: oneOf("factor", "always"), default: "factor" },
    AdminSecondFactorRequired: { kind: bool, default: "false" },
    /** Whether new accounts begin with a key. */
    GenerateDefaultToken: { kind: bool, default: "false" },
  },
  email_domains: {
    EmailDomainRestrictionEnabled: { kind: bool, default: "false" },
    EmailAliasRestrictionEnabled: { kind: bool, default: "false" },
    EmailDomainWhitelist: {
      kind: domains,
      default: "gmail.com,163.com,126.com,qq.com,outlook.com,hotmail.com,icloud.com,yahoo.com,foxmail.com",
    },
  },
  smtp: {
    SMTPServer: { kind: text, default: "" },
    SMTPPort: { kind: int(1, 65535), default: "587" },
    SMTPAccount: { kind: text, default: "" },
    SMTPFrom: { kind: text, default: "" },
    SMTPToken: { kind: text, default: "", secret: true },
    SMTPSSLEnabled: { kind: bool, default: "false" },
  },
  oidc: {
    "oidc.enabled": { kind: bool, default: "false", public: "oidc_enabled" },
    "oidc.well_known": { kind: endpoint, default: "" },
    "oidc.client_id": { kind: text, default: "", public: "oidc_client_id" },
    "oidc.client_secret": { kind: text, default: "", secret: true },
    "oidc.authorization_endpoint": { kind: endpoint, default: "", public: "oidc_authorization_endpoint" },
    "oidc.token_endpoint": { kind: endpoint, default: "" },
    "oidc.user_info_endpoint": { kind: endpoint, default: "" },
  },
  github: {
    GitHubOAuthEnabled: { kind: bool, default: "false", public: "github_oauth" },
    GitHubClientId: { kind: text, default: "", public: "github_client_id" },
    GitHubClientSecret: { kind: text, default: "", secret: true },
    /** Of an Enterprise server, or a mirror. */
    GitHubBaseUrl: { kind: url, default: "https://github.com" },
    /** Whether bindings that were imported by a login name still count, once. */
    GitHubLegacyNames: { kind: bool, default: "true" },
  },
  google: {
    "google.enabled": { kind: bool, default: "false" },
    "google.client_id": { kind: text, default: "" },
    "google.client_secret": { kind: text, default: "", secret: true },
    /** Of one company: the claim `hd` of its accounts. */
    "google.hosted_domain": { kind: text, default: "" },
  },
  discord: {
    "discord.enabled": { kind: bool, default: "false", public: "discord_oauth" },
    "discord.client_id": { kind: text, default: "", public: "discord_client_id" },
    "discord.client_secret": { kind: text, default: "", secret: true },
    DiscordBaseUrl: { kind: url, default: "https://discord.com" },
  },
  linuxdo: {
    LinuxDOOAuthEnabled: { kind: bool, default: "false", public: "linuxdo_oauth" },
    LinuxDOClientId: { kind: text, default: "", public: "linuxdo_client_id" },
    LinuxDOClientSecret: { kind: text, default: "", secret: true },
    LinuxDOBaseUrl: { kind: url, default: "https://connect.linux.do" },
    LinuxDOMinimumTrustLevel: { kind: int(0, 4), default: "0", public: "linuxdo_minimum_trust_level" },
  },
  wechat: {
    WeChatAuthEnabled: { kind: bool, default: "false", public: "wechat_login" },
    WeChatServerAddress: { kind: url, default: "" },
    WeChatServerToken: { kind: text, default: "", secret: true },
    WeChatAccountQRCodeImageURL: { kind: text, default: "", public: "wechat_qrcode" },
  },
  telegram: {
    TelegramOAuthEnabled: { kind: bool, default: "false", public: "telegram_oauth" },
    TelegramBotToken: { kind: text, default: "", secret: true },
    TelegramBotName: { kind: text, default: "", public: "telegram_bot_name" },
  },
  turnstile: {
    TurnstileCheckEnabled: { kind: bool, default: "false", public: "turnstile_check" },
    TurnstileSiteKey: { kind: text, default: "", public: "turnstile_site_key" },
    TurnstileSecretKey: { kind: text, default: "", secret: true },
    /** Where tokens are asked about. */
    TurnstileVerifyUrl: {
      kind: endpoint,
      default: "https://challenges.cloudflare.com/turnstile/v0/siteverify",
    },
  },
  display: {
    /** What the console shows of quota; the books, the log and the API stay units and dollars. */
    QuotaDisplayType: { kind: oneOf(...DISPLAY_TYPES), default: "USD", public: "quota_display_type" },
    USDExchangeRate: {
      kind: money(0.000001, 1e6, 6),
      default: "7.3",
      public: "usd_exchange_rate",
      unit: "currency_per_dollar",
    },
    CustomCurrencySymbol: { kind: currencySymbol, default: "¤", public: "custom_currency_symbol" },
    CustomCurrencyExchangeRate: {
      kind: money(0.000001, 1e6, 6),
      default: "1",
      public: "custom_currency_exchange_rate",
      unit: "currency_per_dollar",
    },
  },
  site: {
    SystemName: { kind: text, default: "Weir", public: "system_name" },
    /** Of pages whose visitor prefers neither, and of letters to whoever chose none. */
    "site.language": { kind: oneOf("zh", "en"), default: "zh" },
    /** Where the site's days begin and end: in figures, ranges and statements. */
    "site.time_zone": { kind: timeZone, default: "UTC", public: "time_zone" },
    Logo: { kind: text, default: "", public: "logo" },
    /** Calls and console are refused to all but root, in these words. */
    "site.maintenance_enabled": { kind: bool, default: "false", public: "maintenance_enabled" },
    "site.maintenance_message": { kind: text, default: "" },
    /** Who sees /status: which models answer, and how it was. */
    "site.status_page": { kind: oneOf("off", "users", "public"), default: "off", public: "status_page" },
    /** While the mode is on nothing leaves the site by itself (quiet.ts): so an import leaves it. */
    "site.maintenance_quiet": { kind: bool, default: "false" },
  },
  content: {
    Notice: { kind: text, default: "" },
    HomePageContent: { kind: text, default: "" },
    About: { kind: text, default: "" },
    /** HTML, Markdown or an address each; whoever registers has to accept what there is. */
    "legal.terms": { kind: text, default: "" },
    "legal.privacy": { kind: text, default: "" },
    Footer: { kind: text, default: "", public: "footer_html" },
    /** [{id, models, channels, text, until}]; administrators change them one at a time (core/site/model-notices.ts). */
    "site.model_notices": { kind: modelNotices, default: "[]" },
  },
  version: {
    /** Asks whether a newer release is out; the only thing that a site asks of the world by itself. */
    "site.version_check_enabled": { kind: bool, default: "true" },
    /** Where a code host tells its latest release, as GitHub's /repos/<owner>/<name>/releases/latest does. */
    "site.version_check_url": { kind: url, default: "" },
  },
  legacy: {
    FileUploadPermission: { kind: int(), default: "0" },
    FileDownloadPermission: { kind: int(), default: "0" },
    ImageUploadPermission: { kind: int(), default: "0" },
    ImageDownloadPermission: { kind: int(), default: "0" },
    StreamCacheQueueLength: { kind: int(), default: "0" },
  },
} as const satisfies Record<OptionGroupId, Record<string, OptionDefinition>>;

type Groups = typeof optionsByGroup;
/** Every group's rows in one object. */
type Merged<T> = (T extends unknown ? (rows: T) => void : never) extends (rows: infer All) => void
  ? All
  : never;
type Definitions = Merged<Groups[keyof Groups]>;

export type OptionKey = keyof Definitions;
export type OptionValue<K extends OptionKey> = ReturnType<Definitions[K]["kind"]["parse"]>;

export const optionDefinitions = Object.assign({}, ...Object.values(optionsByGroup)) as Definitions;

/** An option as the store, the status and the settings screens read it. */
interface OptionRow extends OptionDefinition {
  key: OptionKey;
  group: OptionGroupId;
  /** Keys of its name and of its explanation in the dictionaries. */
  title: string;
  help: string;
  /** Nothing acts on it; hidden.ts says why. */
  hidden: boolean;
  /** Its name and explanation, where no dictionary has them. */
  texts?: OptionTexts;
  needs?: OwnOption["needs"];
}

/** An option that something declares beside what it does with it, as rails of payment do: with its texts and what it leans on. */
export interface OwnOption extends OptionDefinition {
  texts: OptionTexts;
  /** Without that it is not saved, and while it holds something that is not emptied. */
  needs?: { key: OptionKey; code: FailureCode };
}

const rows: OptionRow[] = Object.entries(optionsByGroup).flatMap(([group, rows]) =>
  Object.entries<OptionDefinition>(rows).map(([key, row]) => ({
    ...row,
    key: key as OptionKey,
    group: group as OptionGroupId,
    title: `option.title.${key}`,
    help: `option.help.${key}`,
    hidden: isHidden(key as OptionKey),
  })),
);

export const optionRows: readonly OptionRow[] = rows;

/**
 * Makes options of a group known that are declared elsewhere, behind its others; before anything reads the store. Known ones
 * are left alone; answers what takes the new ones away again. Throws for a name that another option has.
 */
export function addOptions(group: OptionGroupId, own: Readonly<Record<string, OwnOption>>): () => void {
  const known = optionDefinitions as Record<string, OptionDefinition>;
  const added = Object.entries(own).filter(([name, row]) => known[name] !== row);
  for (const [name, row] of added) {
    if (Object.hasOwn(known, name)) throw new Error(`two options are called ${name}`);
    known[name] = row;
    const names = { key: name as OptionKey, title: `option.title.${name}`, help: `option.help.${name}` };
    rows.splice(rows.findLastIndex((each) => each.group === group) + 1, 0, {
      ...row,
      ...names,
      group,
      hidden: false,
    });
  }
  return () => {
    for (const [name] of added) {
      delete known[name];
      rows.splice(
        rows.findIndex(({ key }) => key === name),
        1,
      );
    }
  };
}

/** Reads options that `addOptions` has made known, typed by their rows. */
export function readerOf<Own extends Readonly<Record<string, OwnOption>>>(_own: Own) {
  type Name = keyof Own & string;
  const known = (name: Name) => name as unknown as OptionKey;
  return {
    valueOf: <N extends Name>(
      { get }: { get: (key: OptionKey) => unknown },
      name: N,
    ): ReturnType<Own[N]["kind"]["parse"]> => get(known(name)) as never,
    textOf: ({ text: textOfKey }: { text: (key: OptionKey) => string }, name: Name): string =>
      textOfKey(known(name)),
  };
}

export function isOptionKey(key: string): key is OptionKey {
  return Object.hasOwn(optionDefinitions, key);
}

export function definitionOf(key: OptionKey): OptionDefinition {
  return optionDefinitions[key];
}

/** The options that GET /api/status shows to everybody, by the names that they have there. */
export type PublicOptions = {
  readonly [
    K in OptionKey as Definitions[K] extends { public: infer Name extends string } ? Name : never
  ]: OptionValue<K>;
};
