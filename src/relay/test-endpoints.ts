// Endpoints that a channel test may call, by what the tested model does.
// Refuses nothing; probe.ts decides which one it is.
import type { Endpoint } from "./endpoint.ts";
import { imageGenerations } from "./endpoints-images.ts";
import { rerank } from "./endpoints-rerank.ts";
import { chat, embeddings } from "./endpoints.ts";
import type { TestCall } from "./probe.ts";

export const TEST_ENDPOINTS: Readonly<Record<TestCall["operation"], Endpoint>> = {
  chat,
  embeddings,
  rerank,
  "image-generations": imageGenerations,
};
