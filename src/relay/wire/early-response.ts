// Keeps a client's connection alive while its stream has not begun: comments until the real answer is there.
// A late failure becomes an error event, because the status line has already left.

export interface AwaitedStream {
  /** The real response when it comes in time, else one made from a body that waits for it. */
  first(wrap: (body: ReadableStream<Uint8Array>) => Response): Promise<Response>;
}

const PING = new TextEncoder().encode(": PING\n\n");

export function awaitedStream(
  answered: Promise<Response>,
  intervalMs: number,
  failureFrame: (error: unknown) => string,
): AwaitedStream {
  /** True when the answer came, false when the interval passed. */
  function inTime(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), intervalMs);
      const done = (): void => {
        clearTimeout(timer);
        resolve(true);
      };
      answered.then(done, done);
    });
  }

  function waitingBody(): ReadableStream<Uint8Array> {
    let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
    let isFirst = true;
    return new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          if (isFirst) {
            isFirst = false;
            controller.enqueue(PING);
            return;
          }
          if (!reader) {
            if (!(await inTime())) {
              controller.enqueue(PING);
              return;
            }
            try {
              const { body } = await answered;
              if (!body) return controller.close();
              reader = body.getReader();
            } catch (error) {
              controller.enqueue(new TextEncoder().encode(failureFrame(error)));
              controller.close();
              return;
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

  return {
    async first(wrap) {
      return (await inTime()) ? answered : wrap(waitingBody());
    },
  };
}
