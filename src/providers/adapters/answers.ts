// How an adapter answers: canonical events or a whole answer told in the route's dialect, and errors with their status.
// Refuses to read ahead: an upstream's stream is read when the relay asks for more, and let go when the relay does.
import type { Answer } from "../../protocol/assemble.ts";
import { brokenStream } from "../../protocol/assemble.ts";
import { scrub } from "../../protocol/classify.ts";
import type { AnswerContext } from "../../protocol/dialect.ts";
import { DIALECTS } from "../../protocol/dialects.ts";
import type { CanonicalEvent } from "../../protocol/events.ts";
import { createSseReader } from "../../protocol/framing.ts";
import type { SseEvent } from "../../protocol/framing.ts";
import { asObject, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { AdapterCall } from "../adapter.ts";

/** Bytes of a stream that grows while nothing comes of it: more than any frame of a sane upstream. */
const MAX_LINE_BYTES = 10 * 1024 * 1024;

/** Reads an upstream's own stream form. `end` says what is due when the body has ended, a broken stream included. */
export interface ByteDecoder<T> {
  push: (chunk: Uint8Array) => T[];
  end: () => T[];
}

export function answerContext(call: AdapterCall): AnswerContext {
  return { newId: call.newId, nowSeconds: Math.floor(call.nowMs() / 1000), model: call.model };
}

/** A 200 answer with a JSON body. */
export function jsonAnswer(body: unknown): Response {
  return new Response(JSON.stringify(body), { headers: { "content-type": "application/json" } });
}

/** A whole answer in the route's dialect. */
export function wholeAnswer(call: AdapterCall, answer: Answer): Response {
  return jsonAnswer(DIALECTS[call.route.dialect].encodeAnswer(answer, answerContext(call)));
}

/** An upstream's error under the status it should have had, in the form that every dialect's reader understands. */
export function errorAnswer(
  status: number,
  error: { message: string; type?: string; code?: string | number },
  retryAfter?: string | null,
): Response {
  return new Response(JSON.stringify({ error }), {
    status,
    headers: {
      "content-type": "application/json",
      ...(retryAfter ? { "retry-after": retryAfter } : {}),
    },
  });
}

/**
 * The failure of an error inside a stream, where the status can no longer be sent: it travels as the error's code, by
 * which the relay sorts it.
 */
export function streamFailure(status: number, type: string, message: string): Failure {
  return new Failure("upstream-down", "upstream_down", { type, wireCode: status, text: scrub(message) });
}

/** The upstream's events as an event stream of the route's dialect. */
export function streamAnswer(
  call: AdapterCall,
  upstream: Response,
  decoder: ByteDecoder<CanonicalEvent>,
): Response {
  const encoder = DIALECTS[call.route.dialect].encodeStream(answerContext(call));
  const tell = (events: readonly CanonicalEvent[]): string => {
    let text = "";
    for (const event of events) {
      // A stream that breaks off must look broken, not like one that ends with an error of the model.
      if (event.type === "fail" && event.failure.kind === "broken-stream") throw event.failure;
      text += encoder.push(event);
    }
    return text;
  };
  return textStream(upstream, {
    push: (chunk) => [tell(decoder.push(chunk))],
    end: () => [tell(decoder.end())],
  });
}

/** An event stream made from an upstream's bytes, one piece for each demand. */
export function textStream(upstream: Response, decoder: ByteDecoder<string>): Response {
  const reader = upstream.body?.getReader();
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          for (;;) {
            const read = await reader?.read();
            const text = (read?.value ? decoder.push(read.value) : decoder.end()).join("");
            if (text !== "") controller.enqueue(encoder.encode(text));
            if (!read?.value) return controller.close();
            if (text !== "") return;
          }
        } catch (error) {
          controller.error(error);
          await reader?.cancel().catch(() => undefined);
        }
      },
      cancel: async (reason) => reader?.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** Server-sent events through a reader of single frames. */
export function sseDecoder<T>(onFrame: (frame: SseEvent) => T[], onEnd: () => T[]): ByteDecoder<T> {
  const reader = createSseReader();
  return {
    push: (chunk) => reader.push(chunk).flatMap(onFrame),
    end: () => [...reader.end().flatMap(onFrame), ...onEnd()],
  };
}

/** Lines of JSON through a reader of single objects; lines that are none are passed over. */
export function jsonLines<T>(
  onObject: (object: Record<string, unknown>) => T[],
  onEnd: () => T[],
): ByteDecoder<T> {
  const decoder = new TextDecoder();
  let rest = "";
  const read = (line: string): T[] => {
    const object = asObject(parseJson(line.replace(/^data:/, "")));
    return object ? onObject(object) : [];
  };
  return {
    push(chunk) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > MAX_LINE_BYTES) throw brokenStream("line too long");
      return lines.flatMap(read);
    },
    end() {
      const last = rest + decoder.decode();
      rest = "";
      return [...read(last), ...onEnd()];
    },
  };
}

/** A whole JSON object; an upstream that says something else is broken, and another may do. */
export async function jsonOf(response: Response): Promise<Record<string, unknown>> {
  const body = asObject(parseJson(await response.text()));
  if (!body) throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  return body;
}

/** A POST of JSON with the call's headers, more of which may be given. */
export function postJson(
  call: AdapterCall,
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return call.fetch(url, {
    method: "POST",
    headers: { ...call.headers, "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal: call.signal,
  });
}
