// Reads a multipart form by its bytes: text fields as text, files as slices that nobody copies, and writes it anew.
// Refuses forms that two readers could understand differently, and more parts or larger heads than any client sends.
import { Failure } from "../../shared/failures.ts";

/** One part of a form; `bytes` is a slice of the request's body. */
export interface FormPart {
  name: string;
  /** Undefined for text fields. */
  filename: string | undefined;
  /** "" when the part names none. */
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
}

export interface Form {
  parts: readonly FormPart[];
  boundary: string;
  /** The client's own bytes read the same everywhere; others go out as they were read here. */
  isPlain: boolean;
}

const MAX_PARTS = 256;
const MAX_HEAD_BYTES = 8 * 1024;
const MAX_TEXT_BYTES = 4 * 1024 * 1024;
/** Two dashes and a line break: what may follow the last boundary. */
const END_BYTES = 4;
const BOUNDARY = /^[\w'()+,./:=? -]{1,70}$/;

function broken(reason: string): Failure {
  return new Failure("client", "form_broken", { params: { reason }, type: "invalid_request_error" });
}

/** The boundary of a multipart content type; throws for every other type. */
export function boundaryOf(contentType: string | null): string {
  const [type, ...parameters] = (contentType ?? "").split(";");
  if (type?.trim().toLowerCase() !== "multipart/form-data")
    throw broken("the content type is not multipart/form-data");
  // A quoted boundary may hold a semicolon.
  const found = /(?:^|;)\s*boundary=(?:"([^"]*)"|([^;]*))/i.exec(parameters.join(";"));
  const boundary = (found?.[1] ?? found?.[2] ?? "").trim();
  if (!BOUNDARY.test(boundary) || boundary.endsWith(" "))
    throw broken("the boundary is missing or not valid");
  return boundary;
}

