// Bedrock's event stream as named events, and its exceptions as statuses.
// Refuses to show account numbers and resource names, which AWS repeats in its messages.
import { asObject, asString, parseJson } from "../../protocol/json.ts";
import type { ByteDecoder } from "./answers.ts";
import { createAwsEventReader } from "./aws-event-stream.ts";
import type { AwsMessage } from "./aws-event-stream.ts";

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
function exceptionOf(message: AwsMessage): BedrockException | undefined {
  const { headers } = message;
  const kind = headers[":message-type"];
  if (kind === "event" || kind === undefined) return undefined;
  const type = headers[":exception-type"] ?? headers[":error-code"] ?? "exception";
  const payload = asObject(parseJson(Buffer.from(message.payload).toString("utf8")));
  const text = asString(payload?.["message"]) ?? headers[":error-message"] ?? type;
  return { status: exceptionStatus(type) ?? 500, type, message: withoutArns(text) };
}

/** Messages of the stream as parsed payloads under their event's name. */
export function bedrockEvents<T>(
  onEvent: (type: string, payload: Record<string, unknown>) => T[],
  onException: (exception: BedrockException) => T[],
  onEnd: () => T[],
): ByteDecoder<T> {
  const reader = createAwsEventReader();
  return {
    push: (chunk) =>
      reader.push(chunk).flatMap((message) => {
        const exception = exceptionOf(message);
        if (exception) return onException(exception);
        const payload = asObject(parseJson(Buffer.from(message.payload).toString("utf8"))) ?? {};
        return onEvent(message.headers[":event-type"] ?? "", payload);
      }),
    end() {
      reader.end();
      return onEnd();
    },
  };
}
