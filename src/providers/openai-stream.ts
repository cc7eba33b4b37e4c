// Streams that are OpenAI-shaped but for their manners: errors told inside of them, chunks too many, ends left out.
// Refuses to call a stream whole that neither told why it ended nor that it did; an error before the first words is a proper answer.
import { brokenStream } from "../protocol/assemble.ts";
import type { JsonObject } from "../protocol/canonical.ts";
import { scrub } from "../protocol/classify.ts";
import { asList, asObject, parseJson } from "../protocol/json.ts";
import { errorResponse, eventsOf, streamResponse } from "./adapter-kit.ts";

/** An error as the provider told it, with the status that it means. */
export interface ReportedError {
  status: number;
  message: string;
  code: string | number;
  type: string;
}

export interface ChunkReader {
  /** The error that a chunk or a whole answer is, if it is one. */
  error: (wire: JsonObject) => ReportedError | undefined;
  /** The chunk as it goes on; undefined leaves it out. `isEnded`: one before it told why the answer ended. */
  chunk?: (wire: JsonObject, isEnded: boolean) => JsonObject | undefined;
}

const DONE = "data: [DONE]\n\n";
const frame = (wire: object): string => `data: ${JSON.stringify(wire)}\n\n`;

function hasEnded(wire: JsonObject): boolean {
  return asList(wire["choices"]).some((choice) => typeof asObject(choice)?.["finish_reason"] === "string");
}

/** `said`: the answer that told it, which may name a time to wait. */
export const reportedErrorResponse = (
  { status, message, code, type }: ReportedError,
  said?: Response,
): Response => errorResponse(status, message, code, type, said?.headers.get("retry-after"));

async function* checked(
  frames: AsyncGenerator<{ data: string }>,
  first: JsonObject | undefined,
  reader: ChunkReader,
): AsyncGenerator<string> {
  let isEnded = false;
  let last: JsonObject = {};
  const read = (wire: JsonObject): string => {
    const kept = reader.chunk ? reader.chunk(wire, isEnded) : wire;
    isEnded ||= hasEnded(wire);
    last = wire;
    return kept ? frame(kept) : "";
  };
  if (first) yield read(first);
  for await (const { data } of frames) {
    if (data.trim() === "[DONE]") {
      const { usage: _usage, ...head } = last;
      const choices = [{ index: 0, delta: {}, finish_reason: "stop" }];
      return yield `${isEnded ? "" : frame({ ...head, choices })}${DONE}`;
    }
    const wire = asObject(parseJson(data));
    if (!wire) continue;
    const error = reader.error(wire);
    if (error) {
      const { message, type, status } = error;
      // The status travels as the code, by which the relay sorts it.
      return yield frame({ error: { message: scrub(message), type, code: status } });
    }
    yield read(wire);
  }
  if (!isEnded) throw brokenStream("the body ended before the last chunk");
  yield DONE;
}

/** The stream with good manners; its first chunk is read before it is answered with 200. */
export async function checkedStream(response: Response, reader: ChunkReader): Promise<Response> {
  const frames = eventsOf(response);
  for (;;) {
    const next = await frames.next();
    if (next.done) throw brokenStream("the body ended before the first chunk");
    const wire = asObject(parseJson(next.value.data));
    if (!wire) continue;
    const error = reader.error(wire);
    if (!error) return streamResponse(checked(frames, wire, reader));
    await frames.return(undefined);
    return reportedErrorResponse(error, response);
  }
}
