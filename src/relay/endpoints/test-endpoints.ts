// Endpoints that a channel test may call, by what the tested model does.
// probe.ts decides which one it is.
import type { Endpoint } from "./endpoint.ts";
import { imageGenerations } from "./images.ts";
import { rerank } from "./rerank.ts";
import { chat, embeddings } from "./text.ts";

/** What a test asks: an operation, and the smallest body that it takes. */
export interface TestCall {
  operation: "chat" | "embeddings" | "rerank" | "image-generations";
  body: Record<string, unknown>;
}

export const TEST_ENDPOINTS: Readonly<Record<TestCall["operation"], Endpoint>> = {
  chat,
  embeddings,
  rerank,
  "image-generations": imageGenerations,
};
