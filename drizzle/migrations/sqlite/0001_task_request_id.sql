ALTER TABLE `midjourneys` ADD `request_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `tasks` ADD `request_id` text DEFAULT '' NOT NULL;