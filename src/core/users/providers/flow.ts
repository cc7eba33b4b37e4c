// A sign-in by a provider that is under way: what was asked for, kept in a row until the browser comes back with its state.
// Refuses the state of another browser, provider or session, and any second use: the row is used up before a code is.
import { randomBytes } from "node:crypto";
import { and, eq, gt, inArray, isNull } from "drizzle-orm";
import { Failure } from "../../../shared/failures.ts";
import type { Deps } from "../../deps.ts";
import { sha256Hex } from "../../kit/seal.ts";
import type { FlowIntent, ProviderFlow } from "./types.ts";

type FlowDeps = Pick<Deps, "db" | "clock" | "seal" | "options">;

const FLOW_SECONDS = 600;
const MAX_NEXT = 2000;
/** Older consoles ask for a state first and build the address by themselves; they know these. */
const OLDER = ["github", "oidc", "linuxdo"];

/** What is kept, sealed. */
interface Kept {
  intent: FlowIntent;
  verifier: string;
  nonce: string;
  next: string;
  aff: string;
  acceptsTerms: boolean;
}

/** A flow that somebody came back from. */
export interface ReturnedFlow extends ProviderFlow {
  /** A path of this site, or empty. */
  next: string;
  /** Invitation code. */
  aff: string;
  acceptsTerms: boolean;
  /** Whose it is: of intents bind and verify; else 0. */
  userId: number;
}

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

/** A path of this site, or the empty text for everything else. */
export function ownPath(typed: string): string {
  // oxlint-disable-next-line no-control-regex
  if (typed.length > MAX_NEXT || !/^\/(?![/\\])/.test(typed) || /[\u0000-\u001f\u007f\\]/.test(typed))
    return "";
  const base = "https://site.invalid";
  const url = URL.parse(typed, base);
  return url?.origin === base && !url.pathname.startsWith("//") ? url.pathname + url.search + url.hash : "";
}

/** Where a provider sends people back to: the console's page, never a call. */
function redirectUri({ options }: Pick<Deps, "options">, provider: string): string {
  return `${options.get("ServerAddress")}/oauth/${provider}`;
}

export interface FlowRequest {
  /** Undefined: of an older console, for any of the providers that it knows. */
  provider: string | undefined;
  intent: FlowIntent;
  next: string;
  aff: string;
  acceptsTerms: boolean;
  /** Random id of the browser. */
  browser: string;
  /** Of intents bind and verify. */
  session?: { id: string; userId: number } | undefined;
}

/** Writes the row and answers what the provider is told. */
export async function startFlow(deps: FlowDeps, request: FlowRequest): Promise<ProviderFlow> {
  const { authFlows } = deps.db.t;
  const { provider, intent, browser, session } = request;
  const now = nowSeconds(deps);
  const state = randomBytes(32).toString("base64url");
  const secrets =
    provider === undefined
      ? { verifier: "", nonce: "" }
      : { verifier: randomBytes(32).toString("base64url"), nonce: randomBytes(16).toString("base64url") };
  const kept: Kept = {
    intent,
    ...secrets,
    next: ownPath(request.next),
    aff: request.aff,
    acceptsTerms: request.acceptsTerms,
  };
  await deps.db.orm.insert(authFlows).values({
    kind: "oauth",
    secretHash: sha256Hex(state),
    provider: provider ?? "",
    browserHash: sha256Hex(browser),
    userId: session?.userId ?? 0,
    sessionId: session?.id ?? "",
    payload: deps.seal.seal("flow", JSON.stringify(kept)),
    createdAt: now,
    expiresAt: now + FLOW_SECONDS,
  });
  return { state, ...secrets, intent, startedAt: now, redirectUri: redirectUri(deps, provider ?? "") };
}

/** What somebody comes back to without a state. */
interface StatelessReturn extends Omit<FlowReturn, "state" | "sessionId"> {
  /** Of the session that began to bind; undefined: a sign-in, which belongs to no session. */
  sessionId: string | undefined;
}

/**
 * Uses up what this browser began with a provider that brings no state back (Telegram). Throws a Failure `oauth_state` where
 * there is nothing: a foreign link would bind a stranger's account, or sign its reader in to one.
 */
export async function returnWithoutState(
  deps: FlowDeps,
  { provider, browser, sessionId }: StatelessReturn,
): Promise<void> {
  const { authFlows } = deps.db.t;
  const now = nowSeconds(deps);
  const begun = await deps.db.orm
    .update(authFlows)
    .set({ usedAt: now })
    .where(
      and(
        eq(authFlows.kind, "oauth"),
        eq(authFlows.provider, provider),
        eq(authFlows.browserHash, sha256Hex(browser)),
        eq(authFlows.sessionId, sessionId ?? ""),
        isNull(authFlows.usedAt),
        gt(authFlows.expiresAt, now),
      ),
    )
    .returning({ id: authFlows.id });
  if (browser === "" || sessionId === "" || begun.length === 0)
    throw new Failure("forbidden", "oauth_state", { status: 403 });
}

export interface FlowReturn {
  provider: string;
  state: string;
  browser: string;
  /** Of the live session, or empty. */
  sessionId: string;
}

/** Uses the row up. Throws a Failure `oauth_state` where it is not of this browser, provider and session, or not any more. */
export async function returnToFlow(
  deps: FlowDeps,
  { provider, state, browser, sessionId }: FlowReturn,
): Promise<ReturnedFlow> {
  const { authFlows } = deps.db.t;
  const now = nowSeconds(deps);
  const refused = () => new Failure("forbidden", "oauth_state", { status: 403 });
  if (state === "" || state.length > 255 || browser === "") throw refused();
  const providers = OLDER.includes(provider) ? [provider, ""] : [provider];
  const [row] = await deps.db.orm
    .update(authFlows)
    .set({ usedAt: now })
    .where(
      and(
        eq(authFlows.kind, "oauth"),
        eq(authFlows.secretHash, sha256Hex(state)),
        inArray(authFlows.provider, providers),
        eq(authFlows.browserHash, sha256Hex(browser)),
        // A guest's flow stays a guest's, whoever signed in meanwhile.
        inArray(authFlows.sessionId, sessionId === "" ? [""] : ["", sessionId]),
        isNull(authFlows.usedAt),
        gt(authFlows.expiresAt, now),
      ),
    )
    .returning({ payload: authFlows.payload, userId: authFlows.userId, createdAt: authFlows.createdAt });
  if (!row) throw refused();
  const kept = JSON.parse(deps.seal.open("flow", row.payload)) as Kept;
  return {
    ...kept,
    state,
    redirectUri: redirectUri(deps, provider),
    startedAt: row.createdAt,
    userId: row.userId,
  };
}
