// Narrowing of foreign JSON: every reader of wire objects starts here.
// What has another shape reads as absent.
import type { JsonObject } from "./canonical.ts";

export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

export function asList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function asBoolean(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

/** Text as it is, anything else as JSON. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Parsed JSON, or undefined when the text is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The object's fields that are not in `known`, or undefined when there are none. A short list is quicker than a set. */
export function rest(
  object: JsonObject,
  known: ReadonlySet<string> | readonly string[],
): JsonObject | undefined {
  let out: JsonObject | undefined;
  const list = Array.isArray(known) ? (known as readonly string[]) : undefined;
  for (const key in object) {
    if (list ? list.includes(key) : (known as ReadonlySet<string>).has(key)) continue;
    out ??= {};
    out[key] = object[key];
  }
  return out;
}

/** Splits `data:image/png;base64,…`; undefined for other addresses. Parameters of the type are dropped. */
export function parseDataUrl(url: string): { mime: string; data: string } | undefined {
  if (!url.startsWith("data:")) return undefined;
  const comma = url.indexOf(",");
  if (comma === -1) return undefined;
  const head = url.slice(5, comma).split(";");
  const mime = head[0] || "text/plain";
  const body = url.slice(comma + 1);
  if (head.includes("base64")) return { mime, data: body };
  try {
    return { mime, data: Buffer.from(decodeURIComponent(body)).toString("base64") };
  } catch {
    return undefined;
  }
}

export function dataUrl(mime: string, data: string): string {
  return `data:${mime};base64,${data}`;
}

/** Joins base64 pieces that were encoded one by one. */
export function joinBase64(pieces: readonly string[]): string {
  const inner = pieces.slice(0, -1);
  if (inner.every((piece) => piece.length % 4 === 0 && !piece.endsWith("="))) return pieces.join("");
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, "base64"))).toString("base64");
}
