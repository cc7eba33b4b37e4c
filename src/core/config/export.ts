// The site as a settings file: sorted, so that two exports of one state are equal, and without anything secret.
import { FORMAT } from "./document.ts";
import { shownChannels } from "./channels.ts";
import { shownGroups } from "./groups.ts";
import { shownOptions } from "./options.ts";
import { shownPlans } from "./plans.ts";
import { shownPrices } from "./prices.ts";
import { readState } from "./state.ts";
import type { ConfigDeps } from "./state.ts";

export interface ConfigExport {
  document: Record<string, unknown>;
  /** Secret options that are set, and channels with a key: their values stay here. */
  secrets: string[];
  /** Names of channels that a file cannot speak of, because several have them. */
  unnamed: string[];
}

export async function exportConfig(deps: ConfigDeps): Promise<ConfigExport> {
  const { texts, channels: rows, plans } = await readState(deps);
  const { options, secrets } = shownOptions(texts);
  const { channels, unnamed } = shownChannels(rows);
  const prices = shownPrices(texts);
  const document = {
    format: FORMAT,
    options,
    ...shownGroups(texts),
    prices,
    channels,
    plans: shownPlans(plans),
  };
  return { document, secrets, unnamed };
}
