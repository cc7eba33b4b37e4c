// What the channel screen does to channels comes when it is first used, with the texts that only parts say: the page
// itself brings no more than it shows.
import { loadAllTexts } from "../../lib/all-texts.ts";
import { toastFailure } from "../../lib/toasts.ts";

export type Actions = typeof import("./actions.ts");

export async function loadActions(): Promise<Actions> {
  const [actions] = await Promise.all([import("./actions.ts"), loadAllTexts()]);
  return actions;
}

/** Loads the actions and runs one; failures are shown. */
export function withActions(work: (actions: Actions) => Promise<void>): void {
  void loadActions().then(work).catch(toastFailure);
}