const PARAMETER = /\s*([\w!#$%&'*+.^`|~-]+)=(?:"((?:[^"\\]|\\.)*)"|([^;"\s]*))\s*(?:;|$)/y;

/** Parameters of a disposition, read from the left: what stands inside of quotes is no parameter. */
function parametersOf(disposition: string): Map<string, string> {
  const found = new Map<string, string>();
  const semicolon = disposition.indexOf(";");
  let at = semicolon === -1 ? disposition.length : semicolon + 1;
  while (at < disposition.length && disposition.slice(at).trim() !== "") {
    PARAMETER.lastIndex = at;
    const [all = "", key = "", quotedValue, bare = ""] = PARAMETER.exec(disposition) ?? [];
    if (all === "") throw broken("a part's disposition cannot be read");
    const name = key.toLowerCase();
    if (found.has(name)) throw broken(`a part's disposition has two of ${name}`);
    found.set(name, quotedValue?.replaceAll("%22", '"').replaceAll(/\\(["\\])/g, "$1") ?? bare);
    at += all.length;
  }
  return found;
}

/** The name of a file; some clients write letters beyond ASCII in the form of other headers. */
function filenameOf(parameters: ReadonlyMap<string, string>): string | undefined {
  const encoded = parameters.get("filename*");
  if (encoded === undefined) return parameters.get("filename");
  const written = /^utf-8'[\w-]*'(.+)$/i.exec(encoded)?.[1];
  try {
    if (written !== undefined) return decodeURIComponent(written);
  } catch {
    // As it stands, then: the name decides nothing.
  }
  return parameters.get("filename") || encoded;
}

/** Heads of which no reader makes anything else: the usual two parameters, no escapes, no empty name of a file. */
const PLAIN = /^form-data; ?name="[^"\\%\p{Cc}]+"(?:; ?filename="[^"\\\p{Cc}]+")?$/u;
const PLAIN_HEADS: ReadonlySet<string> = new Set(["content-disposition", "content-type", "content-length"]);

interface PartHead extends Pick<FormPart, "name" | "filename" | "type"> {
  isPlain: boolean;
}

function readHead(text: string): PartHead {
  let disposition = "";
  let type = "";
  let isPlain = true;
  const seen = new Set<string>();
  for (const line of text.split("\r\n")) {
    const colon = line.indexOf(":");
    // A line that goes on from the one before would be a parameter to some and nothing to others.
    if (colon < 1 || /^\s|[\r\n]/.test(line)) throw broken("a part's head cannot be read");
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === "content-disposition" && seen.has(name)) throw broken("a part has two dispositions");
    isPlain &&= PLAIN_HEADS.has(name) && !seen.has(name);
    seen.add(name);
    if (name === "content-disposition") disposition = value;
    else if (name === "content-type") type = value;
    else if (name === "content-transfer-encoding" && !/^(?:binary|8bit|7bit)$/i.test(value))
      throw broken("encoded parts are not supported");
  }
  const parameters = parametersOf(disposition);
  const name = parameters.get("name");
  if (name === undefined || parameters.has("name*") || !/^form-data\s*;/i.test(disposition))
    throw broken("a part has no name");
  isPlain &&= PLAIN.test(disposition);
  return { name, filename: filenameOf(parameters), type, isPlain };
}

/** Throws a client failure for anything that is not one complete form. */
export function parseForm(body: Uint8Array<ArrayBuffer>, contentType: string | null): Form {
  const boundary = boundaryOf(contentType);
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const mark = Buffer.from(`--${boundary}`);
  // Some readers end a part at a bare line feed: where one stands before the boundary, nobody can say who reads what.
  const lineMark = Buffer.from(`\n--${boundary}`);
  let at = bytes.indexOf(mark);
  // What stands before the first boundary is a comment by the rules; no client sends one.
  if (at !== 0 && !(at === 2 && bytes[0] === 0x0d && bytes[1] === 0x0a))
    throw broken("it does not begin with its boundary");
  at += mark.length;
  const parts: FormPart[] = [];
  let isPlain = at === mark.length;
  for (;;) {
    // Behind a boundary: "--" ends the form, a line break begins a part.
    if (bytes[at] === 0x2d && bytes[at + 1] === 0x2d)
      return { parts, boundary, isPlain: isPlain && bytes.length - at <= END_BYTES };
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at += 1;
    if (bytes[at] !== 0x0d || bytes[at + 1] !== 0x0a) throw broken("it ends before its last boundary");
    at += 2;
    if (parts.length >= MAX_PARTS) throw broken("it has too many parts");
    const headEnd = bytes.indexOf("\r\n\r\n", at, "latin1");
    if (headEnd === -1 || headEnd - at > MAX_HEAD_BYTES) throw broken("a part's head is too long");
    const { isPlain: isPlainHead, ...head } = readHead(bytes.toString("utf8", at, headEnd));
    isPlain &&= isPlainHead;
    const from = headEnd + 4;
    // An empty part may be followed by its boundary at once.
    const to = bytes.indexOf(lineMark, from - 1) - 1;
    if (to < 0) throw broken("it ends before its last boundary");
    if (bytes[to] !== 0x0d) throw broken("a boundary stands behind a bare line feed");
    const end = Math.max(from, to);
    // Without a name it is a field to some readers; browsers send a choice of no file as a part of nothing.
    if (head.filename === "") {
      isPlain = false;
      head.filename = undefined;
      if (end === from) {
        at = to + 1 + lineMark.length;
        continue;
      }
    }
    parts.push({ ...head, bytes: body.subarray(from, end) });
    at = to + 1 + lineMark.length;
  }
}

/** Text of a field; throws when it is too long to be one. */
function fieldText(part: FormPart): string {
  if (part.bytes.length > MAX_TEXT_BYTES) throw broken(`the field ${part.name} is too long`);
  return Buffer.from(part.bytes.buffer, part.bytes.byteOffset, part.bytes.byteLength).toString("utf8");
}

/** Names that the interface repeats: lists say so in their names, and several pictures are renamed on their way. */
function mayRepeat({ name, filename }: FormPart): boolean {
  return name.endsWith("[]") || (name === "image" && filename !== undefined);
}

/**
 * The text fields as an object. A name stands once, as a field or as a file: what is read and priced is what is served,
 * whichever of two an upstream takes. Lists (`timestamp_granularities[]`) keep their last value here and all of them in
 * the form. Throws Failures of kind client.
 */
export function formFields(form: Form): Record<string, unknown> {
  const fields: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  const seen = new Map<string, FormPart>();
  for (const part of form.parts) {
    const { name, filename } = part;
    const before = seen.get(name);
    if (name === "model" && (before || filename !== undefined))
      throw new Failure("client", "model_ambiguous", { param: "model", type: "invalid_request_error" });
    if (before && !(mayRepeat(before) && mayRepeat(part))) throw broken(`${name.slice(0, 64)} stands twice`);
    seen.set(name, part);
    if (filename !== undefined || name === "__proto__") continue;
    fields[name] = fieldText(part);
  }
  return { ...fields };
}

function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A")}"`;
}

/** The form's bytes with its own boundary; files are copied once, into place. */
export function writeForm({ parts, boundary }: Form): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const pieces: Uint8Array[] = [];
  for (const part of parts) {
    let head = `--${boundary}\r\nContent-Disposition: form-data; name=${quoted(part.name)}`;
    if (part.filename !== undefined) head += `; filename=${quoted(part.filename)}`;
    if (part.type !== "") head += `\r\nContent-Type: ${part.type.replaceAll(/[\r\n]/g, " ")}`;
    pieces.push(encoder.encode(`${head}\r\n\r\n`), part.bytes, encoder.encode("\r\n"));
  }
  pieces.push(encoder.encode(`--${boundary}--\r\n`));
  const bytes = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** The form with one text field set; it takes the place of the one that is there, or stands first. */
export function withField(form: Form, name: string, value: string): Form {
  const bytes = new TextEncoder().encode(value);
  const field: FormPart = { name, filename: undefined, type: "", bytes };
  const at = form.parts.findIndex((part) => part.name === name && part.filename === undefined);
  if (at === -1) return { ...form, parts: [field, ...form.parts] };
  return { ...form, parts: form.parts.with(at, field) };
}

/** The form without a text field; the same form where it has none of that name. */
export function withoutField(form: Form, name: string): Form {
  const parts = form.parts.filter((part) => part.name !== name || part.filename !== undefined);
  return parts.length === form.parts.length ? form : { ...form, parts };
}
