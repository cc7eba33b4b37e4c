// Reads the JSON body of a console call.
// Refuses bodies above a cap that no console call needs, and other content types, which foreign pages may send unasked.
import { Failure } from "../shared/failures.ts";

const BYTES_PER_MIB = 1024 * 1024;
/** The longest option value (four million characters) written as JSON. */
const MAX_MIB = 32;
/** Deeper than any console call nests. */
const MAX_DEPTH = 32;

function tooLarge(): Failure {
  return new Failure("client", "body_too_large", { status: 413, params: { limit: MAX_MIB } });
}

/** The bytes as text; stops reading at the cap when nobody announced a length. */
async function readText(request: Request): Promise<string> {
  const { body, headers } = request;
  const limit = MAX_MIB * BYTES_PER_MIB;
  if (Number(headers.get("content-length") ?? 0) > limit) throw tooLarge();
  if (body === null) return "";
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = "";
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    size += value.length;
    if (size > limit) {
      reader.cancel().catch(() => undefined);
      throw tooLarge();
    }
    text += decoder.decode(value, { stream: true });
  }
}

/**
 * The framework describes refused values by converting them to text: that fails on very deep ones, and on objects whose
 * own members hide what every object has (`{"toString":1}`). Neither is part of any call.
 */
function assertPlain(body: unknown): void {
  let level = [body];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) throw new SyntaxError("nested too deeply");
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value !== "object" || value === null) continue;
      if (!Array.isArray(value) && Object.keys(value).some((key) => key in Object.prototype))
        throw new SyntaxError("a reserved name");
      for (const member of Object.values(value)) next.push(member);
    }
    level = next;
  }
}

/**
 * The parsed body; null when there is none or when it is not JSON by its content type: the route's schema refuses that.
 * Throws a SyntaxError for broken or absurd JSON.
 */
export async function readConsoleBody(request: Request, contentType: string): Promise<unknown> {
  const type = contentType.trim().toLowerCase();
  if (type !== "application/json" && !type.endsWith("+json")) return null;
  const text = await readText(request);
  if (text === "") return null;
  const body: unknown = JSON.parse(text);
  assertPlain(body);
  return body;
}
