// Reads the JSON body of a console call.
// Refuses bodies above a cap that no such call needs, bodies that do not end, and other content types, which foreign pages may
// send unasked, unless a header stands beside them that no foreign page can send.
import { Failure } from "../shared/failures.ts";
import { receive } from "./receive.ts";

const BYTES_PER_MIB = 1024 * 1024;

interface BodyRule {
  bytes: number;
  /** From the first look to the last byte: an honest call is in the socket's buffer by then. */
  ms: number;
}

const KIB = 1024;
const STRANGER_MS = 10_000;
const CALLER_MS = 60_000;

/** By who may send it. Root sets options, the longest of which has four million characters, written as JSON. */
export const BodyLimit = {
  public: { bytes: 64 * KIB, ms: STRANGER_MS },
  session: { bytes: BYTES_PER_MIB, ms: CALLER_MS },
  user: { bytes: BYTES_PER_MIB, ms: CALLER_MS },
  admin: { bytes: 8 * BYTES_PER_MIB, ms: CALLER_MS },
  root: { bytes: 32 * BYTES_PER_MIB, ms: CALLER_MS },
} as const satisfies Record<string, BodyRule>;

/** Deeper than any console call nests. */
const MAX_DEPTH = 32;

function tooLarge(limit: number): Failure {
  const params = { limit: limit < BYTES_PER_MIB ? `${limit / KIB} KiB` : `${limit / BYTES_PER_MIB} MiB` };
  return new Failure("client", "body_too_large", { status: 413, params });
}

/** The bytes as text; whatever length was announced, what comes is counted. */
async function readText(request: Request, { bytes, ms }: BodyRule): Promise<string> {
  const { body, headers } = request;
  if (Number(headers.get("content-length") ?? 0) > bytes) throw tooLarge(bytes);
  if (body === null) return "";
  const rule = { maxBytes: bytes, totalMs: ms, tooLarge: () => tooLarge(bytes) };
  return new TextDecoder().decode(await receive(body, rule));
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

/** Credentials that browsers attach by themselves, also to what a foreign page sends. */
const ATTACHED = /^(?:basic|digest|negotiate|ntlm)\b/i;

/** Whether a program or our own page sent this: no foreign page gets these headers past a browser without being asked first. */
function isDeliberate({ headers }: Request): boolean {
  const authorization = headers.get("authorization")?.trim() ?? "";
  return (
    (headers.get("new-api-user") ?? "") !== "" || (authorization !== "" && !ATTACHED.test(authorization))
  );
}

/**
 * The parsed body; null when there is none, or when it is not JSON by its content type and a foreign page may have sent it: the
 * route's schema refuses that. Scripts often name no type, or the one that their tool has for forms.
 * Throws a SyntaxError for broken or absurd JSON.
 */
export async function readConsoleBody(
  request: Request,
  contentType: string,
  rule: BodyRule,
): Promise<unknown> {
  const type = contentType.trim().toLowerCase();
  if (type !== "application/json" && !type.endsWith("+json") && !isDeliberate(request)) return null;
  const text = await readText(request, rule);
  if (text === "") return null;
  const body: unknown = JSON.parse(text);
  // No call takes anything else. The framework would make an object of it, a member for each character or item: of a text as
  // long as a body may be, most of a second in which nobody else is answered.
  if (typeof body !== "object" || Array.isArray(body)) throw new SyntaxError("no object");
  assertPlain(body);
  return body;
}
