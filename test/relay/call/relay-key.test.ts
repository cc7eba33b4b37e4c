// Every form in which clients present their key.
import { expect, test } from "bun:test";
import { presentedKey } from "../../../src/http/relay-key.ts";

const CHAT = "http://gateway/v1/chat/completions";
const MESSAGES = "http://gateway/v1/messages";
const GEMINI = "http://gateway/v1beta/models/gemini-2.5-pro:generateContent";

test.each<[string, string, Record<string, string>, string, string | undefined]>([
  ["Bearer with sk-", CHAT, { authorization: "Bearer sk-abc" }, "abc", undefined],
  ["Bearer without sk-", CHAT, { authorization: "Bearer abc" }, "abc", undefined],
  ["a lower-case scheme", CHAT, { authorization: "bearer sk-abc" }, "abc", undefined],
  ["no scheme at all", CHAT, { authorization: "sk-abc" }, "abc", undefined],
  ["a channel behind the key", CHAT, { authorization: "Bearer sk-abc-12" }, "abc", "12"],
  ["only the first part behind the key counts", CHAT, { authorization: "Bearer sk-abc-12-x" }, "abc", "12"],
  ["nothing", CHAT, {}, "", undefined],
  ["an empty Bearer", CHAT, { authorization: "Bearer " }, "", undefined],
  ["x-api-key of Anthropic clients", MESSAGES, { "x-api-key": "sk-abc" }, "abc", undefined],
  [
    "x-api-key before Authorization on the messages route",
    MESSAGES,
    { "x-api-key": "sk-abc", authorization: "Bearer sk-other" },
    "abc",
    undefined,
  ],
  ["Bearer on the messages route", MESSAGES, { authorization: "Bearer sk-abc" }, "abc", undefined],
  ["x-goog-api-key", GEMINI, { "x-goog-api-key": "sk-abc" }, "abc", undefined],
  ["?key= of Gemini clients", `${GEMINI}?alt=sse&key=sk-abc`, {}, "abc", undefined],
  [
    "the WebSocket subprotocol before Authorization",
    "http://gateway/v1/realtime?model=m",
    {
      "sec-websocket-protocol": "realtime, openai-insecure-api-key.sk-abc, openai-beta.realtime-v1",
      authorization: "Bearer sk-other",
    },
    "abc",
    undefined,
  ],
  ["mj-api-secret", "http://gateway/mj/submit/imagine", { "mj-api-secret": "sk-abc" }, "abc", undefined],
  [
    "mj-api-secret behind the placeholder of Midjourney clients",
    "http://gateway/mj/submit/imagine",
    { authorization: "Bearer midjourney-proxy", "mj-api-secret": "Bearer sk-abc" },
    "abc",
    undefined,
  ],
])("%s", (_, url, headers, key, channel) => {
  expect(presentedKey(new Request(url, { headers }))).toEqual({ key, channel });
});
