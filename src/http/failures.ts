// Turns everything thrown in a console route into the envelope, in the caller's language.
// Refuses to show internals: an unexpected error becomes a 500 with a request id, its text goes to the log only.
import { Elysia, ValidationError } from "elysia";
import { databaseFailure } from "../core/kit/database-failure.ts";
import type { Logger } from "../core/deps.ts";
import { idsOf } from "../observe/trace-context.ts";
import { Failure, waitSecondsOf } from "../shared/failures.ts";
import type { FailureKind } from "../shared/failures.ts";
import { expectedText } from "./expected.ts";
import type { RefusedValue } from "./expected.ts";
import { failureText, languageOf } from "./messages.ts";
import type { OptionStore } from "../core/options/store.ts";
import type { Language } from "../shared/enums.ts";
import { ERROR_CODE_HEADER, newRequestId, REQUEST_ID_HEADER } from "./request-id.ts";

/** As servers of this kind log it. */
const CLIENT_LEFT = 499;

/** Console calls answer business refusals with 200; only these kinds have a status of their own. */
const CONSOLE_STATUS: Partial<Record<FailureKind, number>> = {
  auth: 401,
  forbidden: 403,
  limit: 429,
  internal: 500,
};

/** Calls whose clients expect 400 for a body that cannot be read. */
const BAD_REQUEST_PATHS = new Set(["/api/option", "/api/setup", "/api/channel/fetch_models"]);

interface FailureBody {
  success: false;
  message: string;
  code: string;
  /** Field that was refused, as a path into the body. */
  field?: string;
  request_id?: string;
  data?: Record<string, unknown>;
}

export function failureResponse(failure: Failure, language: Language, requestId?: string): Response {
  const body: FailureBody = {
    success: false,
    message: failureText(failure, language),
    code: failure.code,
  };
  if (failure.param !== undefined) body.field = failure.param;
  if (failure.data !== undefined) body.data = failure.data;
  if (requestId !== undefined) body.request_id = requestId;
  const headers: Record<string, string> = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    [REQUEST_ID_HEADER]: requestId ?? newRequestId(),
    [ERROR_CODE_HEADER]: failure.code,
  };
  const waitSeconds = waitSecondsOf(failure);
  if (waitSeconds !== undefined) headers["retry-after"] = String(waitSeconds);
  const status = failure.explicitStatus ?? CONSOLE_STATUS[failure.kind] ?? 200;
  return Response.json(body, { status, headers });
}

/** The answer for unknown API paths: the shape that OpenAI clients read. */
export function unknownPath(request: Request): Response {
  const pathname = pathOf(request);
  return Response.json(
    {
      error: {
        message: `Invalid URL (${request.method} ${pathname})`,
        type: "invalid_request_error",
        param: "",
        code: "",
      },
    },
    {
      status: 404,
      headers: {
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
        [REQUEST_ID_HEADER]: newRequestId(),
        [ERROR_CODE_HEADER]: "unknown_path",
      },
    },
  );
}

/** Also of addresses that are no URL. */
function pathOf(request: Request): string {
  return URL.parse(request.url, "http://localhost")?.pathname ?? "";
}

/** What the validator found first; nothing for bodies that could not be read at all. */
function refusedValue(error: unknown): RefusedValue {
  const found = error instanceof ValidationError ? error.valueError : undefined;
  return found ? { path: found.path, message: found.message, schema: found.schema } : {};
}

/** Mounted before every route, so that no framework text gets out. */
export function failures(
  { logger, options }: { logger: Logger; options: Pick<OptionStore, "get"> },
  notFound: (request: Request) => Response | Promise<Response>,
) {
  return new Elysia({ name: "failures" }).onError(
    { as: "global" },
    ({ error: thrown, code, request, set }) => {
      // What a hook throws while the body is read arrives inside a ParseError.
      const language = languageOf(request, options);
      const inner = thrown instanceof Error ? thrown.cause : undefined;
      const error = inner instanceof Failure ? inner : (databaseFailure(thrown) ?? thrown);
      const answer = (response: Response): Response => {
        // Elysia would otherwise put the status of the thrown error over the one chosen here.
        set.status = response.status;
        // The answer carries its own, which is the one in its text.
        delete set.headers[REQUEST_ID_HEADER];
        return response;
      };
      if (error instanceof Failure) {
        if (error.kind !== "internal") return answer(failureResponse(error, language));
        const requestId = newRequestId();
        logger.error("call failed", {
          request_id: requestId,
          trace_id: traceIdOf(request),
          code: error.code,
          cause: error.cause === undefined ? (error.internal ?? "") : describe(error.cause),
        });
        return answer(failureResponse(error, language, requestId));
      }
      if (code === "NOT_FOUND") return notFound(request);
      if (code === "VALIDATION" || code === "PARSE" || code === "INVALID_COOKIE_SIGNATURE") {
        const refused = refusedValue(error);
        const field = (refused.path ?? "").replace(/^\//, "").replaceAll("/", ".");
        const path = pathOf(request).replace(/\/$/, "");
        const known = field !== "";
        const reason = known ? expectedText(refused, language) : "";
        return answer(
          failureResponse(
            new Failure("client", known ? "invalid_field" : "invalid_params", {
              params: { field, reason },
              ...(known ? { param: field } : {}),
              ...(BAD_REQUEST_PATHS.has(path) ? { status: 400 } : {}),
            }),
            language,
          ),
        );
      }
      // Whoever read the address failed over a host that is none ("a:b"): checking it for every call would cost each of them.
      if (!URL.canParse(request.url))
        return answer(failureResponse(new Failure("client", "host_invalid", { status: 400 }), language));
      // Whoever has left ended its own query: nobody reads an answer, and nothing went wrong.
      if (request.signal.aborted) return answer(new Response(null, { status: CLIENT_LEFT }));
      const requestId = newRequestId();
      logger.error("call failed", {
        request_id: requestId,
        trace_id: traceIdOf(request),
        path: pathOf(request),
        error: describe(error),
      });
      return answer(
        failureResponse(
          new Failure("internal", "internal_error", { params: { requestId } }),
          language,
          requestId,
        ),
      );
    },
  );
}

/** Of the client's own trace: whoever follows it finds the line. */
export function traceIdOf({ headers }: Request): string | undefined {
  return idsOf(headers.get("traceparent"))?.traceId;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? `\ncaused by ${error.cause.message}` : "";
  return (error.stack ?? error.message) + cause;
}
