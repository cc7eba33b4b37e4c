// The status payload: what every visitor's console needs to know of the site, secrets never.
// Refuses nothing.
import type { Deps } from "../deps.ts";
import { setupState } from "./setup.ts";

/** The server's address is the operator's word or nothing: a request's Host is anybody's. */
export async function siteStatus(deps: Deps) {
  const { options } = deps;
  const { done } = await setupState(deps);
  return {
    version: deps.version,
    start_time: deps.startedAt,
    setup: done,
    system_name: options.get("SystemName"),
    logo: options.get("Logo"),
    footer_html: options.get("Footer"),
    server_address: options.get("ServerAddress"),
    docs_link: options.get("general_setting.docs_link"),
    top_up_link: options.get("TopUpLink"),
    quota_per_unit: options.get("QuotaPerUnit"),
    display_in_currency: options.get("DisplayInCurrencyEnabled"),
    price: options.get("Price"),
    min_topup: options.get("MinTopUp"),
    enable_online_topup:
      options.get("PayAddress") !== "" && options.get("EpayId") !== "" && options.get("EpayKey") !== "",
    enable_batch_update: false,
    enable_drawing: options.get("DrawingEnabled"),
    enable_task: options.get("TaskEnabled"),
    enable_data_export: options.get("DataExportEnabled"),
    data_export_default_time: options.get("DataExportDefaultTime"),
    default_collapse_sidebar: options.get("DefaultCollapseSidebar"),
    mj_notify_enabled: options.get("MjNotifyEnabled"),
    chats: options.get("Chats"),
    chat_link: "",
    demo_site_enabled: options.get("DemoSiteEnabled"),
    self_use_mode_enabled: options.get("SelfUseModeEnabled"),
    email_verification: options.get("EmailVerificationEnabled"),
    turnstile_check: options.get("TurnstileCheckEnabled"),
    turnstile_site_key: options.get("TurnstileSiteKey"),
    github_oauth: options.get("GitHubOAuthEnabled"),
    github_client_id: options.get("GitHubClientId"),
    linuxdo_oauth: options.get("LinuxDOOAuthEnabled"),
    linuxdo_client_id: options.get("LinuxDOClientId"),
    telegram_oauth: options.get("TelegramOAuthEnabled"),
    telegram_bot_name: options.get("TelegramBotName"),
    wechat_login: options.get("WeChatAuthEnabled"),
    wechat_qrcode: options.get("WeChatAccountQRCodeImageURL"),
    oidc_enabled: options.get("oidc.enabled"),
    oidc_client_id: options.get("oidc.client_id"),
    oidc_authorization_endpoint: options.get("oidc.authorization_endpoint"),
  };
}

export type SiteStatus = Awaited<ReturnType<typeof siteStatus>>;
