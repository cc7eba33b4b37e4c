// The typed registry of every option key: kind, default, secret or not, public or not.
// Refuses unknown keys by simply not listing them; only root may read or write options.
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
import {
  bool,
  chatList,
  csv,
  float,
  groupRatioMap,
  headerMap,
  int,
  lines,
  oneOf,
  rateLimitMap,
  ratioMap,
  text,
  textList,
  textMap,
  tokenCountMap,
  url,
} from "./kinds.ts";
import type { OptionDefinition } from "./kinds.ts";

export const optionDefinitions = {
  FileUploadPermission: { kind: int(), default: "0" },
  FileDownloadPermission: { kind: int(), default: "0" },
  ImageUploadPermission: { kind: int(), default: "0" },
  ImageDownloadPermission: { kind: int(), default: "0" },
  PasswordLoginEnabled: { kind: bool, default: "true" },
  PasswordRegisterEnabled: { kind: bool, default: "true" },
  RegisterEnabled: { kind: bool, default: "true" },
  EmailVerificationEnabled: { kind: bool, default: "false", public: true },
  GitHubOAuthEnabled: { kind: bool, default: "false", public: true },
  LinuxDOOAuthEnabled: { kind: bool, default: "false", public: true },
  TelegramOAuthEnabled: { kind: bool, default: "false", public: true },
  WeChatAuthEnabled: { kind: bool, default: "false", public: true },
  TurnstileCheckEnabled: { kind: bool, default: "false", public: true },
  EmailDomainRestrictionEnabled: { kind: bool, default: "false" },
  EmailAliasRestrictionEnabled: { kind: bool, default: "false" },
  EmailDomainWhitelist: {
    kind: csv,
    default: "gmail.com,163.com,126.com,qq.com,outlook.com,hotmail.com,icloud.com,yahoo.com,foxmail.com",
  },
  SMTPServer: { kind: text, default: "" },
  SMTPPort: { kind: int(1, 65535), default: "587" },
  SMTPAccount: { kind: text, default: "" },
  SMTPFrom: { kind: text, default: "" },
  SMTPToken: { kind: text, default: "", secret: true },
  SMTPSSLEnabled: { kind: bool, default: "false" },
  GitHubClientId: { kind: text, default: "", public: true },
  GitHubClientSecret: { kind: text, default: "", secret: true },
  LinuxDOClientId: { kind: text, default: "", public: true },
  LinuxDOClientSecret: { kind: text, default: "", secret: true },
  WeChatServerAddress: { kind: url, default: "" },
  WeChatServerToken: { kind: text, default: "", secret: true },
  WeChatAccountQRCodeImageURL: { kind: text, default: "", public: true },
  TelegramBotToken: { kind: text, default: "", secret: true },
  TelegramBotName: { kind: text, default: "", public: true },
  TurnstileSiteKey: { kind: text, default: "", public: true },
  TurnstileSecretKey: { kind: text, default: "", secret: true },
  "oidc.enabled": { kind: bool, default: "false", public: true },
  "oidc.client_id": { kind: text, default: "", public: true },
  "oidc.client_secret": { kind: text, default: "", secret: true },
  "oidc.well_known": { kind: text, default: "" },
  "oidc.authorization_endpoint": { kind: text, default: "", public: true },
  "oidc.token_endpoint": { kind: text, default: "" },
  "oidc.user_info_endpoint": { kind: text, default: "" },
  ServerAddress: { kind: url, default: "", public: true },
  SystemName: { kind: text, default: "Weir", public: true },
  Logo: { kind: text, default: "", public: true },
  Footer: { kind: text, default: "", public: true },
  Notice: { kind: text, default: "" },
  About: { kind: text, default: "" },
  HomePageContent: { kind: text, default: "" },
  TopUpLink: { kind: text, default: "", public: true },
  Chats: { kind: chatList, default: "[]", public: true },
  WorkerUrl: { kind: url, default: "" },
  WorkerValidKey: { kind: text, default: "", secret: true },
  WorkerAllowHttpImageRequestEnabled: { kind: bool, default: "false" },
  PayAddress: { kind: url, default: "" },
  CustomCallbackAddress: { kind: url, default: "" },
  EpayId: { kind: text, default: "" },
  EpayKey: { kind: text, default: "", secret: true },
  Price: { kind: float(0, 1e6), default: "7.3", public: true },
  MinTopUp: { kind: int(), default: "1", public: true },
  TopupGroupRatio: { kind: ratioMap, default: JSON.stringify(defaultTopupGroupRatio) },
  QuotaForNewUser: { kind: int(), default: "0" },
  QuotaForInviter: { kind: int(), default: "0" },
  QuotaForInvitee: { kind: int(), default: "0" },
  QuotaRemindThreshold: { kind: int(), default: "1000" },
  PreConsumedQuota: { kind: int(), default: "500" },
  QuotaPerUnit: { kind: float(1, 1e9), default: "500000", public: true },
  DisplayInCurrencyEnabled: { kind: bool, default: "true", public: true },
  DisplayTokenStatEnabled: { kind: bool, default: "true" },
  ModelRatio: { kind: ratioMap, default: JSON.stringify(defaultModelRatio) },
  ModelPrice: { kind: ratioMap, default: JSON.stringify(defaultModelPrice) },
  CompletionRatio: { kind: ratioMap, default: JSON.stringify(defaultCompletionRatio) },
  CacheRatio: { kind: ratioMap, default: JSON.stringify(defaultCacheRatio) },
  CreateCacheRatio: { kind: ratioMap, default: JSON.stringify(defaultCreateCacheRatio) },
  ImageRatio: { kind: ratioMap, default: JSON.stringify(defaultImageRatio) },
  GroupRatio: { kind: groupRatioMap, default: JSON.stringify(defaultGroupRatio) },
  UserUsableGroups: { kind: textMap, default: JSON.stringify(defaultUserUsableGroups) },
  RetryTimes: { kind: int(0, 10), default: "0" },
  ChannelDisableThreshold: { kind: float(), default: "5" },
  AutomaticDisableChannelEnabled: { kind: bool, default: "false" },
  AutomaticEnableChannelEnabled: { kind: bool, default: "false" },
  AutomaticDisableKeywords: {
    kind: lines,
    default:
      "Your credit balance is too low\nThis organization has been disabled.\nYou exceeded your current quota\nPermission denied\nThe security token included in the request is invalid\nOperation not allowed\nYour account is not authorized",
  },
  ModelRequestRateLimitEnabled: { kind: bool, default: "false" },
  ModelRequestRateLimitCount: { kind: int(0, 1e9), default: "0" },
  ModelRequestRateLimitSuccessCount: { kind: int(1, 1e9), default: "1000" },
  ModelRequestRateLimitDurationMinutes: { kind: int(0, 43200), default: "1" },
  ModelRequestRateLimitGroup: { kind: rateLimitMap, default: "{}" },
  CheckSensitiveEnabled: { kind: bool, default: "true" },
  CheckSensitiveOnPromptEnabled: { kind: bool, default: "true" },
  CheckSensitiveOnCompletionEnabled: { kind: bool, default: "false" },
  StopOnSensitiveEnabled: { kind: bool, default: "true" },
  StreamCacheQueueLength: { kind: int(), default: "0" },
  SensitiveWords: { kind: lines, default: "test_sensitive" },
  LogConsumeEnabled: { kind: bool, default: "true" },
  DataExportEnabled: { kind: bool, default: "true", public: true },
  DataExportInterval: { kind: int(1, 1e6), default: "5" },
  DataExportDefaultTime: { kind: oneOf("hour", "day", "week"), default: "hour", public: true },
  DefaultCollapseSidebar: { kind: bool, default: "false", public: true },
  DrawingEnabled: { kind: bool, default: "true", public: true },
  TaskEnabled: { kind: bool, default: "true", public: true },
  MjNotifyEnabled: { kind: bool, default: "false", public: true },
  MjAccountFilterEnabled: { kind: bool, default: "false" },
  MjModeClearEnabled: { kind: bool, default: "false" },
  MjForwardUrlEnabled: { kind: bool, default: "true" },
  MjActionCheckSuccessEnabled: { kind: bool, default: "true" },
  DemoSiteEnabled: { kind: bool, default: "false", public: true },
  SelfUseModeEnabled: { kind: bool, default: "false", public: true },
  "general_setting.docs_link": { kind: text, default: "", public: true },
  "general_setting.ping_interval_enabled": { kind: bool, default: "false" },
  "general_setting.ping_interval_seconds": { kind: int(0, 3600), default: "60" },
  "global.pass_through_request_enabled": { kind: bool, default: "false" },
  "claude.model_headers_settings": { kind: headerMap, default: "{}" },
  "claude.thinking_adapter_enabled": { kind: bool, default: "true" },
  "claude.default_max_tokens": { kind: tokenCountMap, default: '{"default":8192}' },
  "claude.thinking_adapter_budget_tokens_percentage": { kind: float(0.1, 1), default: "0.8" },
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
  "gemini.thinking_adapter_budget_tokens_percentage": { kind: float(0.1, 1), default: "0.6" },
  // The following are this product's own.
  /** Writes a log row of type 5 for each failed relay call. */
  ErrorLogEnabled: { kind: bool, default: "true" },
  /** Seconds until the first byte of an upstream answer; 0 = no limit of its own. */
  "relay.first_byte_timeout_seconds": { kind: int(0, 3600), default: "300" },
  /** Seconds of upstream silence in the middle of a stream (doubled for models whose name starts with o). */
  "relay.stream_idle_timeout_seconds": { kind: int(1, 3600), default: "60" },
  /** One deadline over all attempts of a call until its first byte, in seconds. */
  "relay.deadline_seconds": { kind: int(1, 7200), default: "600" },
  /**
   * Seconds that an upstream is read on for its answer, and with it its usage, when the client has left before anything
   * of it was passed on; 0 = hung up on at once. What has not answered by then is charged its prompt.
   */
  "relay.abandoned_read_seconds": { kind: int(0, 3600), default: "120" },
  /** Minutes between tests of all channels, and between reads of all balances; 0 = never. */
  "relay.channel_test_minutes": { kind: int(0, 100_000), default: "0" },
  "relay.channel_balance_minutes": { kind: int(0, 100_000), default: "0" },
  /** Largest request body in MiB; larger ones are refused with 413. */
  "relay.max_body_mb": { kind: int(1, 1024), default: "64" },
  /**
   * Largest answer of an upstream that is read whole, in MiB, unpacked; above it another channel is asked. Streams, and
   * sound that is passed on as it comes, have no such limit.
   */
  "relay.max_answer_mb": { kind: int(1, 1024), default: "64" },
} satisfies Record<string, OptionDefinition>;

