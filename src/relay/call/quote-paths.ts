// Which inference route a quote is asked for: its endpoint by its path, as the routes themselves have it.
import { speech, transcriptions, translations } from "../endpoints/audio.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";
import { imageEdits, imageGenerations } from "../endpoints/images.ts";
import { edits, moderations } from "../endpoints/legacy.ts";
import {
  batchEmbedContents,
  compact,
  embedContent,
  gemini,
  messages,
  responses,
} from "../endpoints/native.ts";
import { rerank } from "../endpoints/rerank.ts";
import { chat, completions, embeddings } from "../endpoints/text.ts";
import type { RelayRequest } from "./exchange.ts";

/** Beside the call that it stands for a quote has no file: the form's other fields say what it costs. */
const editsWithoutFile: Endpoint = { ...imageEdits, check: () => {} };

const withoutRecording = (endpoint: Endpoint): Endpoint => ({ ...endpoint, check: () => {} });
const LISTENING = {
  "/audio/transcriptions": withoutRecording(transcriptions),
  "/audio/translations": withoutRecording(translations),
};

/** A recording that nobody has seen has no length: only a price of the whole call can be quoted for it. */
export function needsCallPrice(endpoint: Endpoint): boolean {
  return Object.values(LISTENING).includes(endpoint);
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  "/chat/completions": chat,
  "/completions": completions,
  "/embeddings": embeddings,
  "/responses": responses,
  "/responses/compact": compact,
  "/messages": messages,
  "/edits": edits,
  "/moderations": moderations,
  "/rerank": rerank,
  "/images/generations": imageGenerations,
  "/images/edits": editsWithoutFile,
  "/audio/speech": speech,
  ...LISTENING,
};

const GEMINI_STREAM = "streamGenerateContent";
const GEMINI_ACTIONS: Readonly<Record<string, Endpoint>> = {
  generateContent: gemini,
  [GEMINI_STREAM]: gemini,
  embedContent,
  batchEmbedContents,
};

/** What of a request its path says. */
export type QuotedTarget = Pick<RelayRequest, "endpoint" | "pathModel" | "pathStream">;

/** Undefined: no route of that path has a price that is known before its answer (sessions, tasks, lists). */
export function quotedTarget(address: string): QuotedTarget | undefined {
  const [path = ""] = address.split("?");
  const action = /^\/v1(?:beta)?\/models\/(.+):(\w+)$/.exec(path);
  if (action) {
    const [, name = "", verb = ""] = action;
    const endpoint = Object.hasOwn(GEMINI_ACTIONS, verb) ? GEMINI_ACTIONS[verb] : undefined;
    return endpoint && { endpoint, pathModel: name, pathStream: verb === GEMINI_STREAM ? "events" : "none" };
  }
  const engine = /^\/v1\/engines\/([^/]+)\/embeddings$/.exec(path);
  if (engine) return { endpoint: embeddings, pathModel: engine[1] ?? "" };
  const name = path.replace(/^\/(?:openai\/)?v[12](?=\/)|^\/pg(?=\/chat\/)/, "");
  const endpoint = Object.hasOwn(ENDPOINTS, name) ? ENDPOINTS[name] : undefined;
  return endpoint && { endpoint };
}
