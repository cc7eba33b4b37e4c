// The islands' only way to the server: Eden's client typed from the route module, and one way to fail.
// Refuses to hand out an envelope that says success:false: it becomes an ApiFailure with the public text.
import type { Treaty } from "@elysiajs/eden/treaty2";
import type { Routes } from "../../src/routes.ts";
import { user } from "./boot.ts";
import { hasText, t } from "./i18n.ts";
import { proveAfresh } from "./step-up.ts";
import { whenIdle } from "./when-idle.ts";

const origin = typeof location === "undefined" ? "http://localhost" : location.origin;

/** Names the log rows of a relayed call. */
export const REQUEST_ID_HEADER = "x-oneapi-request-id";

/** Replaced in tests; everything goes through here. */
export const transport: { fetch: (url: string, init?: RequestInit) => Promise<Response> } = {
  fetch: (url, init) => fetch(url, init),
};

/** Headers of every call: the server checks that page and session belong to the same user. */
function callHeaders(): Record<string, string> {
  const id = user.peek()?.id;
  return id === undefined ? {} : { "New-Api-User": String(id) };
}

const METHODS = new Set(["get", "post", "put", "patch", "delete", "head"]);

type Client = Treaty.Create<Routes>;
/** A step through Eden's client: a name, or what a path or a method is called with. */
type Step = string | readonly unknown[];

/** Repeats the call once, where it asked for fresh proof and whoever sits here has given it (step-up.ts). */
async function run(steps: readonly Step[]): Promise<unknown> {
  const outcome = (await runOnce(steps)) as Partial<Outcome> | undefined;
  const isProven = await proveAfresh(outcome?.response?.status ?? 0, outcome?.data);
  return isProven ? await runOnce(steps) : outcome;
}

/** Eden comes with the first call, and early while the page is idle: no first paint waits for it. */
async function runOnce(steps: readonly Step[]): Promise<unknown> {
  try {
    const { connect } = await import("./api-client.ts");
    let at: unknown = connect({ origin, transport, headers: callHeaders });
    for (const step of steps) {
      at =
        typeof step === "string"
          ? (at as Record<string, unknown>)[step]
          : (at as (...given: readonly unknown[]) => unknown)(...step);
    }
    return await (at as Promise<unknown>);
  } catch (error) {
    // Without the client as without the network: call() says so.
    return { data: null, error: { value: error }, status: 0 };
  }
}

/** Stands in for Eden's client: notes the way to a route and takes it once the route is called. */
function noting(steps: readonly Step[]): unknown {
  return new Proxy(() => undefined, {
    get: (_, name) => noting([...steps, String(name)]),
    apply: (_, __, given: readonly unknown[]) => {
      const last = steps.at(-1);
      const next = [...steps, given];
      return typeof last === "string" && METHODS.has(last) ? run(next) : noting(next);
    },
  });
}

whenIdle(() => void import("./api-client.ts").catch(() => undefined));

/** Calls below /api: `call(api.token.get({ query }))`, `call(api.token({ id }).delete())`. */
export const api = noting(["api"]) as Client["api"];

/** Failures are thrown: what is given has succeeded. */
type Body<R> = R extends { data: infer D } ? Exclude<NonNullable<D>, { success: false }> : never;
type Unwrapped<D> = D extends { data: infer T } ? T : D;

/** The body that a route answers: `ResponseBody<typeof api.pricing.get>`. */
type ResponseBody<Route extends (...args: never[]) => Promise<unknown>> = Body<Awaited<ReturnType<Route>>>;
/** What `call` gives for a route: the envelope's `data`. The islands' names for these stand in wire.ts. */
export type ResponseData<Route extends (...args: never[]) => Promise<unknown>> = Unwrapped<
  ResponseBody<Route>
>;

export type SiteStatus = ResponseData<typeof api.status.get>;

/** A refused or failed call. `message` is what people read; `code` is stable. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  constructor(
    readonly code: string,
    readonly status: number,
    message: string,
    /** Path of the refused field in the body, for the form. */
    readonly field?: string,
    readonly retryAfterSeconds?: number,
    readonly requestId?: string,
    /** What the refusal carries beside its words. */
    readonly data?: unknown,
  ) {
    super(message);
  }
}

interface Outcome {
  data: unknown;
  error: { value?: unknown } | null;
  status: number;
  response?: Response;
}

interface FailureEnvelope {
  success?: boolean;
  message?: string;
  code?: string;
  field?: string;
  request_id?: string;
  data?: unknown;
  error?: { message?: string; code?: string };
}

/** Runs a call and gives the envelope's `data` (or the body itself where there is none); throws ApiFailure. */
export async function call<R extends { data: unknown }>(running: Promise<R>): Promise<Unwrapped<Body<R>>> {
  const body = (await callForBody(running)) as { data?: unknown };
  return (body !== null && typeof body === "object" && "data" in body ? body.data : body) as Unwrapped<
    Body<R>
  >;
}

