// Tables and columns of the family that this program has looked at: what is read, and what is known to mean nothing here.
// Refuses to be silent about the rest, which a fork has added: its rows come without it, and it is named.
import type { Notes } from "./report.ts";
import type { SourceDatabase } from "./source.ts";

const columns = (text: string): ReadonlySet<string> => new Set(text.split(/\s+/));

/** Columns of the tables that are read; of options and abilities all there are. */
const KNOWN: Readonly<Record<string, ReadonlySet<string>>> = {
  users: columns(
    `id username password display_name role status email github_id discord_id oidc_id wechat_id telegram_id lark_id
    linux_do_id access_token quota used_quota request_count group aff_code aff_count aff_quota aff_history inviter_id
    deleted_at setting remark stripe_customer created_at last_login_at auth_version verification_code`,
  ),
  tokens: columns(
    `id user_id key status name created_time accessed_time expired_time remain_quota unlimited_quota used_quota
    model_limits_enabled model_limits models allow_ips subnet group auto_groups cross_group_retry deleted_at`,
  ),
  channels: columns(
    `id type key open_ai_organization openai_organization test_model status name weight created_time test_time
    response_time base_url other balance balance_updated_time models group used_quota model_mapping status_code_mapping
    priority auto_ban other_info tag setting param_override header_override settings remark channel_info config
    system_prompt open_user_ids`,
  ),
  logs: columns(
    `id user_id created_at type content username token_name model_name quota prompt_tokens completion_tokens use_time
    elapsed_time is_stream channel_id channel_name token_id group ip other request_id upstream_request_id
    system_prompt_reset`,
  ),
  redemptions: columns(
    "id user_id key status name quota created_time redeemed_time count used_user_id deleted_at expired_time",
  ),
  quota_data: columns(
    "id user_id username model_name created_at token_used count quota token_id channel_id use_group node_name",
  ),
  top_ups: columns(
    "id user_id amount money trade_no payment_method payment_provider create_time complete_time status",
  ),
  subscription_orders: columns(
    `id user_id plan_id money trade_no payment_method payment_provider status create_time complete_time
    provider_payload`,
  ),
  subscription_plans: columns(
    `id title subtitle price_amount currency duration_unit duration_value custom_seconds enabled sort_order
    allow_balance_pay allow_wallet_overflow stripe_price_id creem_product_id max_purchase_per_user upgrade_group
    total_amount quota_reset_period quota_reset_custom_seconds created_at updated_at waffo_pancake_product_id
    downgrade_group`,
  ),
  user_subscriptions: columns(
    `id user_id plan_id amount_total amount_used start_time end_time status source last_reset_time next_reset_time
    upgrade_group prev_user_group downgrade_group created_at updated_at allow_wallet_overflow`,
  ),
  two_fas: columns(
    "id user_id secret is_enabled failed_attempts locked_until last_used_at created_at updated_at deleted_at",
  ),
  two_fa_backup_codes: columns("id user_id code_hash is_used used_at created_at deleted_at"),
  passkey_credentials: columns(
    `id user_id credential_id public_key attestation_type aaguid sign_count clone_warning user_present user_verified
    backup_eligible backup_state transports attachment last_used_at created_at updated_at deleted_at`,
  ),
  custom_oauth_providers: columns(
    `id name slug icon kind enabled client_id client_secret authorization_endpoint token_endpoint user_info_endpoint
    scopes user_id_field username_field display_name_field email_field well_known auth_style access_policy
    access_denied_message created_at updated_at`,
  ),
  user_oauth_bindings: columns("id user_id provider_id provider_user_id created_at"),
  midjourneys: columns(
    `id code user_id action mj_id prompt prompt_en description state submit_time start_time finish_time image_url
    video_url video_urls status progress fail_reason channel_id quota buttons properties token_id billing_channel_id
    group`,
  ),
  tasks: columns(
    `id created_at updated_at task_id platform user_id group channel_id quota action status fail_reason submit_time
    start_time finish_time progress properties data private_data`,
  ),
};

/** Tables that are read, or say nothing of their own. */
const READ: ReadonlySet<string> = new Set([
  ...Object.keys(KNOWN),
  "options",
  "abilities",
  "setups",
  "casbin_rule",
]);

/** Known, and without a place here. */
const DROPPED: ReadonlySet<string> = new Set(
  `user_sessions auth_flows models vendors prefill_groups checkins perf_metrics system_tasks system_instances
  subscription_pre_consume_records passkey_sessions`.split(/\s+/),
);

/** Tables whose rows the progress counts. */
export const COUNTED = Object.keys(KNOWN);

/** Names what of the source is not carried; answers the rows of its tables that are not, by table. */
export async function lookAround(source: SourceDatabase, notes: Notes): Promise<Record<string, number>> {
  const dropped: Record<string, number> = {};
  for (const [table, found] of source.tables) {
    const known = KNOWN[table];
    if (known)
      for (const column of found)
        if (!known.has(column)) notes.add(table, "unknown_column", `${table}.${column}`);
    if (READ.has(table)) continue;
    const count = await source.count(table);
    if (count === 0) continue;
    dropped[table] = count;
    if (!DROPPED.has(table)) notes.add(table, "unknown_table", `${table} (${count})`);
  }
  return dropped;
}
