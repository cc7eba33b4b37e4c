// The OpenAI-dialect relay routes, Responses among them, and the playground.
// They name the endpoint and nothing else: every inference call goes through the pipeline.
import { Elysia } from "elysia";
import type { Deps, UserAccount } from "../core/deps.ts";
import { checkedBy, claimsOf, policy, signedInBy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Session } from "../core/users/sessions.ts";
import { Failure } from "../shared/failures.ts";
import { admitCaller } from "./call/admission.ts";
import type { Caller } from "./call/admission.ts";
import { refusePlain } from "./call/exchange.ts";
import type { RelayRequest } from "./call/exchange.ts";
import type { SessionCaller } from "./call/prepare.ts";
import { preflight } from "./wire/cors.ts";
import type { Endpoint } from "./endpoints/endpoint.ts";
import { chat, completions, embeddings } from "./endpoints/text.ts";
import { speech, transcriptions, translations } from "./endpoints/audio.ts";
import { imageEdits, imageGenerations } from "./endpoints/images.ts";
import { edits, moderations } from "./endpoints/legacy.ts";
import { compact, responses } from "./endpoints/native.ts";
import { rerank } from "./endpoints/rerank.ts";
import { refuseGet } from "./responses-get.ts";
import { listDialect, modelList, oneModel } from "./models.ts";
import type { Relay } from "./call/pipeline.ts";
import { playgroundBody, playgroundCaller, sessionUser } from "./playground.ts";
import { quotedSurfaces } from "./quoted-surfaces.ts";
import { createRealtime } from "./realtime/realtime.ts";

/** The body is read by the pipeline, once, as bytes. */
const raw = { parse: "none", ...checkedBy("relay key") } as const;

export function openaiRelay(deps: Deps, session: SessionSettings, relay: Relay) {
  return new Elysia()
    .use(inferenceRoutes(deps, relay))
    .use(modelRoutes(deps, session, relay))
    .use(unimplementedRoutes(deps, session, relay))
    .use(playgroundRoutes(deps, session, relay));
}

function inferenceRoutes(deps: Deps, relay: Relay) {
  const realtime = createRealtime(deps, relay.parts);
  const surfaceOf = quotedSurfaces(deps, relay.parts);
  const serve =
    (endpoint: Endpoint) =>
    ({ request }: { request: Request }): Promise<Response> =>
      relay.serve({ request, endpoint });
  return (
    new Elysia()
      .post("/v1/chat/completions", ({ request }) => relay.serve({ request, endpoint: chat }), raw)
      .post("/v1/completions", ({ request }) => relay.serve({ request, endpoint: completions }), raw)
      .post("/v1/embeddings", ({ request }) => relay.serve({ request, endpoint: embeddings }), raw)
      .post(
        "/v1/engines/:model/embeddings",
        ({ request, params }) => relay.serve({ request, endpoint: embeddings, pathModel: params.model }),
        raw,
      )
      .post("/v1/responses", ({ request }) => relay.serve({ request, endpoint: responses }), raw)
      .post("/v1/responses/compact", serve(compact), raw)
      // Codex and others whose base address was given without its version.
      .post("/responses", serve(responses), raw)
      .post("/responses/compact", serve(compact), raw)
      // Groq's SDK puts this behind any base address.
      .post("/openai/v1/chat/completions", serve(chat), raw)
      .post("/openai/v1/embeddings", serve(embeddings), raw)
      .post("/openai/v1/audio/speech", serve(speech), raw)
      .post("/openai/v1/audio/transcriptions", serve(transcriptions), raw)
      .post("/openai/v1/audio/translations", serve(translations), raw)
      .post("/v1/edits", serve(edits), raw)
      .post("/v1/moderations", serve(moderations), raw)
      .post("/v1/rerank", serve(rerank), raw)
      .post("/v2/rerank", serve(rerank), raw)
      .post("/v1/images/generations", serve(imageGenerations), raw)
      .post("/v1/images/edits", serve(imageEdits), raw)
      .post("/v1/audio/speech", serve(speech), raw)
      .post("/v1/audio/transcriptions", serve(transcriptions), raw)
      .post("/v1/audio/translations", serve(translations), raw)
      .post("/v1/quote", ({ request }) => relay.quote({ request, endpoint: chat }, surfaceOf), raw)
      .get("/v1/realtime", ({ request }) => realtime.serve(request), raw)
      .options("/v1/*", ({ request }) => preflight(request), checkedBy("relay key"))
      .options("/openai/v1/*", ({ request }) => preflight(request), checkedBy("relay key"))
      .options("/responses", ({ request }) => preflight(request), checkedBy("relay key"))
      .options("/models", ({ request }) => preflight(request), checkedBy("relay key"))
      .options("/v2/*", ({ request }) => preflight(request), checkedBy("relay key"))
  );
}