/** Like `call`, with the message and whatever else stands beside `data`. */
export async function callForBody<R extends { data: unknown }>(running: Promise<R>): Promise<Body<R>> {
  const outcome = (await running) as unknown as Outcome;
  const cause = outcome.error?.value;
  if (outcome.response === undefined) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw new ApiFailure("network", 0, t("common.failure.network"));
  }
  const body = outcome.data as FailureEnvelope;
  if (outcome.response.ok && body?.success !== false && body?.code !== "bad_answer") {
    return outcome.data as Body<R>;
  }
  throw failureOf(outcome.response, body ?? {});
}

/** Any fetch that is not part of the route module's types (streams, forms): same headers, same failures. */
export async function fetchChecked(path: string, init: RequestInit = {}, isAgain = false): Promise<Response> {
  let response: Response;
  try {
    response = await transport.fetch(origin + path, {
      credentials: "same-origin",
      ...init,
      headers: { ...callHeaders(), ...(init.headers as Record<string, string> | undefined) },
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiFailure("network", 0, t("common.failure.network"));
  }
  if (response.ok) return response;
  const body = (await response.json().catch(() => ({}))) as FailureEnvelope;
  if (!isAgain && (await proveAfresh(response.status, body))) return fetchChecked(path, init, true);
  throw failureOf(response, body);
}

/** A call by its path, for what the route module's types do not say: gives `data`, throws ApiFailure. */
export async function send<Data>(
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  given: { query?: Record<string, string | undefined>; body?: unknown } = {},
): Promise<Data> {
  return (await sendForBody<Data>(method, path, given)).data;
}

/** Like `send`, with the message beside `data`. */
export async function sendForBody<Data>(
  method: "GET" | "POST" | "PUT" | "DELETE",
  path: string,
  { query = {}, body }: { query?: Record<string, string | undefined>; body?: unknown } = {},
): Promise<{ data: Data; message?: string }> {
  const asked = Object.entries(query).filter((pair): pair is [string, string] => pair[1] !== undefined);
  const search = new URLSearchParams(asked).toString();
  const response = await fetchChecked(`${path}${search === "" ? "" : `?${search}`}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  const answer = (await response.json().catch(() => ({
    success: false,
    code: "bad_answer",
  }))) as FailureEnvelope & { data: Data };
  if (answer.success === false) throw failureOf(response, answer);
  return answer;
}

function failureOf(response: Response, body: FailureEnvelope): ApiFailure {
  const { status } = response;
  // The header names the dictionary's code also where the body has the one that a dialect asks for.
  const code = response.headers.get("x-weir-error-code") || body.code || body.error?.code || `http_${status}`;
  const retryAfter = Number(response.headers.get("retry-after"));
  const wait = Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : undefined;
  if (status === 401) leaveForLogin();
  // An administrator who has to enrol reaches nothing else.
  if (code === "second_factor_required" && !location.pathname.startsWith("/personal"))
    transportNavigate(ENROLMENT);
  return new ApiFailure(
    code,
    status,
    publicText(code, status, body.message || body.error?.message || "", wait),
    body.field,
    wait,
    body.request_id || response.headers.get(REQUEST_ID_HEADER) || undefined,
    body.data,
  );
}

/**
 * The dictionary's text for codes that arise in the browser and for bare statuses; otherwise the server's message, which
 * is the same dictionary's text with its placeholders filled in, in the language of the cookie.
 */
function publicText(code: string, status: number, message: string, waitSeconds: number | undefined): string {
  if (hasText(`common.failure.${code}`)) return t(`common.failure.${code}`);
  if (status === 429) {
    return waitSeconds === undefined
      ? message || t("common.failure.tooMany")
      : t("common.failure.tooManyWait", { seconds: waitSeconds });
  }
  if (message !== "") return message;
  if (status === 405) return t("common.failure.demo");
  if (status >= 500) return t("common.failure.server");
  return t("common.failure.unknown", { status });
}

/** Event before the page is left for the login page: open forms keep their unsent texts (drawer.tsx listens). */
export const LEAVING = "weir:leaving";

/** Where a second factor is set up. */
export const ENROLMENT = "/personal?tab=security";

let leaving = false;

function leaveForLogin(): void {
  if (leaving || typeof location === "undefined") return;
  leaving = true;
  window.dispatchEvent(new Event(LEAVING));
  const here = location.pathname + location.search;
  transportNavigate(`/login?expired=true&next=${encodeURIComponent(here)}`);
}

let transportNavigate = (url: string): void => location.assign(url);

/** For tests: where a page change goes. */
export function interceptNavigation(navigate: (url: string) => void): void {
  leaving = false;
  transportNavigate = navigate;
}

/** The text of anything thrown. */
export function failureMessage(error: unknown): string {
  return error instanceof ApiFailure ? error.message : t("common.failure.unexpected");
}

/** True for a call that was given up on purpose: nothing to report. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
