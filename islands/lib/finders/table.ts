// The finders of the palette, in the order in which their rows are shown. A new area adds its line here.
import { channels } from "./channels.ts";
import type { Finder } from "./finder.ts";
import { models } from "./models.ts";
import { requests } from "./requests.ts";
import { settings } from "./settings.ts";
import { tokens } from "./tokens.ts";
import { users } from "./users.ts";

export const FINDERS: readonly Finder[] = [requests, channels, tokens, users, settings, models];
