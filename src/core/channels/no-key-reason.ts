// Why a channel is off that has no key on: in the language of the site, as every reason of ours that a row keeps.
import type { Deps } from "../deps.ts";
import { CHANNEL_WITHOUT_KEY } from "../logs/sentences.ts";

export function noKeyReason({ options }: Pick<Deps, "options">): string {
  return CHANNEL_WITHOUT_KEY[options.get("site.language")];
}
