// The human check: asks the service whether a visitor's token is good, for the routes where strangers may do something.
// Refuses whenever the answer is not a clear yes: an outage closes these routes.
import { randomUUID } from "node:crypto";
import ipaddr from "ipaddr.js";
import { refuse } from "../../shared/failures.ts";
import { jsonObject } from "../../shared/json-object.ts";
import type { Deps } from "../deps.ts";

export type HumanDeps = Pick<Deps, "options" | "guard" | "reach" | "logger">;

export interface HumanToken {
  token: string;
  /** The visitor's. */
  address: string;
  /** The route, as the widget was told. */
  action: string;
}

const MAX_TOKEN = 2048;
const TIMEOUT_MS = 5000;
const ANSWER_BYTES = 16 * 1024;
const TRIES = 2;

interface Verdict {
  success?: unknown;
  hostname?: unknown;
  action?: unknown;
  metadata?: unknown;
}

async function ask(deps: HumanDeps, { token, address }: HumanToken): Promise<Verdict> {
  const url = deps.options.get("TurnstileVerifyUrl");
  const form = new URLSearchParams({
    secret: deps.options.get("TurnstileSecretKey"),
    response: token,
    remoteip: address,
    // One that was answered, and whose answer was lost, counts once.
    idempotency_key: randomUUID(),
  }).toString();
  const allow = deps.reach.networks(url, { baseUrl: url, setting: {} });
  for (let attempt = 1; ; attempt++) {
    try {
      const { status, bytes } = await deps.guard(url, {
        method: "POST",
        headers: { "content-type": "application/x-www-form-urlencoded" },
        body: form,
        maxBytes: ANSWER_BYTES,
        timeoutMs: TIMEOUT_MS,
        maxRedirects: 0,
        allow,
      });
      if (status >= 500) throw new Error(`the human check answered ${status}`);
      return jsonObject(new TextDecoder().decode(bytes)) ?? {};
    } catch (error) {
      if (attempt === TRIES) throw error;
    }
  }
}

function hostnameOf(address: string): string {
  return URL.parse(address)?.hostname ?? "";
}

function isLoopback(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, "");
  return bare === "localhost" || (ipaddr.isValid(bare) && ipaddr.process(bare).range() === "loopback");
}

/** Keys that the service documents for tests answer another host; they count only where nobody else comes. */
function isRightHost(serverAddress: string, { hostname, metadata }: Verdict): boolean {
  const own = hostnameOf(serverAddress);
  const isTestKey =
    typeof metadata === "object" && metadata !== null && "result_with_testing_key" in metadata
      ? metadata.result_with_testing_key === true
      : false;
  if (isTestKey) return own === "" || isLoopback(own);
  return own === "" || hostname === own;
}

/** Resolves for a person. Throws Failures `human_check_empty` and `human_check_failed`. */
export async function checkHuman(deps: HumanDeps, visitor: HumanToken): Promise<void> {
  if (visitor.token === "") throw refuse("human_check_empty");
  if (visitor.token.length > MAX_TOKEN) throw refuse("human_check_failed");
  let verdict: Verdict;
  try {
    verdict = await ask(deps, visitor);
  } catch (error) {
    deps.logger.warn("the human check could not be asked", { error: String(error) });
    throw refuse("human_check_failed");
  }
  const isRightAction = !verdict.action || verdict.action === visitor.action;
  if (verdict.success === true && isRightAction && isRightHost(deps.options.get("ServerAddress"), verdict))
    return;
  throw refuse("human_check_failed");
}
