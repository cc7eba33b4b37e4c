ALTER TABLE `midjourneys` ADD `image_pushed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `midjourneys` ADD `polls` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `midjourneys` ADD `next_poll_ms` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `tasks` ADD `polls` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `tasks` ADD `next_poll_ms` integer DEFAULT 0 NOT NULL;