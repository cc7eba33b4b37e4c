CREATE TABLE `abilities` (
	`group` text NOT NULL,
	`model` text NOT NULL,
	`channel_id` integer NOT NULL,
	`enabled` integer DEFAULT true NOT NULL,
	`priority` integer DEFAULT 0 NOT NULL,
	`weight` integer DEFAULT 0 NOT NULL,
	`tag` text,
	PRIMARY KEY(`group`, `model`, `channel_id`)
);
--> statement-breakpoint
CREATE INDEX `abilities_channel` ON `abilities` (`channel_id`);--> statement-breakpoint
CREATE TABLE `affinity_sums` (
	`hour` integer NOT NULL,
	`rule` text NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	`kept` integer DEFAULT 0 NOT NULL,
	`switched` integer DEFAULT 0 NOT NULL,
	`cache_input` integer DEFAULT 0 NOT NULL,
	`cache_read` integer DEFAULT 0 NOT NULL,
	`cache_saved` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`hour`, `rule`)
);
--> statement-breakpoint
CREATE TABLE `audit_months` (
	`month` integer PRIMARY KEY NOT NULL,
	`sums` integer NOT NULL,
	`rows` integer NOT NULL,
	`checked_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `audit_sums` (
	`month` integer PRIMARY KEY NOT NULL,
	`digest` integer NOT NULL,
	`checked_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `auth_flows` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`kind` text NOT NULL,
	`secret_hash` text NOT NULL,
	`subject_key` text DEFAULT '' NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`session_id` text DEFAULT '' NOT NULL,
	`provider` text DEFAULT '' NOT NULL,
	`browser_hash` text DEFAULT '' NOT NULL,
	`payload` text DEFAULT '' NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`used_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `auth_flows_secret` ON `auth_flows` (`secret_hash`);--> statement-breakpoint
CREATE INDEX `auth_flows_subject` ON `auth_flows` (`kind`,`subject_key`,`created_at`);--> statement-breakpoint
CREATE INDEX `auth_flows_expiry` ON `auth_flows` (`expires_at`);--> statement-breakpoint
CREATE TABLE `backup_codes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`hash` text NOT NULL,
	`used_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `backup_codes_hash` ON `backup_codes` (`hash`);--> statement-breakpoint
CREATE INDEX `backup_codes_user` ON `backup_codes` (`user_id`);--> statement-breakpoint
CREATE TABLE `channel_costs` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`channel_id` integer NOT NULL,
	`model` text NOT NULL,
	`price` text DEFAULT '' NOT NULL,
	`factor` real DEFAULT 1 NOT NULL,
	`group_ratio` real DEFAULT 1 NOT NULL,
	`source` text DEFAULT 'manual' NOT NULL,
	`valid_from` integer NOT NULL,
	`created_at` integer NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`username` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `channel_costs_from` ON `channel_costs` (`channel_id`,`model`,`valid_from`);--> statement-breakpoint
CREATE TABLE `channel_keys` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`channel_id` integer NOT NULL,
	`pos` integer NOT NULL,
	`key_sealed` text DEFAULT '' NOT NULL,
	`key_hash` text NOT NULL,
	`label` text DEFAULT '' NOT NULL,
	`status` integer DEFAULT 1 NOT NULL,
	`reason` text DEFAULT '' NOT NULL,
	`status_time` integer DEFAULT 0 NOT NULL,
	`max_concurrency` integer DEFAULT 0 NOT NULL,
	`rpm_limit` integer DEFAULT 0 NOT NULL,
	`tpm_limit` integer DEFAULT 0 NOT NULL,
	`used_quota` integer DEFAULT 0 NOT NULL,
	`last_used` integer DEFAULT 0 NOT NULL,
	`probes` integer DEFAULT 0 NOT NULL,
	`next_probe` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `channel_keys_hash` ON `channel_keys` (`channel_id`,`key_hash`);--> statement-breakpoint
CREATE TABLE `channels` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`type` integer DEFAULT 1 NOT NULL,
	`openai_organization` text,
	`test_model` text,
	`status` integer DEFAULT 1 NOT NULL,
	`name` text DEFAULT '' NOT NULL,
	`weight` integer DEFAULT 0 NOT NULL,
	`created_time` integer DEFAULT 0 NOT NULL,
	`test_time` integer DEFAULT 0 NOT NULL,
	`response_time` integer DEFAULT 0 NOT NULL,
	`base_url` text DEFAULT '' NOT NULL,
	`other` text DEFAULT '' NOT NULL,
	`balance` real DEFAULT 0 NOT NULL,
	`balance_updated_time` integer DEFAULT 0 NOT NULL,
	`models` text DEFAULT '' NOT NULL,
	`group` text DEFAULT 'default' NOT NULL,
	`used_quota` integer DEFAULT 0 NOT NULL,
	`model_mapping` text DEFAULT '' NOT NULL,
	`status_code_mapping` text DEFAULT '' NOT NULL,
	`priority` integer DEFAULT 0 NOT NULL,
	`auto_ban` integer DEFAULT 1 NOT NULL,
	`other_info` text DEFAULT '' NOT NULL,
	`tag` text,
	`setting` text DEFAULT '' NOT NULL,
	`param_override` text DEFAULT '' NOT NULL,
	`header_override` text DEFAULT '' NOT NULL,
	`settings` text DEFAULT '' NOT NULL,
	`model_drift` text DEFAULT '' NOT NULL,
	`max_input_tokens` integer DEFAULT 0 NOT NULL,
	`multi_key_mode` text DEFAULT 'polling' NOT NULL,
	`max_concurrency` integer DEFAULT 0 NOT NULL,
	`rpm_limit` integer DEFAULT 0 NOT NULL,
	`tpm_limit` integer DEFAULT 0 NOT NULL,
	`gone_keys_quota` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `channels_tag` ON `channels` (`tag`);--> statement-breakpoint
CREATE INDEX `channels_priority` ON `channels` (`priority`);--> statement-breakpoint
CREATE TABLE `cost_bills` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`import_id` integer NOT NULL,
	`channel_id` integer NOT NULL,
	`source` text NOT NULL,
	`bucket` text NOT NULL,
	`hash` text NOT NULL,
	`day` integer NOT NULL,
	`model` text DEFAULT '' NOT NULL,
	`kind` text DEFAULT '' NOT NULL,
	`request_id` text DEFAULT '' NOT NULL,
	`requests` integer,
	`tokens` integer,
	`amount_nanos` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `cost_bills_bucket` ON `cost_bills` (`channel_id`,`source`,`bucket`);--> statement-breakpoint
CREATE INDEX `cost_bills_day` ON `cost_bills` (`channel_id`,`day`);--> statement-breakpoint
CREATE TABLE `cost_imports` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`channel_id` integer NOT NULL,
	`source` text NOT NULL,
	`hash` text NOT NULL,
	`created_at` integer NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`username` text DEFAULT '' NOT NULL,
	`added` integer DEFAULT 0 NOT NULL,
	`known` integer DEFAULT 0 NOT NULL,
	`replaced` integer DEFAULT 0 NOT NULL,
	`refused` integer DEFAULT 0 NOT NULL,
	`first_day` integer DEFAULT 0 NOT NULL,
	`last_day` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `cost_imports_channel` ON `cost_imports` (`channel_id`,`id`);--> statement-breakpoint
CREATE TABLE `credits` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`amount` integer NOT NULL,
	`kind` text NOT NULL,
	`ref` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `credits_user` ON `credits` (`user_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `credits_once` ON `credits` (`kind`,`ref`) WHERE "credits"."ref" <> '';--> statement-breakpoint
CREATE TABLE `custom_providers` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`name` text NOT NULL,
	`slug` text NOT NULL,
	`icon` text DEFAULT '' NOT NULL,
	`enabled` integer DEFAULT false NOT NULL,
	`kind` text NOT NULL,
	`client_id` text DEFAULT '' NOT NULL,
	`client_secret_sealed` text DEFAULT '' NOT NULL,
	`issuer` text DEFAULT '' NOT NULL,
	`authorization_endpoint` text DEFAULT '' NOT NULL,
	`token_endpoint` text DEFAULT '' NOT NULL,
	`user_info_endpoint` text DEFAULT '' NOT NULL,
	`scopes` text DEFAULT '' NOT NULL,
	`auth_style` integer DEFAULT 0 NOT NULL,
	`user_id_field` text DEFAULT 'sub' NOT NULL,
	`username_field` text DEFAULT 'preferred_username' NOT NULL,
	`display_name_field` text DEFAULT 'name' NOT NULL,
	`email_field` text DEFAULT 'email' NOT NULL,
	`email_verified_field` text DEFAULT 'email_verified' NOT NULL,
	`access_policy` text DEFAULT '' NOT NULL,
	`access_denied_message` text DEFAULT '' NOT NULL,
	`pkce` text DEFAULT 'auto' NOT NULL,
	`allow_register` integer DEFAULT true NOT NULL,
	`skip_second_factor` integer DEFAULT false NOT NULL,
	`link_verified_email` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `custom_providers_slug` ON `custom_providers` (`slug`);--> statement-breakpoint
CREATE TABLE `midjourneys` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`code` integer DEFAULT 0 NOT NULL,
	`user_id` integer NOT NULL,
	`token_id` integer DEFAULT 0 NOT NULL,
	`channel_id` integer DEFAULT 0 NOT NULL,
	`key_id` integer DEFAULT 0 NOT NULL,
	`action` text DEFAULT '' NOT NULL,
	`mj_id` text DEFAULT '' NOT NULL,
	`group` text DEFAULT '' NOT NULL,
	`model_name` text DEFAULT '' NOT NULL,
	`submit_time_ms` integer DEFAULT 0 NOT NULL,
	`start_time_ms` integer DEFAULT 0 NOT NULL,
	`finish_time_ms` integer DEFAULT 0 NOT NULL,
	`request_id` text DEFAULT '' NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`settled_hour` integer DEFAULT 0 NOT NULL,
	`refunded` integer DEFAULT false NOT NULL,
	`status` text DEFAULT '' NOT NULL,
	`progress` text DEFAULT '0%' NOT NULL,
	`prompt` text DEFAULT '' NOT NULL,
	`prompt_en` text DEFAULT '' NOT NULL,
	`description` text DEFAULT '' NOT NULL,
	`state` text DEFAULT '' NOT NULL,
	`image_url` text DEFAULT '' NOT NULL,
	`fail_reason` text DEFAULT '' NOT NULL,
	`buttons` text DEFAULT '' NOT NULL,
	`properties` text DEFAULT '' NOT NULL,
	`image_pushed` integer DEFAULT false NOT NULL,
	`polls` integer DEFAULT 0 NOT NULL,
	`next_poll_ms` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `midjourneys_user` ON `midjourneys` (`user_id`,`submit_time_ms`);--> statement-breakpoint
CREATE INDEX `midjourneys_mj_id` ON `midjourneys` (`mj_id`);--> statement-breakpoint
CREATE INDEX `midjourneys_open` ON `midjourneys` (`progress`) WHERE "midjourneys"."progress" <> '100%';--> statement-breakpoint
CREATE TABLE `identities` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`provider` text NOT NULL,
	`subject` text NOT NULL,
	`label` text DEFAULT '' NOT NULL,
	`legacy` integer DEFAULT false NOT NULL,
	`created_at` integer DEFAULT 0 NOT NULL,
	`last_used_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `identities_subject` ON `identities` (`provider`,`subject`);--> statement-breakpoint
CREATE UNIQUE INDEX `identities_user` ON `identities` (`user_id`,`provider`);--> statement-breakpoint
CREATE TABLE `inbox_items` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`kind` text NOT NULL,
	`subject` text DEFAULT '' NOT NULL,
	`params` text DEFAULT '{}' NOT NULL,
	`opened_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`count` integer DEFAULT 1 NOT NULL,
	`told_at` integer DEFAULT 0 NOT NULL,
	`owed_at` integer DEFAULT 0 NOT NULL,
	`snoozed_until` integer DEFAULT 0 NOT NULL,
	`closed_at` integer DEFAULT 0 NOT NULL,
	`closed_by` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `inbox_items_cause` ON `inbox_items` (`kind`,`subject`);--> statement-breakpoint
CREATE INDEX `inbox_items_closed` ON `inbox_items` (`closed_at`);--> statement-breakpoint
CREATE TABLE `limit_uses` (
	`node_id` text NOT NULL,
	`kind` text NOT NULL,
	`owner_id` integer NOT NULL,
	`held` integer NOT NULL,
	`calls` integer NOT NULL,
	`requests` integer NOT NULL,
	`tokens` integer NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `owner_id`, `node_id`)
);
--> statement-breakpoint
CREATE INDEX `limit_uses_node` ON `limit_uses` (`node_id`);--> statement-breakpoint
CREATE TABLE `logs` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`created_at` integer NOT NULL,
	`type` integer NOT NULL,
	`user_id` integer NOT NULL,
	`channel_id` integer DEFAULT 0 NOT NULL,
	`token_id` integer DEFAULT 0 NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`prompt_tokens` integer DEFAULT 0 NOT NULL,
	`completion_tokens` integer DEFAULT 0 NOT NULL,
	`use_time_ms` integer DEFAULT 0 NOT NULL,
	`is_stream` integer DEFAULT false NOT NULL,
	`request_id` text DEFAULT '' NOT NULL,
	`model_name` text DEFAULT '' NOT NULL,
	`username` text DEFAULT '' NOT NULL,
	`token_name` text DEFAULT '' NOT NULL,
	`group` text DEFAULT '' NOT NULL,
	`content` text DEFAULT '' NOT NULL,
	`other` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE INDEX `logs_time` ON `logs` (`created_at`);--> statement-breakpoint
