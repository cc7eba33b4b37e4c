// Bedrock's event stream as named events, and its exceptions as statuses.
// Refuses to show account numbers and resource names, which AWS repeats in its messages.
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import { brokenStream } from "../../protocol/assemble.ts";
import { createAwsEventReader } from "../aws-event-stream.ts";
import type { AwsEvent } from "../aws-event-stream.ts";

/** Account numbers stand in the names that AWS repeats in its messages. */
export function withoutArns(text: string): string {
  return text.replace(/\barn:aws[\w-]*:[^\s"',)]+/g, "[arn]").replace(/\b\d{12}\b/g, "[account]");
}

/** What an exception's name means as a status; streams name exceptions in lower case. */
const STATUS_OF: Readonly<Record<string, number>> = {
  accessdeniedexception: 403,
  expiredtokenexception: 403,
  unrecognizedclientexception: 403,
  invalidsignatureexception: 403,
  resourcenotfoundexception: 404,
  validationexception: 400,
  servicequotaexceededexception: 429,
  throttlingexception: 429,
  modelnotreadyexception: 503,
  modeltimeoutexception: 504,
  modelstreamerrorexception: 502,
  modelerrorexception: 502,
  serviceunavailableexception: 503,
  internalserverexception: 500,
};

/** The status of an exception by its name, in any case. */
export function exceptionStatus(type: string): number | undefined {
  return STATUS_OF[type.toLowerCase()];
}

export interface BedrockException {
  status: number;
  type: string;
  message: string;
}

/** The exception that a message of the event stream stands for, if it is one. */
function exceptionOf(message: AwsEvent): BedrockException | undefined {
  const { headers } = message;
  const kind = headers[":message-type"];
  if (kind === "event" || kind === undefined) return undefined;
  const type = headers[":exception-type"] ?? headers[":error-code"] ?? "exception";
  const payload = asObject(parseJson(Buffer.from(message.payload).toString("utf8")));
  const text = asString(payload?.["message"]) ?? headers[":error-message"] ?? type;
  return { status: exceptionStatus(type) ?? 500, type, message: withoutArns(text) };
}

export interface BedrockEvent {
  type: string;
  payload: Record<string, unknown>;
  /** Set when the message is no event: nothing follows it. */
  exception?: BedrockException;
}

/** The stream's events as they arrive. Throws a broken stream for damaged messages and one that is cut. */
export async function* bedrockEvents(response: Response): AsyncGenerator<BedrockEvent> {
  if (!response.body) return;
  const reader = createAwsEventReader();
  for await (const chunk of response.body) {
    for (const message of reader.push(chunk)) {
      const exception = exceptionOf(message);
      const type = message.headers[":event-type"] ?? "";
      const payload = asObject(parseJson(Buffer.from(message.payload).toString("utf8"))) ?? {};
      yield { type, payload, ...(exception ? { exception } : {}) };
      if (exception) return;
    }
  }
  if (!reader.isEmpty()) throw brokenStream("event stream: cut inside a message");
}
