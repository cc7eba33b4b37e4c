// What every section of the price desk is given.
// Holds types only.
import type { Desk } from "./desk.ts";

export interface SectionProps {
  desk: Desk;
  /** Root: may apply, undo and fetch. */
  canApply: boolean;
  /** Reads everything anew from the server: after something was applied or undone. */
  reload: () => Promise<void>;
}