CREATE INDEX `logs_user_time` ON `logs` (`user_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `logs_request` ON `logs` (`request_id`);--> statement-breakpoint
CREATE INDEX `logs_rare_types` ON `logs` (`type`,`created_at`,`group`,`token_id`,`model_name`) WHERE "logs"."type" <> 2;--> statement-breakpoint
CREATE INDEX `logs_rare_user` ON `logs` (("user_id" + 0),`type`,`created_at`,`channel_id`) WHERE ("logs"."type" + 0) <> 2;--> statement-breakpoint
CREATE INDEX `logs_rare_model` ON `logs` (`model_name`,`type`,`created_at`,`channel_id`) WHERE ("logs"."type" + 0) <> 2;--> statement-breakpoint
CREATE INDEX `logs_rare_channel` ON `logs` (`channel_id`,`type`,`created_at`) WHERE ("logs"."type" + 0) <> 2;--> statement-breakpoint
CREATE TABLE `marks` (
	`key` text PRIMARY KEY NOT NULL,
	`value` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `model_days` (
	`day` integer NOT NULL,
	`model_name` text NOT NULL,
	`slot` integer NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`day`, `model_name`, `slot`)
);
--> statement-breakpoint
CREATE TABLE `nodes` (
	`node_id` text PRIMARY KEY NOT NULL,
	`incarnation` integer DEFAULT 0 NOT NULL,
	`history` text NOT NULL,
	`mark` integer DEFAULT 0 NOT NULL,
	`journaled` integer DEFAULT 0 NOT NULL,
	`entered` integer DEFAULT 0 NOT NULL,
	`set_aside` integer DEFAULT 0 NOT NULL,
	`skipped` integer DEFAULT 0 NOT NULL,
	`lease_until` integer DEFAULT 0 NOT NULL,
	`place` text DEFAULT '' NOT NULL,
	`figures` text DEFAULT '' NOT NULL,
	`updated_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE `openings` (
	`kind` text NOT NULL,
	`id` integer NOT NULL,
	`used_quota` integer DEFAULT 0 NOT NULL,
	`request_count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`kind`, `id`)
);
--> statement-breakpoint
CREATE TABLE `options` (
	`key` text PRIMARY KEY NOT NULL,
	`value` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE TABLE `orders` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`trade_no` text NOT NULL,
	`user_id` integer NOT NULL,
	`kind` text DEFAULT 'topup' NOT NULL,
	`plan_id` integer DEFAULT 0 NOT NULL,
	`rail` text NOT NULL,
	`method` text DEFAULT '' NOT NULL,
	`quota` integer NOT NULL,
	`money_minor` integer NOT NULL,
	`currency` text NOT NULL,
	`snapshot` text DEFAULT '{}' NOT NULL,
	`status` text DEFAULT 'created' NOT NULL,
	`provider_ref` text,
	`session_id` text DEFAULT '' NOT NULL,
	`paid_minor` integer DEFAULT 0 NOT NULL,
	`refunded_minor` integer DEFAULT 0 NOT NULL,
	`disputed_minor` integer DEFAULT 0 NOT NULL,
	`debited_quota` integer DEFAULT 0 NOT NULL,
	`reward_quota` integer DEFAULT 0 NOT NULL,
	`reward_user_id` integer DEFAULT 0 NOT NULL,
	`reward_back_quota` integer DEFAULT 0 NOT NULL,
	`reward_back_debited` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`credited_at` integer DEFAULT 0 NOT NULL,
	`actor_id` integer DEFAULT 0 NOT NULL,
	`note` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `orders_trade_no` ON `orders` (`trade_no`);--> statement-breakpoint
CREATE UNIQUE INDEX `orders_provider_ref` ON `orders` (`rail`,`provider_ref`) WHERE "orders"."provider_ref" is not null;--> statement-breakpoint
CREATE INDEX `orders_user` ON `orders` (`user_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `orders_status` ON `orders` (`status`,`created_at`);--> statement-breakpoint
CREATE TABLE `outbox` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`kind` text NOT NULL,
	`letter_sealed` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`next_at` integer NOT NULL,
	`dead_at` integer
);
--> statement-breakpoint
CREATE INDEX `outbox_due` ON `outbox` (`next_at`) WHERE "outbox"."dead_at" is null;--> statement-breakpoint
CREATE INDEX `outbox_user` ON `outbox` (`user_id`);--> statement-breakpoint
CREATE TABLE `passkeys` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`credential_id` text NOT NULL,
	`public_key` text NOT NULL,
	`counter` integer DEFAULT 0 NOT NULL,
	`transports` text DEFAULT '' NOT NULL,
	`device_type` text DEFAULT '' NOT NULL,
	`backed_up` integer DEFAULT false NOT NULL,
	`aaguid` text DEFAULT '' NOT NULL,
	`name` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `passkeys_credential` ON `passkeys` (`credential_id`);--> statement-breakpoint
CREATE INDEX `passkeys_user` ON `passkeys` (`user_id`);--> statement-breakpoint
CREATE TABLE `payment_events` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`rail` text NOT NULL,
	`event_id` text NOT NULL,
	`trade_no` text DEFAULT '' NOT NULL,
	`at` integer NOT NULL,
	`verdict` text NOT NULL,
	`report` text DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `payment_events_once` ON `payment_events` (`rail`,`event_id`,`verdict`);--> statement-breakpoint
CREATE INDEX `payment_events_order` ON `payment_events` (`trade_no`,`at`);--> statement-breakpoint
CREATE INDEX `payment_events_at` ON `payment_events` (`at`);--> statement-breakpoint
CREATE TABLE `plan_periods` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_plan_id` integer NOT NULL,
	`user_id` integer NOT NULL,
	`no` integer NOT NULL,
	`starts_at` integer NOT NULL,
	`ends_at` integer NOT NULL,
	`quota` integer NOT NULL,
	`used` integer DEFAULT 0 NOT NULL,
	`closed_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `plan_periods_no` ON `plan_periods` (`user_plan_id`,`no`);--> statement-breakpoint
CREATE INDEX `plan_periods_open` ON `plan_periods` (`user_id`) WHERE "plan_periods"."closed_at" = 0;--> statement-breakpoint
CREATE TABLE `plans` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`title` text NOT NULL,
	`description` text DEFAULT '' NOT NULL,
	`price_minor` integer DEFAULT 0 NOT NULL,
	`currency` text DEFAULT '' NOT NULL,
	`wallet_price` integer DEFAULT 0 NOT NULL,
	`duration_unit` text NOT NULL,
	`duration_count` integer NOT NULL,
	`reset` text DEFAULT 'none' NOT NULL,
	`quota` integer NOT NULL,
	`group` text DEFAULT '' NOT NULL,
	`overflow` integer DEFAULT true NOT NULL,
	`max_per_user` integer DEFAULT 0 NOT NULL,
	`stack` text DEFAULT 'extend' NOT NULL,
	`enabled` integer DEFAULT true NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `plans_title` ON `plans` (`title`) WHERE "plans"."deleted_at" is null;--> statement-breakpoint
CREATE TABLE `price_drafts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`title` text DEFAULT '' NOT NULL,
	`note` text DEFAULT '' NOT NULL,
	`changes` text DEFAULT '[]' NOT NULL,
	`parent` integer DEFAULT 0 NOT NULL,
	`state` text DEFAULT 'open' NOT NULL,
	`effective_at` integer DEFAULT 0 NOT NULL,
	`announce` integer DEFAULT false NOT NULL,
	`version` integer DEFAULT 1 NOT NULL,
	`revision_id` integer DEFAULT 0 NOT NULL,
	`failure` text DEFAULT '' NOT NULL,
	`user_id` integer NOT NULL,
	`username` text NOT NULL,
	`scheduler_id` integer DEFAULT 0 NOT NULL,
	`scheduler_name` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `price_drafts_due` ON `price_drafts` (`state`,`effective_at`);--> statement-breakpoint
CREATE TABLE `price_origins` (
	`name` text PRIMARY KEY NOT NULL,
	`price` text NOT NULL,
	`source` text NOT NULL,
	`version` text DEFAULT '' NOT NULL,
	`taken_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `price_revisions` (
	`id` integer PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`username` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`note` text DEFAULT '' NOT NULL,
	`changes` text NOT NULL,
	`change_count` integer NOT NULL,
	`fingerprint` text NOT NULL,
	`undo_of` integer DEFAULT 0 NOT NULL,
	`draft_id` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `price_revisions_undo` ON `price_revisions` (`undo_of`);--> statement-breakpoint
CREATE TABLE `redemptions` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`key_hash` text NOT NULL,
	`key_sealed` text NOT NULL,
	`status` integer DEFAULT 1 NOT NULL,
	`name` text DEFAULT '' NOT NULL,
	`quota` integer DEFAULT 100 NOT NULL,
	`created_time` integer DEFAULT 0 NOT NULL,
	`redeemed_time` integer DEFAULT 0 NOT NULL,
	`used_user_id` integer DEFAULT 0 NOT NULL,
	`expires_at` integer DEFAULT 0 NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `redemptions_key` ON `redemptions` (`key_hash`);--> statement-breakpoint
CREATE INDEX `redemptions_name` ON `redemptions` (`name`);--> statement-breakpoint
CREATE TABLE `remote_objects` (
	`user_id` integer NOT NULL,
	`kind` text NOT NULL,
	`upstream_id` text NOT NULL,
	`token_id` integer DEFAULT 0 NOT NULL,
	`channel_id` integer NOT NULL,
	`key_hash` text NOT NULL,
	`model_name` text DEFAULT '' NOT NULL,
	`token_count` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`state` text DEFAULT 'completed' NOT NULL,
	PRIMARY KEY(`user_id`, `kind`, `upstream_id`)
);
--> statement-breakpoint
CREATE INDEX `remote_objects_expiry` ON `remote_objects` (`expires_at`);--> statement-breakpoint
CREATE TABLE `reservations` (
	`request_id` text PRIMARY KEY NOT NULL,
	`user_id` integer NOT NULL,
	`token_id` integer DEFAULT 0 NOT NULL,
	`amount` integer NOT NULL,
	`node_id` text NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `reservations_expiry` ON `reservations` (`expires_at`);--> statement-breakpoint
CREATE TABLE `rollup_days` (
	`id` integer PRIMARY KEY NOT NULL,
	`zone` text NOT NULL,
	`from_hour` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `rollups` (
	`hour` integer NOT NULL,
	`user_id` integer NOT NULL,
	`model_name` text NOT NULL,
	`channel_id` integer NOT NULL,
	`token_id` integer NOT NULL,
	`group` text NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`prompt_tokens` integer DEFAULT 0 NOT NULL,
	`completion_tokens` integer DEFAULT 0 NOT NULL,
	`use_time_ms` integer DEFAULT 0 NOT NULL,
	`logged_count` integer DEFAULT 0 NOT NULL,
	`logged_quota` integer DEFAULT 0 NOT NULL,
	`cost_nanos` integer DEFAULT 0 NOT NULL,
	`cost_count` integer DEFAULT 0 NOT NULL,
	`cost_quota` integer DEFAULT 0 NOT NULL,
	`lost_nanos` integer DEFAULT 0 NOT NULL,
	`cache_input` integer DEFAULT 0 NOT NULL,
	`cache_read` integer DEFAULT 0 NOT NULL,
	`cache_saved` integer DEFAULT 0 NOT NULL,
	`error_count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`hour`, `user_id`, `model_name`, `channel_id`, `token_id`, `group`)
);
--> statement-breakpoint
CREATE INDEX `rollups_user` ON `rollups` (`user_id`,`hour`);--> statement-breakpoint
CREATE TABLE `rollups_by_channel` (
	`day` integer NOT NULL,
	`model_name` text NOT NULL,
	`channel_id` integer NOT NULL,
	`group` text NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`prompt_tokens` integer DEFAULT 0 NOT NULL,
	`completion_tokens` integer DEFAULT 0 NOT NULL,
	`use_time_ms` integer DEFAULT 0 NOT NULL,
	`logged_count` integer DEFAULT 0 NOT NULL,
	`logged_quota` integer DEFAULT 0 NOT NULL,
	`cost_nanos` integer DEFAULT 0 NOT NULL,
	`cost_count` integer DEFAULT 0 NOT NULL,
	`cost_quota` integer DEFAULT 0 NOT NULL,
	`lost_nanos` integer DEFAULT 0 NOT NULL,
	`cache_input` integer DEFAULT 0 NOT NULL,
	`cache_read` integer DEFAULT 0 NOT NULL,
	`cache_saved` integer DEFAULT 0 NOT NULL,
	`error_count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`day`, `model_name`, `channel_id`, `group`)
);
--> statement-breakpoint
CREATE TABLE `rollups_by_model` (
	`hour` integer NOT NULL,
	`model_name` text NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`prompt_tokens` integer DEFAULT 0 NOT NULL,
	`completion_tokens` integer DEFAULT 0 NOT NULL,
	`use_time_ms` integer DEFAULT 0 NOT NULL,
	`logged_count` integer DEFAULT 0 NOT NULL,
	`logged_quota` integer DEFAULT 0 NOT NULL,
	`cost_nanos` integer DEFAULT 0 NOT NULL,
	`cost_count` integer DEFAULT 0 NOT NULL,
	`cost_quota` integer DEFAULT 0 NOT NULL,
	`lost_nanos` integer DEFAULT 0 NOT NULL,
	`cache_input` integer DEFAULT 0 NOT NULL,
	`cache_read` integer DEFAULT 0 NOT NULL,
	`cache_saved` integer DEFAULT 0 NOT NULL,
	`error_count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`hour`, `model_name`)
);
--> statement-breakpoint
CREATE TABLE `rollups_by_token` (
	`day` integer NOT NULL,
	`token_id` integer NOT NULL,
	`user_id` integer NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`prompt_tokens` integer DEFAULT 0 NOT NULL,
	`completion_tokens` integer DEFAULT 0 NOT NULL,
	`use_time_ms` integer DEFAULT 0 NOT NULL,
	`logged_count` integer DEFAULT 0 NOT NULL,
	`logged_quota` integer DEFAULT 0 NOT NULL,
	`cost_nanos` integer DEFAULT 0 NOT NULL,
	`cost_count` integer DEFAULT 0 NOT NULL,
	`cost_quota` integer DEFAULT 0 NOT NULL,
	`lost_nanos` integer DEFAULT 0 NOT NULL,
	`cache_input` integer DEFAULT 0 NOT NULL,
	`cache_read` integer DEFAULT 0 NOT NULL,
	`cache_saved` integer DEFAULT 0 NOT NULL,
	`error_count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`day`, `token_id`, `user_id`)
);
--> statement-breakpoint
CREATE INDEX `rollups_by_token_user` ON `rollups_by_token` (`user_id`,`day`);--> statement-breakpoint
CREATE TABLE `rollups_by_user` (
	`day` integer NOT NULL,
	`user_id` integer NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`prompt_tokens` integer DEFAULT 0 NOT NULL,
	`completion_tokens` integer DEFAULT 0 NOT NULL,
	`use_time_ms` integer DEFAULT 0 NOT NULL,
	`logged_count` integer DEFAULT 0 NOT NULL,
	`logged_quota` integer DEFAULT 0 NOT NULL,
	`cost_nanos` integer DEFAULT 0 NOT NULL,
	`cost_count` integer DEFAULT 0 NOT NULL,
	`cost_quota` integer DEFAULT 0 NOT NULL,
	`lost_nanos` integer DEFAULT 0 NOT NULL,
	`cache_input` integer DEFAULT 0 NOT NULL,
	`cache_read` integer DEFAULT 0 NOT NULL,
	`cache_saved` integer DEFAULT 0 NOT NULL,
	`error_count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`day`, `user_id`)
);
--> statement-breakpoint
CREATE TABLE `rollups_by_user_model` (
	`day` integer NOT NULL,
	`user_id` integer NOT NULL,
	`model_name` text NOT NULL,
	`count` integer DEFAULT 0 NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`prompt_tokens` integer DEFAULT 0 NOT NULL,
	`completion_tokens` integer DEFAULT 0 NOT NULL,
	`use_time_ms` integer DEFAULT 0 NOT NULL,
	`logged_count` integer DEFAULT 0 NOT NULL,
	`logged_quota` integer DEFAULT 0 NOT NULL,
	`cost_nanos` integer DEFAULT 0 NOT NULL,
	`cost_count` integer DEFAULT 0 NOT NULL,
	`cost_quota` integer DEFAULT 0 NOT NULL,
	`lost_nanos` integer DEFAULT 0 NOT NULL,
	`cache_input` integer DEFAULT 0 NOT NULL,
	`cache_read` integer DEFAULT 0 NOT NULL,
	`cache_saved` integer DEFAULT 0 NOT NULL,
	`error_count` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`day`, `user_id`, `model_name`)
);
--> statement-breakpoint
CREATE TABLE `session_secrets` (
	`key` text PRIMARY KEY NOT NULL,
	`value_sealed` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`user_id` integer NOT NULL,
	`session_version` integer NOT NULL,
	`method` text NOT NULL,
	`provider` text DEFAULT '' NOT NULL,
	`ip` text DEFAULT '' NOT NULL,
	`last_ip` text DEFAULT '' NOT NULL,
	`user_agent` text DEFAULT '' NOT NULL,
	`created_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`sudo_until` integer DEFAULT 0 NOT NULL,
	`revoked_at` integer,
	`reason` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE INDEX `sessions_user` ON `sessions` (`user_id`);--> statement-breakpoint
CREATE INDEX `sessions_expiry` ON `sessions` (`expires_at`);--> statement-breakpoint
CREATE INDEX `sessions_revoked` ON `sessions` (`revoked_at`) WHERE "sessions"."revoked_at" is not null;--> statement-breakpoint
CREATE TABLE `setups` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`version` text NOT NULL,
	`initialized_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `tasks` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`created_at` integer DEFAULT 0 NOT NULL,
	`updated_at` integer DEFAULT 0 NOT NULL,
	`task_id` text DEFAULT '' NOT NULL,
	`platform` text DEFAULT '' NOT NULL,
	`user_id` integer NOT NULL,
	`token_id` integer DEFAULT 0 NOT NULL,
	`channel_id` integer DEFAULT 0 NOT NULL,
	`key_id` integer DEFAULT 0 NOT NULL,
	`group` text DEFAULT '' NOT NULL,
	`model_name` text DEFAULT '' NOT NULL,
	`request_id` text DEFAULT '' NOT NULL,
	`quota` integer DEFAULT 0 NOT NULL,
	`settled_hour` integer DEFAULT 0 NOT NULL,
	`refunded` integer DEFAULT false NOT NULL,
	`action` text DEFAULT '' NOT NULL,
	`status` text DEFAULT '' NOT NULL,
	`submit_time` integer DEFAULT 0 NOT NULL,
	`start_time` integer DEFAULT 0 NOT NULL,
	`finish_time` integer DEFAULT 0 NOT NULL,
	`progress` text DEFAULT '0%' NOT NULL,
	`fail_reason` text DEFAULT '' NOT NULL,
	`properties` text DEFAULT '' NOT NULL,
	`data` text DEFAULT '' NOT NULL,
	`polls` integer DEFAULT 0 NOT NULL,
	`next_poll_ms` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `tasks_user` ON `tasks` (`user_id`,`submit_time`);--> statement-breakpoint
CREATE INDEX `tasks_task_id` ON `tasks` (`task_id`);--> statement-breakpoint
CREATE INDEX `tasks_open` ON `tasks` (`progress`) WHERE "tasks"."progress" <> '100%';--> statement-breakpoint
CREATE TABLE `tokens` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`key_hash` text NOT NULL,
	`key_sealed` text NOT NULL,
	`previous_key_hash` text,
	`previous_until` integer DEFAULT 0 NOT NULL,
	`key_head` text DEFAULT '' NOT NULL,
	`key_tail` text DEFAULT '' NOT NULL,
	`status` integer DEFAULT 1 NOT NULL,
	`name` text DEFAULT '' NOT NULL,
	`created_time` integer DEFAULT 0 NOT NULL,
	`accessed_time` integer DEFAULT 0 NOT NULL,
	`expired_time` integer DEFAULT -1 NOT NULL,
	`remain_quota` integer DEFAULT 0 NOT NULL,
	`used_quota` integer DEFAULT 0 NOT NULL,
	`quota_base` integer DEFAULT 0 NOT NULL,
	`unlimited_quota` integer DEFAULT false NOT NULL,
	`model_limits_enabled` integer DEFAULT false NOT NULL,
	`model_limits` text DEFAULT '' NOT NULL,
	`allow_ips` text DEFAULT '' NOT NULL,
	`group` text DEFAULT '' NOT NULL,
	`auto_groups` text DEFAULT '' NOT NULL,
	`budget_quota` integer DEFAULT 0 NOT NULL,
	`budget_period` text DEFAULT 'month' NOT NULL,
	`rpm_limit` integer DEFAULT 0 NOT NULL,
	`tpm_limit` integer DEFAULT 0 NOT NULL,
	`max_concurrency` integer DEFAULT 0 NOT NULL,
	`max_quota` integer DEFAULT 0 NOT NULL,
	`deleted_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tokens_key` ON `tokens` (`key_hash`);--> statement-breakpoint
CREATE UNIQUE INDEX `tokens_previous_key` ON `tokens` (`previous_key_hash`);--> statement-breakpoint
CREATE INDEX `tokens_user` ON `tokens` (`user_id`);--> statement-breakpoint
CREATE INDEX `tokens_name` ON `tokens` (`name`);--> statement-breakpoint
CREATE TABLE `totps` (
	`user_id` integer PRIMARY KEY NOT NULL,
	`secret_sealed` text NOT NULL,
	`last_step` integer DEFAULT 0 NOT NULL,
	`wrong` integer DEFAULT 0 NOT NULL,
	`wrong_since` integer DEFAULT 0 NOT NULL,
	`locks` integer DEFAULT 0 NOT NULL,
	`locked_until` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `user_bulk_items` (
	`bulk_id` integer NOT NULL,
	`user_id` integer NOT NULL,
	`state` integer DEFAULT 0 NOT NULL,
	`code` text DEFAULT '' NOT NULL,
	`params` text DEFAULT '' NOT NULL,
	PRIMARY KEY(`bulk_id`, `user_id`)
);
--> statement-breakpoint
CREATE INDEX `user_bulk_items_state` ON `user_bulk_items` (`bulk_id`,`state`,`user_id`);--> statement-breakpoint
CREATE TABLE `user_bulks` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`action` text NOT NULL,
	`params` text NOT NULL,
	`reason` text DEFAULT '' NOT NULL,
	`actor` text NOT NULL,
	`actor_id` integer NOT NULL,
	`total` integer NOT NULL,
	`created_at` integer NOT NULL,
	`lease_until` integer DEFAULT 0 NOT NULL,
	`finished_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `user_bulks_open` ON `user_bulks` (`lease_until`) WHERE "user_bulks"."finished_at" = 0;--> statement-breakpoint
CREATE TABLE `user_devices` (
	`user_id` integer NOT NULL,
	`hash` text NOT NULL,
	`last_seen_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `hash`)
);
--> statement-breakpoint
CREATE TABLE `user_import_rows` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`bulk_id` integer NOT NULL,
	`line` integer NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`username` text DEFAULT '' NOT NULL,
	`row_sealed` text DEFAULT '' NOT NULL,
	`state` integer DEFAULT 0 NOT NULL,
	`code` text DEFAULT '' NOT NULL,
	`params` text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `user_import_rows_line` ON `user_import_rows` (`bulk_id`,`line`);--> statement-breakpoint
CREATE INDEX `user_import_rows_state` ON `user_import_rows` (`bulk_id`,`state`,`line`);--> statement-breakpoint
CREATE TABLE `user_plans` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`user_id` integer NOT NULL,
	`plan_id` integer NOT NULL,
	`title` text NOT NULL,
	`duration_unit` text NOT NULL,
	`duration_count` integer NOT NULL,
	`reset` text NOT NULL,
	`quota` integer NOT NULL,
	`group` text DEFAULT '' NOT NULL,
	`overflow` integer NOT NULL,
	`stack` text NOT NULL,
	`zone` text NOT NULL,
	`source` text NOT NULL,
	`trade_no` text DEFAULT '' NOT NULL,
	`paid_quota` integer DEFAULT 0 NOT NULL,
	`starts_at` integer NOT NULL,
	`ends_at` integer NOT NULL,
	`status` text NOT NULL,
	`period_no` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`cancelled_at` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE INDEX `user_plans_user` ON `user_plans` (`user_id`);--> statement-breakpoint
CREATE INDEX `user_plans_plan` ON `user_plans` (`plan_id`);--> statement-breakpoint
CREATE UNIQUE INDEX `user_plans_order` ON `user_plans` (`trade_no`) WHERE "user_plans"."trade_no" <> '';--> statement-breakpoint
CREATE TABLE `users` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`username` text NOT NULL,
	`username_key` text DEFAULT '' NOT NULL,
	`password_hash` text DEFAULT '' NOT NULL,
	`display_name` text DEFAULT '' NOT NULL,
	`role` integer DEFAULT 1 NOT NULL,
	`status` integer DEFAULT 1 NOT NULL,
	`email` text DEFAULT '' NOT NULL,
	`email_key` text DEFAULT '' NOT NULL,
	`passkey_handle` text DEFAULT '' NOT NULL,
	`terms_version` text DEFAULT '' NOT NULL,
	`terms_accepted_at` integer DEFAULT 0 NOT NULL,
	`access_token_hash` text,
	`quota` integer DEFAULT 0 NOT NULL,
	`used_quota` integer DEFAULT 0 NOT NULL,
	`request_count` integer DEFAULT 0 NOT NULL,
	`group` text DEFAULT 'default' NOT NULL,
	`aff_code` text,
	`aff_count` integer DEFAULT 0 NOT NULL,
	`aff_quota` integer DEFAULT 0 NOT NULL,
	`invite_reward` integer DEFAULT 0 NOT NULL,
	`aff_history_quota` integer DEFAULT 0 NOT NULL,
	`inviter_id` integer DEFAULT 0 NOT NULL,
	`plan_mark` integer DEFAULT 0 NOT NULL,
	`plan_wallet` integer DEFAULT 0 NOT NULL,
	`plan_strict` integer DEFAULT false NOT NULL,
	`plan_until` integer DEFAULT 0 NOT NULL,
	`plan_group` text DEFAULT '' NOT NULL,
	`setting` text DEFAULT '' NOT NULL,
	`second_factor` integer DEFAULT false NOT NULL,
	`limits` text DEFAULT '' NOT NULL,
	`session_version` integer DEFAULT 1 NOT NULL,
	`remark` text DEFAULT '' NOT NULL,
	`flagged` integer DEFAULT false NOT NULL,
	`created_at` integer DEFAULT 0 NOT NULL,
	`last_seen_at` integer DEFAULT 0 NOT NULL,
	`deleted_at` integer,
	`erased_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_username` ON `users` (`username`);--> statement-breakpoint
CREATE UNIQUE INDEX `users_access_token` ON `users` (`access_token_hash`);--> statement-breakpoint
CREATE UNIQUE INDEX `users_aff_code` ON `users` (`aff_code`);--> statement-breakpoint
CREATE UNIQUE INDEX `users_username_key` ON `users` (`username_key`) WHERE "users"."username_key" <> '';--> statement-breakpoint
CREATE UNIQUE INDEX `users_email_key` ON `users` (`email_key`) WHERE "users"."email_key" <> '';--> statement-breakpoint
CREATE INDEX `users_inviter` ON `users` (`inviter_id`);--> statement-breakpoint
CREATE INDEX `users_quota` ON `users` (`quota`);--> statement-breakpoint
CREATE INDEX `users_group` ON `users` (`group`);--> statement-breakpoint
CREATE INDEX `users_seen` ON `users` (`last_seen_at`);--> statement-breakpoint
CREATE INDEX `users_plan_until` ON `users` (`plan_until`) WHERE "users"."plan_until" > 0;--> statement-breakpoint
CREATE INDEX `users_staff` ON `users` (`role`) WHERE "users"."role" >= 10;--> statement-breakpoint
CREATE INDEX `users_flagged` ON `users` (`id`) WHERE "users"."flagged";