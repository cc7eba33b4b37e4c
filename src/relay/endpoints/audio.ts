// Speech from text, and text from speech: what each asks of its body, and what it costs where nobody says.
// Refuses forms without a recording; how long one is is read from its container, never guessed from its name. Speech by the
// token is not given away: where its sound has a price, the sound that was made is counted.
import { asObject } from "../../protocol/json.ts";
import { emptyUsage } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { PriceRatios } from "../../shared/cost.ts";
import { hasTranscript } from "./answer-checks.ts";
import { audioSeconds } from "./audio-duration.ts";
import { refused } from "./endpoint.ts";
import type { AnswerFacts, AnswerSound, Endpoint, Json } from "./endpoint.ts";
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

/** Output tokens of a minute of speech: OpenAI's $0.015 a minute at $12 a million. */
const SPOKEN_PER_MINUTE = 1250;
/** Characters that are read in a second: of alphabets, and of scripts with a syllable or a word in each. */
const LETTERS_PER_SECOND = 15;
const SYLLABLES_PER_SECOND = 4.5;
/** The first code point behind the alphabets. */
const FIRST_SYLLABLE = 0x2e80;
/** A slow voice takes so many times as long as a usual one. */
const SLOW = 2;
/** Samples of pcm as it is answered: 24 kHz of two bytes. */
const PCM_BYTES_PER_SECOND = 48_000;

/** Whether tokens of sound have a price of their own: else the price is one of the text that is read, as it was listed. */
function hasSpokenPrice({ callPrice, rates, audioRatio, audioCompletionRatio }: PriceRatios): boolean {
  if (callPrice !== undefined) return false;
  return rates ? rates.audio_out !== rates.in : audioRatio * audioCompletionRatio !== 1;
}

/** How long a usual voice reads the text. */
function readingSeconds(body: Json): number {
  let seconds = 0;
  for (const each of inputOf(body))
    seconds += 1 / ((each.codePointAt(0) ?? 0) < FIRST_SYLLABLE ? LETTERS_PER_SECOND : SYLLABLES_PER_SECOND);
  const speed = body["speed"];
  return typeof speed === "number" && speed > 0 ? seconds / Math.min(4, Math.max(0.25, speed)) : seconds;
}

/** How long the answer's sound is: what its beginning tells of its rate, for all of its bytes. */
function spokenSeconds({ head, total }: AnswerSound, body: Json): number {
  if (body["response_format"] === "pcm") return total / PCM_BYTES_PER_SECOND;
  const known = audioSeconds(head);
  if (known === undefined) return total / BYTES_PER_SECOND;
  // Its head tells the length of the whole.
  const isWhole = head[0] === 0x66 && head[1] === 0x4c && head[2] === 0x61 && head[3] === 0x43;
  return isWhole ? known : (known * total) / head.length;
}

const spokenTokens = (seconds: number): number => Math.ceil((seconds / 60) * SPOKEN_PER_MINUTE);

/** Models named tts… are sold by the character, others by the token: of the text, and of sound where that has a price. */
async function speechUsage(facts: AnswerFacts): Promise<Usage> {
  const { body, upstreamModel, model, count, sound, ratios } = facts;
  const input = inputOf(body);
  if (isSoldByCharacter(model) || isSoldByCharacter(upstreamModel)) return tokensOf(characters(input));
  const usage = tokensOf(await count([input]));
  if (!hasSpokenPrice(ratios)) return usage;
  usage.output.audio = spokenTokens(sound ? spokenSeconds(sound, body) : readingSeconds(body));
  usage.estimated = true;
  return usage;
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
  heldSound: ({ body, model, ratios }) =>
    isSoldByCharacter(model) || !hasSpokenPrice(ratios) ? 0 : spokenTokens(readingSeconds(body) * SLOW),
  units: { kchar: ({ body }) => ({ callCount: characters(inputOf(body)), callFactor: 0.001 }) },
};

/** Tokens of a minute of speech, of whole seconds. */
const TOKENS_PER_MINUTE = 1000;
/** What recordings of unknown formats are taken for: 128 kilobits per second. */
const BYTES_PER_SECOND = 16_000;

function recording(form: Form | undefined): FormPart | undefined {
  return form?.parts.find((part) => part.name === "file" && part.filename !== undefined);
}

/** Models listen in windows of so many seconds, and may put the last word at the end of one. */
const WINDOW_SECONDS = 30;
const STAMP = /-->\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})/g;

/** Where the last subtitle ends, of an answer of subtitles. */
function stampedSeconds(answer: unknown): number {
  if (typeof answer !== "string") return 0;
  let last = 0;
  for (const [, hours = "0", minutes, seconds, parts = "0"] of answer.matchAll(STAMP))
    last = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(`0.${parts}`);
  return last;
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

/**
 * How long the recording is: as its upstream says, else as its container does, else by its size; no shorter than subtitles
 * that were made of it.
 */
function lengthOf({ json, form }: Pick<AnswerFacts, "json" | "form">): { seconds: number; isGuess: boolean } {
  const bytes = recording(form)?.bytes ?? new Uint8Array();
  const known = reportedSeconds(json) ?? audioSeconds(bytes);
  const seconds = known ?? bytes.length / BYTES_PER_SECOND;
  const stamped = stampedSeconds(json);
  if (stamped > seconds + WINDOW_SECONDS) return { seconds: stamped, isGuess: false };
  return { seconds, isGuess: known === undefined };
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