/** Where refusals leave their rows. */
const refusalServices = (deps: Deps, { parts }: Relay) => ({ deps, errorRows: parts.errorRows });

type ModelAnswer = (deps: Deps, caller: Caller, request: Request) => Response;

function modelRoutes(deps: Deps, { visitors }: SessionSettings, relay: Relay) {
  async function listed(request: Request, make: ModelAnswer): Promise<Response> {
    let caller: Caller | undefined;
    try {
      caller = await admitCaller(deps, request, visitors);
      return make(deps, caller, request);
    } catch (error) {
      return refusePlain(
        refusalServices(deps, relay),
        { request, caller, dialect: listDialect(request) },
        error,
      );
    }
  }
  return new Elysia()
    .get("/v1/responses", ({ request }) => refuseGet(deps, { visitors }, request), raw)
    .get("/responses", ({ request }) => refuseGet(deps, { visitors }, request), raw)
    .get("/v1/models", ({ request }) => listed(request, modelList), raw)
    .get("/models", ({ request }) => listed(request, modelList), raw)
    .get("/openai/v1/models", ({ request }) => listed(request, modelList), raw)
    .get(
      "/v1/models/*",
      ({ request, params }) =>
        listed(request, (d, caller, r) => oneModel(d, caller, r, decoded(params["*"]))),
      raw,
    );
}

/** Calls that clients of this API know and this gateway does not have: known keys get that as the answer. */
function unimplementedRoutes(deps: Deps, { visitors }: SessionSettings, relay: Relay) {
  async function notImplemented({ request }: { request: Request }): Promise<Response> {
    let caller: Caller | undefined;
    try {
      caller = await admitCaller(deps, request, visitors);
      throw new Failure("client", "api_not_implemented", { status: 501, type: "new_api_error" });
    } catch (error) {
      const omitId = error instanceof Failure && error.code === "api_not_implemented";
      return refusePlain(
        refusalServices(deps, relay),
        { request, caller, omitId, dialect: listDialect(request) },
        error,
      );
    }
  }
  return new Elysia()
    .delete("/v1/models/*", notImplemented, raw)
    .post("/v1/images/variations", notImplemented, raw)
    .get("/v1/files", notImplemented, raw)
    .post("/v1/files", notImplemented, raw)
    .get("/v1/files/:id", notImplemented, raw)
    .delete("/v1/files/:id", notImplemented, raw)
    .get("/v1/files/:id/content", notImplemented, raw)
    .get("/v1/fine-tunes", notImplemented, raw)
    .post("/v1/fine-tunes", notImplemented, raw)
    .get("/v1/fine-tunes/:id", notImplemented, raw)
    .post("/v1/fine-tunes/:id/cancel", notImplemented, raw)
    .get("/v1/fine-tunes/:id/events", notImplemented, raw);
}

/**
 * Behind the macro that only looks at the session: its refusals would come in the console's envelope, and callers of this
 * route read errors in the shape of the API that they try out.
 */
function playgroundRoutes(deps: Deps, session: SessionSettings, relay: Relay) {
  const options = {
    parse: "none",
    open: "visitor",
    detail: checkedBy("session, by the relay").detail,
  } as const;
  type Serve = (call: RelayRequest, session: SessionCaller) => Promise<Response>;
  interface Visit {
    request: Request;
    visitor: UserAccount | undefined;
    session: Session | undefined;
  }
  async function asVisitor({ request, visitor, session: known }: Visit, serve: Serve): Promise<Response> {
    const again = async (): Promise<UserAccount> => {
      const claims = visitor && known && claimsOf(visitor, known.id);
      return sessionUser(deps, request, (await signedInBy(claims, session))?.user);
    };
    let user: UserAccount;
    try {
      user = sessionUser(deps, request, visitor);
    } catch (error) {
      const services = refusalServices(deps, relay);
      return refusePlain(services, { request, omitId: true, dialect: "openai-chat" }, error);
    }
    return serve(
      { request, endpoint: chat },
      {
        user,
        bodyOf: playgroundBody,
        callerOf: (body, current) => playgroundCaller(deps, current, body),
        again,
      },
    );
  }
  return new Elysia()
    .use(policy(session))
    .post(
      "/pg/chat/completions",
      async ({ request, visitor, session: known }) =>
        asVisitor({ request, visitor, session: known }, (call, caller) => relay.serveSession(call, caller)),
      options,
    )
    .post(
      "/pg/quote",
      async ({ request, visitor, session: known }) =>
        asVisitor({ request, visitor, session: known }, (call, caller) => relay.quoteSession(call, caller)),
      options,
    );
}

/** Clients write the slashes of a model's name as %2F. */
function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
