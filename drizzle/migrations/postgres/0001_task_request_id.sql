ALTER TABLE "midjourneys" ADD COLUMN "request_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "request_id" text DEFAULT '' NOT NULL;