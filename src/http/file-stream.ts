// A file that is made while it leaves, a part at a time.
// Refuses to read ahead of a slow client: the next part is asked for when the last one has left.
import type { Deps } from "../core/deps.ts";
import type { Visitors } from "./visitors.ts";

export interface FileStream {
  /** File name with its ending; ASCII. */
  name: string;
  type: string;
  parts: AsyncGenerator<string, void>;
}

/** The answer; a part that fails breaks the connection, so that nobody takes a piece for the whole. */
export function fileStream(
  { logger }: Pick<Deps, "logger">,
  { visitors, request }: { visitors: Visitors; request: Request },
  { name, type, parts }: FileStream,
): Response {
  let isOwing = false;
  visitors.feed(request, { isOwing: () => isOwing });
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        isOwing = true;
        try {
          const next = await parts.next();
          if (next.done !== true) {
            if (next.value !== "") controller.enqueue(encoder.encode(next.value));
            return;
          }
          visitors.fed(request);
          controller.close();
        } catch (error) {
          visitors.fed(request);
          logger.error("a file broke off", { file: name, error: String(error) });
          controller.error(error);
        } finally {
          isOwing = false;
        }
      },
      async cancel() {
        visitors.fed(request);
        await parts.return();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      "content-type": type,
      "content-disposition": `attachment; filename="${name}"`,
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    },
  });
}
