// Answers whose usage an upstream counts wrong, put right before anybody reads them: meter, log and client see one number.
// Refuses to touch anything else: whatever holds no such usage goes on as the bytes that came.
import type { JsonObject } from "../protocol/canonical.ts";
import { asNumber, asObject, parseJson } from "../protocol/json.ts";

/** What every such usage says, and little else does. */
const MARK = '"total_tokens"';
const NEWLINE = 0x0a;

/**
 * Completion tokens as the total less the prompt, for upstreams that count reasoning in the total only; undefined where
 * the numbers add up already.
 */
function corrected(usage: JsonObject | undefined): JsonObject | undefined {
  const prompt = asNumber(usage?.["prompt_tokens"]);
  // Pictures are counted under other names, and miss nothing.
  if (prompt === undefined) return undefined;
  const total = asNumber(usage?.["total_tokens"]) ?? 0;
  const completion = asNumber(usage?.["completion_tokens"]) ?? 0;
  return total - prompt > completion ? { ...usage, completion_tokens: total - prompt } : undefined;
}

/** A JSON object with its usage put right, as text; the same text where there is nothing to do. */
function correctedText(text: string): string {
  if (!text.includes(MARK)) return text;
  const wire = asObject(parseJson(text));
  const usage = corrected(asObject(wire?.["usage"]));
  return usage ? JSON.stringify({ ...wire, usage }) : text;
}

const PREFIX = /^data: ?/;

function correctedLines(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (!all.includes(MARK)) return bytes;
  const lines = all
    .toString("utf8")
    .split("\n")
    .map((line) => {
      const prefix = PREFIX.exec(line)?.[0];
      return prefix === undefined ? line : prefix + correctedText(line.slice(prefix.length));
    });
  return new TextEncoder().encode(lines.join("\n"));
}

/** An event stream, line by line; what has no end yet waits for it. */
function correctedStream(body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let rest: Uint8Array<ArrayBuffer>[] = [];
  const take = (last: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => {
    const whole = rest.length === 0 ? last : new Uint8Array(Buffer.concat([...rest, last]));
    rest = [];
    return correctedLines(whole);
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await reader.read();
          if (done) {
            if (rest.length > 0) controller.enqueue(take(new Uint8Array(0)));
            return controller.close();
          }
          const end = value.lastIndexOf(NEWLINE) + 1;
          const whole = end === 0 ? undefined : take(value.subarray(0, end));
          if (end < value.length) rest.push(value.subarray(end));
          if (!whole) continue;
          return controller.enqueue(whole);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** The answer with its usage put right, whole or streamed. Its body is as long as whoever hands it over allows. */
export async function correctedAnswer(response: Response): Promise<Response> {
  const { status, statusText, body } = response;
  const headers = new Headers(response.headers);
  headers.delete("content-length");
  const isStream = (headers.get("content-type") ?? "").includes("event-stream");
  const text = isStream || !body ? null : correctedText(await response.text());
  const sent = isStream && body ? correctedStream(body as ReadableStream<Uint8Array<ArrayBuffer>>) : text;
  return new Response(sent, { status, statusText, headers });
}
