ALTER TABLE "midjourneys" ADD COLUMN "image_pushed" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "midjourneys" ADD COLUMN "polls" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "midjourneys" ADD COLUMN "next_poll_ms" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "polls" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "tasks" ADD COLUMN "next_poll_ms" bigint DEFAULT 0 NOT NULL;