// What the drawing log knows of a task, and the words for its codes.
// What is not known is called unknown.
import type { StatusTone } from "../../ui/badges.tsx";
import type { DrawingRow, ListPageData } from "../../lib/wire.ts";

export interface DrawingPageData extends ListPageData<DrawingRow> {
  isAdmin: boolean;
}

const ACTIONS = new Set(
  (
    "IMAGINE UPSCALE VARIATION HIGH_VARIATION LOW_VARIATION PAN DESCRIBE BLEND UPLOAD SHORTEN REROLL INPAINT ZOOM " +
    "CUSTOM_ZOOM MODAL SWAP_FACE"
  ).split(" "),
);

export function actionKey(action: string): string {
  return ACTIONS.has(action) ? `midjourney.action.${action}` : "common.unknown";
}

const CODES: Record<number, [StatusTone, string]> = {
  0: ["attention", "midjourney.code.0"],
  1: ["ok", "midjourney.code.1"],
  21: ["running", "midjourney.code.21"],
  22: ["attention", "midjourney.code.22"],
};

export function codeLabel(code: number): [StatusTone, string] {
  return CODES[code] ?? ["off", "common.unknown"];
}

const STATUS: Record<string, [StatusTone, string]> = {
  NOT_START: ["off", "midjourney.status.NOT_START"],
  SUBMITTED: ["attention", "midjourney.status.SUBMITTED"],
  IN_PROGRESS: ["running", "midjourney.status.IN_PROGRESS"],
  SUCCESS: ["ok", "midjourney.status.SUCCESS"],
  FAILURE: ["broken", "midjourney.status.FAILURE"],
  MODAL: ["attention", "midjourney.status.MODAL"],
};

export function statusLabel(status: string): [StatusTone, string] {
  return (Object.hasOwn(STATUS, status) ? STATUS[status] : undefined) ?? ["off", "common.unknown"];
}
