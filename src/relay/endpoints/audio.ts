// Speech from text, and text from speech: what each asks of its body, and what it costs where nobody says.
// Refuses forms without a recording; how long one is is read from its container, never guessed from its name.
import { asObject } from "../../protocol/json.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import { hasTranscript } from "./answer-checks.ts";
import { audioSeconds } from "./audio-duration.ts";
import { refused } from "./endpoint.ts";
import type { AnswerFacts, Endpoint, Json } from "./endpoint.ts";
import { mediaMeter } from "./media-meter.ts";
import type { Form, FormPart } from "../wire/multipart.ts";

const AUDIO = { refusalCode: "invalid_audio_request", dialect: "openai-chat" } as const;

const COMMON = {
  ...AUDIO,
  isConversation: false,
  isMedia: true,
  outputLimit: () => 0,
  answersTokens: false,
  meterStream: mediaMeter,
} satisfies Partial<Endpoint>;

function inputOf(body: Json): string {
  return typeof body["input"] === "string" ? body["input"] : "";
}

function tokensOf(count: number): Usage {
  const usage = emptyUsage();
  usage.input.fresh = count;
  return usage;
}

/** Code points: what a person counts, not halves of them. */
function characters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

const isSoldByCharacter = (model: string): boolean => model.startsWith("tts");

/** Models named tts… are sold by the character, others by the token. */
async function speechUsage({ body, upstreamModel, model, count }: AnswerFacts): Promise<Usage> {
  const input = inputOf(body);
  const isByCharacter = isSoldByCharacter(model) || isSoldByCharacter(upstreamModel);
  return tokensOf(isByCharacter ? characters(input) : await count([input]));
}

export const speech: Endpoint = {
  ...COMMON,
  name: "speech",
  defaultModel: "tts-1",
  canStream: false,
  isScreened: true,
  answers: "bytes",
  // JSON is never sound.
  holds: () => false,
  readOnce: new Set(["input"]),
  check(body) {
    if (inputOf(body) === "") throw refused(AUDIO, "field_required", "input");
  },
  visitPrompt: (body, visitor) => visitor.text(inputOf(body)),
  ownUsage: speechUsage,
  heldInput: ({ body, model }) => (isSoldByCharacter(model) ? inputOf(body).length : 0),
  units: { kchar: ({ body }) => ({ callCount: characters(inputOf(body)), callFactor: 0.001 }) },
};

/** Tokens of a minute of speech, of whole seconds. */
const TOKENS_PER_MINUTE = 1000;
/** What recordings of unknown formats are taken for: 128 kilobits per second. */
const BYTES_PER_SECOND = 16_000;

function recording(form: Form | undefined): FormPart | undefined {
  return form?.parts.find((part) => part.name === "file" && part.filename !== undefined);
}

/** The upstream's own word on the length, where it says one. */
function reportedSeconds(json: unknown): number | undefined {
  const answer = asObject(json);
  const told = asObject(answer?.["usage"])?.["seconds"] ?? answer?.["duration"];
  const seconds = typeof told === "string" ? Number(told) : told;
  return typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0 ? seconds : undefined;
}

const tokensOfSeconds = (seconds: number): number =>
  Math.max(1, Math.round((Math.ceil(seconds) / 60) * TOKENS_PER_MINUTE));

/** How long the recording is: as its upstream says, else as its container does, else by its size. */
function lengthOf({ json, form }: Pick<AnswerFacts, "json" | "form">): { seconds: number; isGuess: boolean } {
  const bytes = recording(form)?.bytes ?? new Uint8Array();
  const known = reportedSeconds(json) ?? audioSeconds(bytes);
  return { seconds: known ?? bytes.length / BYTES_PER_SECOND, isGuess: known === undefined };
}

function listeningUsage(facts: AnswerFacts): Promise<Usage> {
  const { seconds, isGuess } = lengthOf(facts);
  const usage = tokensOf(tokensOfSeconds(seconds));
  if (isGuess) usage.estimated = true;
  return Promise.resolve(usage);
}

const LISTENING = {
  ...COMMON,
  defaultModel: "whisper-1",
  canStream: true,
  isScreened: false,
  answers: "text",
  holds: hasTranscript,
  check(_body, form) {
    if (!recording(form)) throw refused(AUDIO, "file_required", "file");
  },
  visitPrompt: (body, visitor) => {
    if (typeof body["prompt"] === "string") visitor.text(body["prompt"]);
  },
  ownUsage: listeningUsage,
  // Before the call only the recording tells.
  heldInput: ({ form }) => tokensOfSeconds(lengthOf({ form, json: undefined }).seconds),
  // Whole seconds, as transcription by the minute counts them.
  units: { second: (facts) => ({ callCount: Math.ceil(lengthOf(facts).seconds) }) },
  form: (form) => form,
} satisfies Partial<Endpoint>;

export const transcriptions: Endpoint = { ...LISTENING, name: "transcriptions" };
export const translations: Endpoint = { ...LISTENING, name: "translations" };
