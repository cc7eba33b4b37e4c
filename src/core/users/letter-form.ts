// A letter as it leaves the house: plain text and HTML of the same words, under the site's name and logo.
// Refuses markup from outside: whatever is put into HTML is escaped, and a name cannot begin a line of the head.
import { LANGUAGES } from "../../shared/enums.ts";
import type { Language } from "../../shared/enums.ts";
import type { Letter } from "../../net/mail.ts";
import type { Notice } from "../../net/notify.ts";
import type { Deps } from "../deps.ts";

/** What a letter says; how it looks is decided here. */
export interface LetterWords {
  subject: string;
  lines: readonly string[];
  /** A code to be typed: large, alone on its line. */
  code?: string;
  links?: readonly { label: string; url: string }[];
  /** Small, at the end: why it came, and what to do about it. */
  remark?: string;
}

const INK = "#1f2937";
const MUTED = "#6b7280";

/** The address of a path of this site; empty where the operator has not said where it is. */
export function siteLink({ options }: Pick<Deps, "options">, path: string): string {
  const base = options.get("ServerAddress").replace(/\/+$/, "");
  return base === "" ? "" : base + path;
}

/** A logo that mail programs can load: an address of its own, or a path of a site whose address is known. */
function logoOf(deps: Pick<Deps, "options">): string {
  const logo = deps.options.get("Logo").trim();
  if (/^https?:\/\//i.test(logo)) return logo;
  return logo.startsWith("/") && !logo.startsWith("//") ? siteLink(deps, logo) : "";
}

function plainOf(site: string, { lines, code, links = [], remark }: LetterWords): string {
  const parts = [...lines];
  if (code !== undefined) parts.push(code);
  for (const { label, url } of links) parts.push(`${label}\n${url}`);
  if (remark !== undefined) parts.push(remark);
  return `${parts.join("\n\n")}\n\n${site}\n`;
}

function htmlOf(
  { site, logo, language }: { site: string; logo: string; language: Language },
  { lines, code, links = [], remark }: LetterWords,
): string {
  const text = Bun.escapeHTML;
  const paragraph = (line: string) => `<p style="margin:0 0 16px">${text(line)}</p>`;
  const head =
    logo === ""
      ? ""
      : `<img src="${text(logo)}" alt="" height="32" style="height:32px;vertical-align:middle;margin-right:8px">`;
  const button = (label: string, url: string) =>
    `<p style="margin:0 0 16px"><a href="${text(url)}" style="color:#1d4ed8">${text(label)}</a><br>` +
    `<span style="color:${MUTED};font-size:13px;word-break:break-all">${text(url)}</span></p>`;
  return [
    `<!doctype html><html lang="${language}"><head><meta charset="utf-8"></head>`,
    `<body style="margin:0;padding:24px;background:#f3f4f6;color:${INK};font:16px/1.5 system-ui,sans-serif">`,
    `<div style="max-width:520px;margin:0 auto;padding:24px;background:#ffffff;border-radius:8px">`,
    `<p style="margin:0 0 24px;font-weight:600">${head}${text(site)}</p>`,
    ...lines.map(paragraph),
    code === undefined
      ? ""
      : `<p style="margin:0 0 16px;font:600 28px/1.2 ui-monospace,monospace;letter-spacing:4px">${text(code)}</p>`,
    ...links.map(({ label, url }) => button(label, url)),
    remark === undefined ? "" : `<p style="margin:0;color:${MUTED};font-size:13px">${text(remark)}</p>`,
    `</div></body></html>`,
  ].join("");
}

/** In which language to write to an account: as `asked` right now, else by its own word (JSON text), else the site's. */
export function letterLanguage(
  { options }: Pick<Deps, "options">,
  setting: string,
  asked?: Language,
): Language {
  const own = /"language":"(zh|en)"/.exec(setting)?.[1];
  return asked ?? LANGUAGES.find((each) => each === own) ?? options.get("site.language");
}

/** `to`: the address as it is stored. */
export function letterOf(
  deps: Pick<Deps, "options">,
  to: string,
  language: Language,
  words: LetterWords,
): Letter {
  const site = deps.options.get("SystemName").replaceAll(/\p{C}/gu, " ");
  const form = { site, logo: logoOf(deps), language };
  return { to, subject: words.subject, text: plainOf(site, words), html: htmlOf(form, words) };
}

/** A notice as a letter: in the form of all others. */
export function noticeLetter(
  deps: Pick<Deps, "options">,
  to: string,
  language: Language,
  { title, content, letter }: Notice,
): Letter {
  const said = letter ?? { lines: content.split("\n").filter((line) => line.trim() !== ""), links: [] };
  return letterOf(deps, to, language, { subject: title, ...said });
}
