// What the settings hand to the control of an option, whichever draws it. Types only.
import type { ComponentType } from "react";
import type { OptionRow } from "../../../src/shared/setting-rows.ts";

export type { OptionRow };

export interface OptionEditorProps {
  option: OptionRow;
  /** As it would be saved: what was typed, or what is stored. */
  value: string;
  onChange: (value: string) => void;
  /** Why the value was refused. */
  failure?: string | undefined;
  labelledBy: string;
  describedBy?: string | undefined;
  disabled?: boolean | undefined;
}

/** Draws several options of a group together. */
interface OptionPanelProps {
  rows: OptionRow[];
  value: (key: string) => string;
  onChange: (key: string, value: string) => void;
  failureOf: (key: string) => string | undefined;
  /** Reads what is stored anew: something else than the save bar has written. */
  refresh: () => Promise<void>;
}

/** What stands below the options of a group. */
export interface GroupExtraProps {
  /** Every option that is there, by key. */
  rows: ReadonlyMap<string, OptionRow>;
}

/** The special editors and panels, once they are fetched. */
export interface EditorTable {
  editorOf: (key: string) => ComponentType<OptionEditorProps> | undefined;
  panelOf: (group: string) => ComponentType<OptionPanelProps> | undefined;
  /** Options that the group's panel draws; the others keep their rows. */
  panelKeys: (group: string) => readonly string[];
  /** What a group shows besides its options. */
  extraOf: (group: string) => ComponentType<GroupExtraProps> | undefined;
}
