// What pages that can make an account need beside the status: where the terms and the privacy notice can be read.
import type { LegalPlaces } from "../../islands/lib/sign-in.ts";
import type { LoaderContext } from "./page.ts";

/** An address of its own, else the page that shows the text. */
function placeOf(text: string, path: string): string {
  const trimmed = text.trim();
  if (trimmed === "") return "";
  return /^https?:\/\/\S+$/.test(trimmed) ? trimmed : path;
}

export function loadLegalPlaces({ deps: { options } }: LoaderContext): LegalPlaces {
  return {
    terms: placeOf(options.get("legal.terms"), "/legal/terms"),
    privacy: placeOf(options.get("legal.privacy"), "/legal/privacy"),
  };
}
