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
	`updated_at` integer DEFAULT 0 NOT NULL
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
CREATE TABLE `user_devices` (
	`user_id` integer NOT NULL,
	`hash` text NOT NULL,
	`last_seen_at` integer NOT NULL,
	PRIMARY KEY(`user_id`, `hash`)
);
--> statement-breakpoint
ALTER TABLE `midjourneys` ADD `settled_hour` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `tasks` ADD `settled_hour` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX `logs_request` ON `logs` (`request_id`);