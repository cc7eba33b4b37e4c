// Options that nothing acts on: known, kept and answered, because older clients read and write them, or because what reads
// them is still to come. A row leaves this file with the change that reads its option; test/core/options/readers.test.ts sees to it.
import type { OptionKey } from "./definitions.ts";

interface HiddenRow {
  /** Why nothing reads them. */
  reason: string;
  keys: readonly OptionKey[];
  /** A screen that only says whether the thing is switched on. */
  toldBy?: string;
}

export const hiddenRows: readonly HiddenRow[] = [
  {
    reason: "Left over from the ancestor of these gateways, where nothing read them either.",
    keys: [
      "FileUploadPermission",
      "FileDownloadPermission",
      "ImageUploadPermission",
      "ImageDownloadPermission",
      "StreamCacheQueueLength",
    ],
  },
  {
    reason: "Kept for older clients: nothing is ever bound to a channel that is off.",
    keys: ["channel_affinity_setting.keep_on_channel_disabled"],
  },
];

const HIDDEN: ReadonlySet<OptionKey> = new Set(hiddenRows.flatMap(({ keys }) => keys));

/** Whether nothing acts on it, so that a settings screen may leave it out. */
export function isHidden(key: OptionKey): boolean {
  return HIDDEN.has(key);
}
