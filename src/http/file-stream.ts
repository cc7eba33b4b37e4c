// A file that is made while it leaves, a part at a time.
// Refuses to read ahead of a slow client: the next part is asked for when the last one has left.
import type { Deps } from "../core/deps.ts";
import type { Visitors } from "./visitors.ts";

export interface FileStream {
  /** File name with its ending; ASCII. */
  name: string;
  type: string;
  parts: AsyncGenerator<string, void>;
  /** Once, when the file is through, broke off or nobody wants it any more. */
  onEnd?: () => void;
}

/** The answer; a part that fails breaks the connection, so that nobody takes a piece for the whole. */
export function fileStream(
  { logger }: Pick<Deps, "logger">,
  { visitors, request }: { visitors: Visitors; request: Request },
  { name, type, parts, onEnd }: FileStream,
): Response {
  let isOwing = false;
  visitors.feed(request, { isOwing: () => isOwing });
  const over = () => {
    onEnd?.();
    visitors.fed(request);
  };
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
          over();
          controller.close();
        } catch (error) {
          over();
          logger.error("a file broke off", { file: name, error: String(error) });
          controller.error(error);
        } finally {
          isOwing = false;
        }
      },
      async cancel() {
        over();
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
