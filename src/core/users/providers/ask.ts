// How the server asks sign-in providers: through the guard, without redirects, in bounded time and size.
// Refuses plain http outside the networks that the operator opened.
import { Failure } from "../../../shared/failures.ts";
import { jsonObject } from "../../../shared/json-object.ts";
import type { Deps } from "../../deps.ts";

export type AskDeps = Pick<Deps, "guard" | "reach" | "logger">;

const TIMEOUT_MS = 10_000;
const ANSWER_BYTES = 256 * 1024;
/** Some providers refuse requests without one. */
const USER_AGENT = "weir";

export interface AskOptions {
  method?: "GET" | "POST";
  headers?: Record<string, string>;
  body?: string | Uint8Array<ArrayBuffer>;
  /**
   * The address that the operator typed, where the one to ask was named by its server: what UPSTREAM_NETWORKS opens is open to
   * that host alone.
   */
  typed?: string;
}

/** One question, whatever its status; throws Failures `address_…`. */
export async function askProvider(
  { guard, reach }: Pick<Deps, "guard" | "reach">,
  url: string,
  { method = "GET", headers = {}, body, typed = url }: AskOptions = {},
): Promise<{ status: number; headers: Headers; bytes: Uint8Array<ArrayBuffer> }> {
  const allow = reach.networks(url, { baseUrl: typed, setting: {} });
  if (!url.startsWith("https://") && (allow.length === 0 || !(await reach.opens(url, allow))))
    throw new Failure("client", "address_refused", { internal: "http outside UPSTREAM_NETWORKS" });
  const answer = await guard(url, {
    method,
    headers: { "user-agent": USER_AGENT, ...headers },
    ...(body === undefined ? {} : { body }),
    maxBytes: ANSWER_BYTES,
    timeoutMs: TIMEOUT_MS,
    maxRedirects: 0,
    allow,
  });
  return answer;
}

/** The JSON object of a profile call. Throws a Failure `oauth_profile_failed`. */
export async function askJson(
  deps: AskDeps,
  label: string,
  url: string,
  headers: Record<string, string>,
): Promise<Record<string, unknown>> {
  const { status, text } = await asked(deps, label, url, { headers });
  const found = status === 200 && text.trim() !== "" ? jsonObject(text) : undefined;
  if (found) return found;
  throw profileFailed(deps, label, `status ${status}`);
}

/** The same without judging what came; for answers that may be missing. */
export async function asked(
  deps: AskDeps,
  label: string,
  url: string,
  options: AskOptions,
): Promise<{ status: number; text: string }> {
  try {
    const { status, bytes } = await askProvider(deps, url, options);
    return { status, text: new TextDecoder().decode(bytes) };
  } catch (error) {
    throw unreachable(deps, label, error);
  }
}

/** Never what was sent or answered: both hold secrets. */
export function unreachable({ logger }: Pick<Deps, "logger">, label: string, error: unknown): Failure {
  const reason = error instanceof Failure ? error.code : String(error).slice(0, 200);
  logger.warn("a sign-in provider could not be asked", { provider: label, reason });
  return new Failure("client", "oauth_unreachable", { params: { provider: label }, internal: reason });
}

export function exchangeFailed({ logger }: Pick<Deps, "logger">, label: string, reason: string): Failure {
  logger.warn("a sign-in provider did not take a code", { provider: label, reason });
  return new Failure("client", "oauth_exchange_failed", { params: { provider: label }, internal: reason });
}

export function profileFailed({ logger }: Pick<Deps, "logger">, label: string, reason: string): Failure {
  logger.warn("a sign-in provider did not say who it is", { provider: label, reason });
  return new Failure("client", "oauth_profile_failed", { params: { provider: label }, internal: reason });
}

/** A subject as it is stored: a text, or a whole number that JSON keeps exactly; undefined for anything else. */
export function subjectOf(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? String(value) : undefined;
  // eslint-disable-next-line no-control-regex
  if (typeof value !== "string" || value === "" || value.length > 255 || /[\u0000-\u001f\u007f]/.test(value))
    return undefined;
  return value;
}

/** Of a claim: a text of some length, or nothing. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim().slice(0, 255) : undefined;
}
