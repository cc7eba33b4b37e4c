// The table of special editors and panels, fetched once while the page is idle; until then, options are drawn by their kind.
import { signal } from "@preact/signals-react";
import { loadAllTexts } from "../../lib/all-texts.ts";
import type { EditorTable } from "./editor-props.ts";

/** Undefined on the server and until the editors are there. */
export const editors = signal<EditorTable | undefined>(undefined);

/** Failing is no harm: every option has a control without them. */
export async function fetchEditors(): Promise<void> {
  if (editors.peek()) return;
  try {
    const [{ editorOf, extraOf, panelOf, panelKeys }] = await Promise.all([
      import("./editors/index.tsx"),
      loadAllTexts(),
    ]);
    editors.value = { editorOf, extraOf, panelOf, panelKeys };
  } catch (error) {
    console.error(error);
  }
}
