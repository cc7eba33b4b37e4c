// What an upstream says in an answer, without the secrets of the key that it was asked with: an error inside of a good status
// is read, passed on and logged like any other words. Refuses to look at plain deltas of a stream, which are the model's text.
import { withoutSecrets } from "../../shared/without-keys.ts";
import type { SseEvent } from "./framing.ts";

const encoder = new TextEncoder();

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}

/** The answer itself where it holds none of them. */
export function keylessBytes(
  bytes: Uint8Array<ArrayBuffer>,
  secrets: readonly string[],
): Uint8Array<ArrayBuffer> {
  const answer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!secrets.some((secret) => answer.includes(secret))) return bytes;
  return encoder.encode(withoutSecrets(textOf(bytes), secrets));
}

/** The events themselves where they hold none of them. */
export function keylessEvents(events: readonly SseEvent[], secrets: readonly string[]): readonly SseEvent[] {
  for (const { data } of events)
    for (const secret of secrets)
      if (data.includes(secret)) return events.map((event) => keylessEvent(event, secrets));
  return events;
}

function keylessEvent({ event, data, bytes }: SseEvent, secrets: readonly string[]): SseEvent {
  const clean: SseEvent = { event, data: withoutSecrets(data, secrets) };
  if (bytes) clean.bytes = encoder.encode(withoutSecrets(textOf(bytes), secrets));
  return clean;
}
