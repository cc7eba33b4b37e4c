// What the capability suite knows of one channel type: how it is set up, and a provider on loopback in its own wire form.
// Refuses to know the gateway: the forms are the providers' documented ones.
import type { RecordedRequest, Script } from "../support/fake-upstream.ts";

/** What the provider shall answer now. */
export interface Scene {
  /** cut and hang: a stream that breaks off, or says no more, behind its first words. */
  kind: "text" | "tool" | "error" | "cut" | "hang";
  /** Of the error. */
  status: number;
}

export const TEXT = "Hello there!";
export const USAGE = { prompt: 9, completion: 3 };
export const TOOL = { name: "weather", input: { city: "Zürich" } };
export const VECTOR = [0.25, -0.5, 1];

export interface Fixture {
  /** Channel settings; `key` as an operator types it. */
  key: string;
  other?: string;
  /** The channel's base address; the fake's own when absent. */
  baseUrl?: (url: string, operation: string) => string;
  models: Partial<
    Record<
      "chat" | "messages" | "gemini" | "responses" | "embeddings" | "image-generations" | "rerank" | "any",
      string
    >
  >;
  /** The request carries what this provider authorises by. */
  isAuthorised: (request: RecordedRequest) => boolean;
  /** The provider knows tools; otherwise the gateway must refuse them by name. */
  hasTools: boolean;
  /** The provider reports tokens; otherwise the gateway counts, and says so. */
  reportsUsage: boolean;
  /** The usual refusals of this provider arrive with status 200. */
  errorsWith200?: boolean;
  answer: (request: RecordedRequest, scene: Scene) => Script;
  /** The chat goes over a WebSocket: the suite starts this server in place of the HTTP one. */
  socket?: (scene: () => Scene) => {
    url: string;
    stop: () => void;
    seen: string[];
    /** Settles when the next socket is closed. */
    left: () => Promise<void>;
  };
}

export const KEY = "sk-capability";
export const pathOf = (request: RecordedRequest): string => request.url.split("?")[0] ?? "";
export const queryOf = (request: RecordedRequest): URLSearchParams =>
  new URLSearchParams(request.url.split("?")[1] ?? "");
export const bearer = (key: string) => (request: RecordedRequest) =>
  request.headers["authorization"] === `Bearer ${key}`;
export const header = (name: string) => (request: RecordedRequest) => request.headers[name] === KEY;

export const json = (value: unknown, status = 200): Script => ({
  status,
  headers: { "content-type": "application/json" },
  steps: [JSON.stringify(value)],
});

export const events = (steps: readonly string[]): Script => ({
  status: 200,
  headers: { "content-type": "text/event-stream" },
  steps,
});

export const data = (value: unknown): string =>
  `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
export const named = (event: string, value: unknown): string => `event: ${event}\n${data(value)}`;
