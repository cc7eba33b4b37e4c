// What a panel is handed, read out of the table that the settings ask for panels. Types only.
import type { ComponentProps } from "react";
import type { EditorTable } from "../editor-props.ts";

export type OptionPanelProps = ComponentProps<NonNullable<ReturnType<EditorTable["panelOf"]>>>;
