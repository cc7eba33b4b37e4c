// The pause between two questions after something that takes its time (a task, a chat under way), and the questions.
// Refuses to outlive the call: a signal that fires ends the pause at once. Refuses to give up what is paid for because
// nobody could say how far it is.
import { retrySeconds } from "../protocol/classify.ts";
import type { JsonObject } from "../protocol/canonical.ts";
import { Failure } from "../shared/failures.ts";
import type { AdapterCall } from "./adapter.ts";
import { filledObject } from "./adapter-kit.ts";

/** Resolves after the time, rejects when the signal fires. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>;

export const realWait: Wait = (ms, signal) =>
  new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const onAbort = (): void => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal.addEventListener("abort", onAbort, { once: true });
  });

const FIRST_PAUSE_MS = 1000;
/** What is under way may be done long before the time that a busy provider names. */
const MAX_PAUSE_MS = 30_000;

/** Statuses that say nothing of what was asked after: too many questions, or trouble of the provider's. */
const isMomentary = (status: number): boolean =>
  status === 408 || status === 425 || status === 429 || status >= 500;

export interface AfterQuestion {
  url: string;
  headers: Record<string, string>;
  wait: Wait;
  /** Before the first question; absent for what is there already. */
  pauseMs?: number;
  /** The status that a 200 answer means, for providers that say errors in it. */
  statusIn?: (body: JsonObject) => number;
}

/** What a provider said of something under way: an object for 200, the refusal as it came for anything else. */
export type Told = { body: JsonObject } | { refused: Response };

/**
 * Asks after something that was begun, and is paid for. A provider that is busy or away is asked again until the call's time
 * is over: what runs there goes on, and begun a second time elsewhere it would be paid for twice.
 */
export async function askAfter(call: AdapterCall, question: AfterQuestion): Promise<Told> {
  const { url, headers, wait, pauseMs, statusIn } = question;
  call.underWay?.();
  if (pauseMs !== undefined) await wait(pauseMs, call.signal);
  for (let backoffMs = FIRST_PAUSE_MS; ; backoffMs *= 2) {
    let askedMs = 0;
    try {
      const response = await call.fetch(url, { method: "GET", headers, signal: call.signal });
      const text = await response.text();
      const { status } = response;
      const body = filledObject(text);
      const meant = status === 200 ? (body ? (statusIn?.(body) ?? 200) : 502) : status;
      if (body && meant === 200) return { body };
      if (!isMomentary(meant)) return { refused: new Response(text, { status, headers: response.headers }) };
      askedMs = (retrySeconds(response.headers.get("retry-after")) ?? 0) * 1000;
    } catch (error) {
      // An address that may not be called is no matter of time; neither is a call that is over.
      if (call.signal.aborted || error instanceof Failure) throw error;
    }
    await wait(Math.min(Math.max(askedMs, backoffMs), MAX_PAUSE_MS), call.signal);
  }
}
