// The Anthropic-dialect relay routes: Messages and their token count.
// They name the endpoint and nothing else: every inference call goes through the pipeline.
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import { checkedBy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { encodeTokenCount } from "../protocol/anthropic/usage.ts";
import { messages } from "./endpoints/native.ts";
import type { Relay } from "./call/pipeline.ts";

const raw = { parse: "none", ...checkedBy("relay key") } as const;

export function anthropicRelay(_deps: Deps, _session: SessionSettings, relay: Relay) {
  return new Elysia()
    .post("/v1/messages", ({ request }) => relay.serve({ request, endpoint: messages }), raw)
    .post(
      "/v1/messages/count_tokens",
      ({ request }) => relay.count({ request, endpoint: messages }, encodeTokenCount),
      raw,
    );
}
