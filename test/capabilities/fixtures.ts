// One fixture for each channel type that is served: rows of OpenAI's shape share a form, the others speak their own.
// Refuses nothing; the suite refuses a type without an entry.
import { ali, baidu, minimax, siliconflow, tencent, xunfei, zhipuV3 } from "./chinese-forms.ts";
import { bedrock, vertex } from "./cloud-forms.ts";
import { header } from "./fixture.ts";
import type { Fixture } from "./fixture.ts";
import { openai } from "./openai-forms.ts";
import {
  aiproxyLibrary,
  cloudflare,
  cohere,
  coze,
  dify,
  geminiType,
  ollama,
  replicate,
} from "./own-forms.ts";

const PLAIN_OPENAI = [1, 6, 7, 9, 10, 12, 13, 19, 20, 22, 25, 26, 27, 31, 38, 42, 43, 45, 46, 47, 48, 53];

export const FIXTURES: ReadonlyMap<number, Fixture> = new Map<number, Fixture>([
  ...PLAIN_OPENAI.map((type): [number, Fixture] => [type, openai()]),
  [3, openai({ isAuthorised: header("api-key") })],
  [4, ollama],
  [8, openai({ baseUrl: (url, operation) => url + FULL_PATHS[operation] })],
  [14, openai({ models: { any: "claude-sonnet-4-5" }, isAuthorised: header("x-api-key") })],
  [15, baidu],
  [16, zhipuV3],
  [17, ali],
  [18, xunfei],
  [21, aiproxyLibrary],
  [23, tencent],
  [24, geminiType],
  [33, bedrock],
  [34, cohere],
  [35, minimax],
  [37, dify],
  [39, cloudflare],
  [40, siliconflow],
  [41, vertex],
  [44, openai({ models: { any: "m3e-base" } })],
  [49, coze],
  [56, replicate],
  [59, openai()],
  [60, openai()],
]);

/** A channel of type 8 names the whole address of one operation. */
const FULL_PATHS: Readonly<Record<string, string>> = {
  chat: "/v1/chat/completions",
  completions: "/v1/completions",
  embeddings: "/v1/embeddings",
  moderations: "/v1/moderations",
  "image-generations": "/v1/images/generations",
  "image-edits": "/v1/images/edits",
  speech: "/v1/audio/speech",
  transcriptions: "/v1/audio/transcriptions",
  translations: "/v1/audio/translations",
  rerank: "/v1/rerank",
  responses: "/v1/responses",
  realtime: "/v1/realtime",
};
