// Who writes down what a session hears: what a frame says of it, and whether the key may have it.
// Refuses to take a client's word for what a session is: the meter asks the upstream's.
import type { JsonObject } from "../../protocol/canonical.ts";
import { asObject, asString } from "../../protocol/json.ts";
import type { Failure } from "../../shared/failures.ts";
import { checkModel } from "../call/admission.ts";
import type { Caller } from "../call/admission.ts";
import { asFailure } from "../wire/render-failure.ts";

/** Names of models that do nothing but write down what they hear. */
const SPEECH_TO_TEXT = /whisper|-transcribe\b|-asr\b/i;

/** The models that a session names to write down its sound: both generations of the protocol have a place for one. */
export function namedTranscribers(session: JsonObject | undefined): string[] {
  const places = [
    asObject(asObject(session?.["audio"])?.["input"])?.["transcription"],
    session?.["input_audio_transcription"],
  ];
  return places.flatMap((place) => asString(asObject(place)?.["model"]) ?? []);
}

/** Whether the session only transcribes; undefined: it does not say. */
export function kindOf(session: JsonObject | undefined): boolean | undefined {
  const type = asString(session?.["type"]);
  if (type !== undefined) return type === "transcription";
  return session?.["object"] === "realtime.transcription_session" ? true : undefined;
}

/** As much of a session as decides which models may write down what it hears. */
interface HearingSession {
  caller: Caller;
  /** The session's own model, as its upstream knows it. */
  upstreamModel: string;
  isTranscription: boolean;
}

/**
 * Why the key may not have what the frame asks for. Beside responses a model that does nothing but transcribe goes with the
 * session's own, and what it costs is charged; of a name that may be any model's the key decides. In a session that only transcribes
 * it is the model that is served, and the key decides of all but the session's own.
 */
export function forbiddenTranscriber(
  json: JsonObject | undefined,
  { caller, upstreamModel, isTranscription }: HearingSession,
): Failure | undefined {
  const session = asObject(json?.["session"]);
  const isServed = isTranscription || kindOf(session) === true;
  const asked = namedTranscribers(session).filter(
    (named) => named !== upstreamModel && (isServed || !SPEECH_TO_TEXT.test(named)),
  );
  try {
    for (const named of asked) checkModel(caller, named);
    return undefined;
  } catch (error) {
    return asFailure(error);
  }
}
