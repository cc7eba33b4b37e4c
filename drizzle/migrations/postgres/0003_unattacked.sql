CREATE TABLE "nodes" (
	"node_id" text PRIMARY KEY NOT NULL,
	"incarnation" bigint DEFAULT 0 NOT NULL,
	"history" text NOT NULL,
	"mark" bigint DEFAULT 0 NOT NULL,
	"journaled" bigint DEFAULT 0 NOT NULL,
	"entered" bigint DEFAULT 0 NOT NULL,
	"set_aside" bigint DEFAULT 0 NOT NULL,
	"skipped" bigint DEFAULT 0 NOT NULL,
	"lease_until" bigint DEFAULT 0 NOT NULL,
	"place" text DEFAULT '' NOT NULL,
	"updated_at" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"user_id" bigint NOT NULL,
	"session_version" integer NOT NULL,
	"method" text NOT NULL,
	"provider" text DEFAULT '' NOT NULL,
	"ip" text DEFAULT '' NOT NULL,
	"last_ip" text DEFAULT '' NOT NULL,
	"user_agent" text DEFAULT '' NOT NULL,
	"created_at" bigint NOT NULL,
	"last_seen_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"sudo_until" bigint DEFAULT 0 NOT NULL,
	"revoked_at" bigint,
	"reason" text DEFAULT '' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "user_devices" (
	"user_id" bigint NOT NULL,
	"hash" text NOT NULL,
	"last_seen_at" bigint NOT NULL,
	CONSTRAINT "user_devices_user_id_hash_pk" PRIMARY KEY("user_id","hash")
);
--> statement-breakpoint
ALTER TABLE "midjourneys" ADD COLUMN "settled_hour" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "settled_hour" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
CREATE INDEX "sessions_user" ON "sessions" USING btree ("user_id");--> statement-breakpoint
CREATE INDEX "sessions_expiry" ON "sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "sessions_revoked" ON "sessions" USING btree ("revoked_at") WHERE "sessions"."revoked_at" is not null;--> statement-breakpoint
CREATE INDEX "logs_request" ON "logs" USING btree ("request_id");