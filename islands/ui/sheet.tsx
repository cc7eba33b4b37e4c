// A sheet: many rows of cells that are edited as in a spreadsheet, by keyboard, pointer and clipboard; a list of cards on phones.
// Refuses to write anything itself: what is typed, pasted, filled and cleared goes to its owner, each action as one step.
import { useIsPhone } from "../lib/phone.ts";
import { SheetCards } from "./sheet-cards.tsx";
import { SheetGrid } from "./sheet-grid.tsx";
import type { SheetProps } from "./sheet-types.ts";

/** Drawn in the browser only (a `lazyPart`): its form hangs on the width. */
export function Sheet<Row>(props: SheetProps<Row>) {
  const isPhone = useIsPhone();
  if (props.rows.length === 0 && props.empty !== undefined) return props.empty;
  return isPhone ? <SheetCards {...props} /> : <SheetGrid {...props} />;
}
