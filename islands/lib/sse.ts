// Reads server-sent events from a response body: the texts of their data, in batches as they come off the network.
// Comments, CR LF, other fields, split characters and a missing last blank line are all tolerated.

/**
 * The data of each event, one array per network read, so that a screen renders once per read. Ends with the body; an
 * aborted fetch throws its AbortError. Leaving the loop early cancels the body.
 */
export async function* eventBatches(body: ReadableStream<Uint8Array>): AsyncGenerator<string[], void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  const found: string[] = [];
  const finishEvent = () => {
    if (data.length > 0) found.push(data.join("\n"));
    data = [];
  };
  const readLine = (line: string) => {
    if (line === "") finishEvent();
    else if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
  };
  let isEnded = false;
  try {
    while (!isEnded) {
      const { done, value } = await reader.read();
      isEnded = done;
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A CR at the end may be half of a CR LF.
      const lines = (isEnded ? `${rest}\n\n` : rest).split(/\r\n|\n|\r(?=[^\n])/);
      rest = lines.pop() ?? "";
      for (const line of lines) readLine(line);
      if (found.length > 0) yield found.splice(0);
    }
  } finally {
    // Also when the reader of the events stopped early: the connection is not kept for nothing.
    if (!isEnded) await reader.cancel().catch(() => undefined);
  }
}
