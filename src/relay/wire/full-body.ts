// Reads a full answer of an upstream, counted piece by piece as it is unpacked, up to what the gateway keeps of one.
// Refuses what is larger before it is held: by its announced length at once, else as soon as the count passes the cap.
import { Failure } from "../../shared/failures.ts";

/** An answer nobody can work with, like one that cannot be understood: nothing of it has reached the client. */
function answerTooLarge(maxBytes: number): Failure {
  return new Failure("upstream-down", "upstream_answer_too_large", {
    type: "upstream_error",
    retryable: true,
    internal: `more than ${Math.floor(maxBytes / 1024 / 1024)} MiB (option relay.max_answer_mb)`,
  });
}

/** Whether the connection itself ends the body at the announced length: not where it comes in chunks, or packed. */
function endsAsAnnounced(headers: Headers, maxBytes: number): boolean {
  const announced = headers.get("content-length");
  if (announced === null || announced === "") return false;
  if (Number(announced) > maxBytes) throw answerTooLarge(maxBytes);
  return !headers.has("content-encoding") && !headers.has("transfer-encoding");
}

/** Hands over piece by piece, as unpacked. Throws `upstream_answer_too_large`, and whatever breaks the connection. */
export async function eachPiece(
  response: Response,
  maxBytes: number,
  take: (piece: Uint8Array<ArrayBuffer>) => void,
): Promise<void> {
  endsAsAnnounced(response.headers, maxBytes);
  if (!response.body) return;
  const reader = (response.body as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      size += value.length;
      if (size > maxBytes) throw answerTooLarge(maxBytes);
      take(value);
    }
  } catch (error) {
    reader.cancel().catch(() => undefined);
    throw error;
  }
}

/** All of the body. Throws as `eachPiece`. */
export async function fullBody(response: Response, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  if (endsAsAnnounced(response.headers, maxBytes)) return response.bytes();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  await eachPiece(response, maxBytes, (piece) => {
    pieces.push(piece);
    size += piece.length;
  });
  const [first] = pieces;
  if (first && pieces.length === 1) return first;
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

/** The same answer for a reader that reads all of it: its body breaks off at the cap. */
export function cappedAnswer(response: Response, maxBytes: number): Response {
  if (endsAsAnnounced(response.headers, maxBytes)) return response;
  return counted(response, maxBytes, (controller) => controller.error(answerTooLarge(maxBytes)));
}

/** Likewise for a refusal, of which the beginning says enough: what is above the cap is left out. */
export function cutAnswer(response: Response, maxBytes: number): Response {
  return counted(response, maxBytes, (controller) => controller.close());
}

function counted(
  response: Response,
  maxBytes: number,
  end: (controller: ReadableStreamDefaultController<Uint8Array>) => void,
): Response {
  if (!response.body) return response;
  const reader = response.body.getReader();
  let size = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        size += value.length;
        if (size <= maxBytes) return controller.enqueue(value);
        reader.cancel().catch(() => undefined);
        end(controller);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}
