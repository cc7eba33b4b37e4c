// Deleting rows of a list: the question that names them, the deletion, the toast, the list anew.
import { toast, toastFailure } from "../lib/toasts.ts";
import { confirm } from "./confirm.tsx";
import type { ConfirmQuestion } from "./confirm.tsx";

/** More rows than this are confirmed by typing their number. */
const MOST_WITHOUT_TYPING = 20;

export interface Deletion extends Pick<ConfirmQuestion, "title" | "text" | "action"> {
  /** How many rows go. */
  count: number;
  /** Deletes, and gives the sentence to say. */
  run: () => Promise<string>;
  /** Reads the list anew, whatever came of it. */
  refresh: () => Promise<void>;
  /** Drops the selection, once the rows are gone. */
  clear?: (() => void) | undefined;
}

export async function deleteRows({ count, run, refresh, clear, ...question }: Deletion): Promise<void> {
  const isConfirmed = await confirm({
    ...question,
    isDanger: true,
    ...(count > MOST_WITHOUT_TYPING ? { typed: String(count) } : {}),
  });
  if (!isConfirmed) return;
  try {
    toast({ text: await run() });
    clear?.();
  } catch (error) {
    toastFailure(error);
  }
  await refresh();
}
