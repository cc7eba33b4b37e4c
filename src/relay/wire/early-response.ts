// Keeps a client's connection alive while its stream has not begun: signs of life until the real answer is there.
// A late failure becomes an error event, because the status line has already left.

export interface EarlyAnswer {
  /** The real response, as soon as there is one. */
  answered: Promise<Response>;
  /** Silence after which the status line goes, and between two signs of life. */
  everyMs: number;
  /** What is sent before the first frame of the answer. */
  ping: Uint8Array;
  /** The status line goes now: the response that carries the body. */
  begin(body: ReadableStream<Uint8Array>): Response;
  /** The event that says what failed. */
  failureFrame(error: unknown): string;
}

/** The real response where it comes in time, with its true status; else one that waits for it. */
export function inTime(early: EarlyAnswer): Promise<Response> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(early.begin(waitingBody(early))), early.everyMs);
    early.answered.then(
      (response) => {
        clearTimeout(timer);
        resolve(response);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error as Error);
      },
    );
  });
}

function waitingBody(early: EarlyAnswer): ReadableStream<Uint8Array> {
  const { answered, everyMs, ping } = early;
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let isFirst = true;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (isFirst || (!reader && !(await isAnswered(answered, everyMs)))) {
          isFirst = false;
          return controller.enqueue(ping);
        }
        if (!reader) {
          try {
            reader = (await eventsOf(await answered))?.getReader();
            if (!reader) return controller.close();
          } catch (error) {
            controller.enqueue(new TextEncoder().encode(early.failureFrame(error)));
            return controller.close();
          }
        }
        const { done, value } = await reader.read();
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: () => reader?.cancel(),
    },
    { highWaterMark: 0 },
  );
}

/** True when the answer came or failed, false when the interval passed. */
function isAnswered(answered: Promise<unknown>, withinMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), withinMs);
    const done = (): void => {
      clearTimeout(timer);
      resolve(true);
    };
    answered.then(done, done);
  });
}

/** The answer as events: an upstream that does not stream gives JSON, which is one of them. */
async function eventsOf(response: Response): Promise<ReadableStream<Uint8Array> | null> {
  if ((response.headers.get("content-type") ?? "").includes("event-stream")) return response.body;
  return new Response(`data: ${(await response.text()).replaceAll(/[\r\n]+/g, " ")}\n\n`).body;
}
