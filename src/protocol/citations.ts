// Source references of an answer, between the dialects' spellings.
// Refuses to invent: a reference without an address exists only in its own dialect.
import type { DialectName, JsonObject } from "./canonical.ts";
import { defined } from "./assemble.ts";
import { asNumber, asObject, asString } from "./json.ts";

interface Citation {
  url: string;
  title?: string;
  quote?: string;
  /** Character range in the answer's text. */
  start?: number;
  end?: number;
}

function read(dialect: DialectName, value: unknown): Citation | undefined {
  const wire = asObject(value);
  const source = dialect === "openai-chat" ? asObject(wire?.["url_citation"]) : wire;
  if (!source) return undefined;
  const web = dialect === "gemini" ? asObject(source["web"]) : source;
  const url = asString(web?.[dialect === "gemini" ? "uri" : "url"]);
  if (!web || url === undefined) return undefined;
  return {
    url,
    ...defined({
      title: asString(web["title"]),
      quote: asString(web["cited_text"]),
      start: asNumber(source["start_index"]),
      end: asNumber(source["end_index"]),
    }),
  };
}

/** The note's reference in the spelling of `target`; undefined when it cannot be said there. */
export function citationFor(target: DialectName, note: { dialect: DialectName; value: unknown }): unknown {
  if (note.dialect === target) return note.value;
  const citation = read(note.dialect, note.value);
  if (!citation) return undefined;
  const { url, title, quote, start, end } = citation;
  const range: JsonObject = { start_index: start ?? 0, end_index: end ?? 0 };
  switch (target) {
    case "openai-chat":
      return { type: "url_citation", url_citation: { ...range, url, title: title ?? url } };
    case "openai-responses":
      return { type: "url_citation", ...range, url, title: title ?? url };
    case "anthropic":
      return {
        type: "web_search_result_location",
        url,
        title: title ?? null,
        encrypted_index: "",
        cited_text: quote ?? "",
      };
    case "gemini":
      return { web: { uri: url, title: title ?? url } };
  }
}