type Definitions = typeof optionDefinitions;
export type OptionKey = keyof Definitions;
export type OptionValue<K extends OptionKey> = ReturnType<Definitions[K]["kind"]["parse"]>;

export function isOptionKey(key: string): key is OptionKey {
  return Object.hasOwn(optionDefinitions, key);
}

export function definitionOf(key: OptionKey): OptionDefinition {
  return optionDefinitions[key];
}

/** A switch and the keys that must hold a value before it may be turned on, with the refusal's code. */
export const switchGuards: readonly { key: OptionKey; needs: readonly OptionKey[]; code: string }[] = [
  { key: "GitHubOAuthEnabled", needs: ["GitHubClientId", "GitHubClientSecret"], code: "option_needs_github" },
  { key: "oidc.enabled", needs: ["oidc.client_id", "oidc.client_secret"], code: "option_needs_oidc" },
  {
    key: "LinuxDOOAuthEnabled",
    needs: ["LinuxDOClientId", "LinuxDOClientSecret"],
    code: "option_needs_linuxdo",
  },
  { key: "EmailDomainRestrictionEnabled", needs: ["EmailDomainWhitelist"], code: "option_needs_domains" },
  {
    key: "WeChatAuthEnabled",
    needs: ["WeChatServerAddress", "WeChatServerToken"],
    code: "option_needs_wechat",
  },
  {
    key: "TurnstileCheckEnabled",
    needs: ["TurnstileSiteKey", "TurnstileSecretKey"],
    code: "option_needs_turnstile",
  },
  { key: "TelegramOAuthEnabled", needs: ["TelegramBotToken"], code: "option_needs_telegram" },
];
