// Pictures, sound and realtime sessions: bodies, forms and answers.
// The main fields, as https://platform.openai.com/docs/api-reference describes them; others are passed on.
import {
  EVENT_STREAM,
  flag,
  FORM_TYPE,
  integer,
  JSON_TYPE,
  list,
  number,
  oneOf,
  open,
  ref,
  text,
  wholeOrStreamed,
} from "../schema.ts";
import type { RelayArea, RelayOperation, Schema } from "../schema.ts";

/** A file of a form, or an answer of bytes. */
const bytes = (description: string): Schema => ({ type: "string", format: "binary", description });

const listening = (summary: string): RelayOperation => ({
  tag: "Audio",
  summary,
  body: {
    type: FORM_TYPE,
    schema: ref("TranscriptionForm"),
    example: { model: "whisper-1", file: "(bytes of speech.mp3)" },
  },
  answer: {
    [JSON_TYPE]: { schema: ref("Transcription"), example: { text: "A weir is a low dam." } },
    "text/plain": { schema: text("With `response_format` text, srt or vtt.") },
    [EVENT_STREAM]: { schema: ref("AudioEvent") },
  },
  errors: "openai",
});

export const media: RelayArea = {
  schemas: {
    ImageRequest: open({
      prompt: text(),
      "model?": text(),
      "n?": integer("How many, up to 128."),
      "size?": text("Such as `1024x1024`."),
      "quality?": text(),
      "response_format?": oneOf(["url", "b64_json"]),
      "stream?": flag(),
    }),
    ImageForm: open({
      prompt: text(),
      image: bytes("The picture to be edited; several are sent as `image[]`."),
      "mask?": bytes("Where to edit."),
      "model?": text(),
      "n?": text(),
      "size?": text(),
    }),
    ImageList: open({
      created: integer("Unix seconds."),
      data: list(open({ "url?": text(), "b64_json?": text(), "revised_prompt?": text() })),
      "usage?": open({ "input_tokens?": integer(), "output_tokens?": integer(), "total_tokens?": integer() }),
    }),
    ImageEvent: open({ type: text("`image_generation.partial_image`, …"), "b64_json?": text() }),
    SpeechRequest: open({
      input: text(),
      "model?": text(),
      "voice?": text(),
      "response_format?": text("`mp3`, `opus`, `aac`, `flac`, `wav` or `pcm`."),
      "speed?": number(),
      "instructions?": text(),
    }),
    TranscriptionForm: open({
      file: bytes("The recording."),
      "model?": text(),
      "language?": text(),
      "prompt?": text(),
      "response_format?": text("`json`, `text`, `srt`, `verbose_json` or `vtt`."),
      "temperature?": text(),
      "stream?": text("`true`: answer as events."),
    }),
    Transcription: open({ text: text(), "language?": text(), "duration?": number("Seconds.") }),
    AudioEvent: open({
      type: text("`transcript.text.delta`, `transcript.text.done`, …"),
      "delta?": text(),
      "text?": text(),
    }),
  },
  operations: {
    "POST /v1/images/generations": {
      tag: "Images",
      summary: "Make pictures from words",
      body: {
        schema: ref("ImageRequest"),
        example: { model: "gpt-image-1", prompt: "A weir at dawn", n: 1 },
      },
      answer: wholeOrStreamed(
        {
          schema: ref("ImageList"),
          example: { created: 1_750_000_000, data: [{ url: "https://images.example.org/1.png" }] },
        },
        ref("ImageEvent"),
      ),
      errors: "openai",
    },
    "POST /v1/images/edits": {
      tag: "Images",
      summary: "Make pictures from pictures",
      body: {
        type: FORM_TYPE,
        schema: ref("ImageForm"),
        example: { model: "gpt-image-1", prompt: "Add a heron", image: "(bytes of weir.png)" },
      },
      answer: wholeOrStreamed({ schema: ref("ImageList") }, ref("ImageEvent")),
      errors: "openai",
    },
    "POST /v1/audio/speech": {
      tag: "Audio",
      summary: "Speak a text",
      body: { schema: ref("SpeechRequest"), example: { model: "tts-1", input: "A weir", voice: "alloy" } },
      answer: { "audio/*": { schema: bytes("The recording, as the body asked for it.") } },
      errors: "openai",
    },
    "POST /v1/audio/transcriptions": listening("Write down a recording"),
    "POST /v1/audio/translations": listening("Write down a recording in English"),
    "GET /v1/realtime": {
      tag: "Realtime",
      summary: "Open a realtime session",
      description:
        "A WebSocket that speaks OpenAI's realtime protocol: events as JSON texts, both ways. The key travels in the header or as the sub-protocol `openai-insecure-api-key.sk-…`. A refusal is an HTTP answer in place of the handshake.",
      parameters: [
        {
          name: "model",
          in: "query",
          required: true,
          description: "Name of the model.",
          schema: { type: "string" },
        },
        {
          name: "intent",
          in: "query",
          description:
            "`transcription` for a session that only listens; it pays the price of the model that its upstream says writes down, and its key must be allowed the one that it asks for.",
          schema: { type: "string" },
        },
      ],
      status: 101,
      answerDescription: "The WebSocket is open.",
      answer: {},
      errors: "openai",
    },
  },
};
