// What the page of registration needs beside the status: where the terms and the privacy notice can be read.
import type { RegisterData } from "../../islands/screens/register/values.ts";
import type { LoaderContext } from "./page.ts";

/** An address of its own, else the page that shows the text. */
function placeOf(text: string, path: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  return /^https?:\/\/\S+$/.test(trimmed) ? trimmed : path;
}

export function loadRegister({ deps: { options } }: LoaderContext): RegisterData {
  return {
    terms: placeOf(options.get("legal.terms"), "/legal/terms"),
    privacy: placeOf(options.get("legal.privacy"), "/legal/privacy"),
  };
}
