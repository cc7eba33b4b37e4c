// A sheet: many rows of cells that are edited as in a spreadsheet, by keyboard, pointer and clipboard; a list of cards on phones.
// Refuses to write anything itself: what is typed, pasted, filled and cleared goes to its owner, each action as one step.
import { useSyncExternalStore } from "react";
import { SheetCards } from "./sheet-cards.tsx";
import { SheetGrid } from "./sheet-grid.tsx";
import type { SheetProps } from "./sheet-types.ts";

const PHONE = "(max-width: 639px)";

function followWidth(onChange: () => void): () => void {
  const query = matchMedia(PHONE);
  query.addEventListener("change", onChange);
  return () => query.removeEventListener("change", onChange);
}

/** Drawn in the browser only (a `lazyPart`): the server does not know the width. */
export function Sheet<Row>(props: SheetProps<Row>) {
  const isPhone = useSyncExternalStore(
    followWidth,
    () => matchMedia(PHONE).matches,
    () => false,
  );
  if (props.rows.length === 0 && props.empty !== undefined) return props.empty;
  return isPhone ? <SheetCards {...props} /> : <SheetGrid {...props} />;
}
