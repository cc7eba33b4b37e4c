// The Gemini-dialect relay routes: the model and what it shall do both stand in the last piece of the address.
// Refuses actions that the gateway does not have, in Google's own envelope.
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import { checkedBy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { encodeTokenCount } from "../protocol/gemini/usage.ts";
import { Failure } from "../shared/failures.ts";
import { admitCaller } from "./call/admission.ts";
import type { Caller } from "./call/admission.ts";
import { refusePlain } from "./call/exchange.ts";
import { preflight } from "./wire/cors.ts";
import { batchEmbedContents, embedContent, gemini } from "./endpoints/native.ts";
import { geminiModel, geminiModelList } from "./models.ts";
import type { Relay } from "./call/pipeline.ts";

const raw = { parse: "none", ...checkedBy("relay key") } as const;

export function geminiRelay(deps: Deps, session: SessionSettings, relay: Relay) {
  function refused(request: Request, error: unknown, caller?: Caller): Response {
    const services = { deps, errorRows: relay.parts.errorRows };
    return refusePlain(services, { request, caller, dialect: "gemini" }, error);
  }

  /** `target` is everything behind /models/: a name (slashes allowed), a colon and the action. */
  function act(request: Request, target: string): Response | Promise<Response> {
    const colon = target.lastIndexOf(":");
    const pathModel = decoded(target.slice(0, colon === -1 ? undefined : colon));
    const call = { request, endpoint: gemini, pathModel };
    switch (target.slice(colon + 1)) {
      case "generateContent":
        return relay.serve({ ...call, pathStream: "none" });
      case "streamGenerateContent":
        return relay.serve({ ...call, pathStream: wantsEvents(request) ? "events" : "array" });
      case "countTokens":
        return relay.count(call, encodeTokenCount);
      case "embedContent":
        return relay.serve({ ...call, endpoint: embedContent });
      case "batchEmbedContents":
        return relay.serve({ ...call, endpoint: batchEmbedContents });
      default:
        return refused(request, new Failure("client", "gemini_action_unknown", { status: 404 }));
    }
  }

  async function listed(request: Request, name?: string): Promise<Response> {
    let caller: Caller | undefined;
    try {
      caller = await admitCaller(deps, request, session.visitors);
      return name === undefined
        ? geminiModelList(deps, caller, request)
        : geminiModel(deps, caller, request, name);
    } catch (error) {
      return refused(request, error, caller);
    }
  }

  return (
    new Elysia()
      .post("/v1beta/models/*", ({ request, params }) => act(request, params["*"]), raw)
      // Google's SDK also speaks version 1 of the same calls.
      .post("/v1/models/*", ({ request, params }) => act(request, params["*"]), raw)
      .get("/v1beta/models", ({ request }) => listed(request), raw)
      .get("/v1beta/models/*", ({ request, params }) => listed(request, decoded(params["*"])), raw)
      .options("/v1beta/*", ({ request }) => preflight(request), checkedBy("relay key"))
  );
}

/** Without alt=sse Google streams the elements of one JSON array. */
function wantsEvents(request: Request): boolean {
  return new URL(request.url).searchParams.get("alt") === "sse";
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
