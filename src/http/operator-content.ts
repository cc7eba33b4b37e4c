// Texts of the operator that pages show: an address to frame, HTML, or Markdown.
// Refuses raw HTML: whatever comes out is sanitised, and a preview tells what was cut out.
import { sanitise, sanitiseWithReport } from "./sanitise.ts";
import type { Removal } from "./sanitise.ts";

/** Operator content as it may be written: an address to frame, HTML, or Markdown. */
export interface OperatorContent {
  html: string;
  frameUrl: string;
}

function htmlOf(text: string): string {
  return /^\s*</.test(text) ? text : Bun.markdown.html(text);
}

/** The address that the whole text is; "" where it is something else. */
function frameUrlOf(text: string): string {
  return /^https?:\/\/\S+$/.test(text) ? text : "";
}

export function operatorContent(text: string): OperatorContent {
  const trimmed = text.trim();
  const frameUrl = frameUrlOf(trimmed);
  if (frameUrl !== "" || trimmed === "") return { html: "", frameUrl };
  return { html: sanitise(htmlOf(trimmed)), frameUrl: "" };
}

/** What pages would show of a text that is not saved yet, and what they would leave out. */
export interface ContentPreview {
  html: string;
  frame_url: string;
  removed: Removal[];
}

/** `isHtml`: the footer, which is neither Markdown nor a frame. */
export function previewContent(text: string, isHtml: boolean): ContentPreview {
  const trimmed = text.trim();
  const frameUrl = isHtml ? "" : frameUrlOf(trimmed);
  if (frameUrl !== "" || trimmed === "") return { html: "", frame_url: frameUrl, removed: [] };
  const { html, removed } = sanitiseWithReport(isHtml ? text : htmlOf(trimmed));
  return { html, frame_url: "", removed };
}
