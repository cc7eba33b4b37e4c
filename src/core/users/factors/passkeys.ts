// Passkeys (WebAuthn): registered, signed in with without a name, and shown as a second factor. The challenge is consumed before
// anything else, because counters that stay 0 let the same answer pass again and again.
// Refuses addresses that a browser cannot bind a passkey to, foreign handles, copies, and answers without verification.
import { randomBytes } from "node:crypto";
import { and, asc, eq, lt } from "drizzle-orm";
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import { countRows, q } from "../../../db/database.ts";
import { UserStatus } from "../../../shared/enums.ts";
import { refuse } from "../../../shared/failures.ts";
import { passkeySite } from "../../../shared/passkey-site.ts";
import type { PasskeySite } from "../../../shared/passkey-site.ts";
import type { Deps, UserAccount } from "../../deps.ts";
import { openTokenFlow, useTokenFlow } from "../token-flows.ts";
import type { UserRow } from "../users.ts";
import { auditSteps } from "../../logs/audit.ts";
import type { AuditActor } from "../../logs/audit.ts";
import { lockUserSteps, markFactorSteps } from "./factor-rows.ts";
import type { FactorTold } from "./factor-rows.ts";

export type PasskeyDeps = Pick<Deps, "db" | "clock" | "seal" | "options" | "accounts" | "logger">;

const TIMEOUT_MS = 120_000;
const FLOW_SECONDS = 180;
const MOST = 10;
const NAME_CHARACTERS = 60;
/** EdDSA, ES256, RS256 (COSE): Bun would offer more than every authenticator understands. */
const ALGORITHMS = [-8, -7, -257];

type Purpose = "register" | "login" | "verify";

interface Challenge {
  challenge: string;
  purpose: Purpose;
}

/** Loaded with the first passkey: 332 KB that few processes use. */
const library = () => import("@simplewebauthn/server");

/** Whether anybody can sign in with a passkey here. */
export function arePasskeysOn({ options }: Pick<Deps, "options">): boolean {
  return options.get("passkey.enabled") && passkeySite(options.get("ServerAddress")) !== undefined;
}

function siteOf(deps: PasskeyDeps): PasskeySite {
  const site = arePasskeysOn(deps) ? passkeySite(deps.options.get("ServerAddress")) : undefined;
  if (!site) throw refuse("passkey_off");
  return site;
}

/** What the browser is asked: its own API's options, which the console hands on as they are. */
export interface Begun {
  options: Record<string, unknown>;
  flow_token: string;
}

const newChallenge = (): string => randomBytes(32).toString("base64url");

async function challengeFlow(
  deps: PasskeyDeps,
  purpose: Purpose,
  owner: { userId?: number; sessionId?: string },
): Promise<{ challenge: string; flowToken: string }> {
  const challenge = newChallenge();
  const payload: Challenge = { challenge, purpose };
  const flowToken = await openTokenFlow(deps, { kind: "passkey", ...owner, payload, seconds: FLOW_SECONDS });
  return { challenge, flowToken };
}

type PasskeyRow = PasskeyDeps["db"]["t"]["passkeys"]["$inferSelect"];

function passkeysOf(deps: Pick<Deps, "db">, userId: number): Promise<PasskeyRow[]> {
  const { passkeys } = deps.db.t;
  return deps.db.orm.select().from(passkeys).where(eq(passkeys.userId, userId)).orderBy(asc(passkeys.id));
}

/** Throws `passkey_off`, `passkey_too_many`. */
export async function beginRegistration(
  deps: PasskeyDeps,
  actor: UserAccount,
  sessionId: string,
): Promise<Begun> {
  const site = siteOf(deps);
  const own = await passkeysOf(deps, actor.id);
  if (own.length >= MOST) throw refuse("passkey_too_many", { most: MOST });
  const { users } = deps.db.t;
  const [row] = await deps.db.orm
    .select({ handle: users.passkeyHandle })
    .from(users)
    .where(eq(users.id, actor.id));
  let handle = row?.handle ?? "";
  if (handle === "") {
    // Of accounts that are older than passkeys.
    handle = randomBytes(32).toString("base64url");
    await deps.db.orm.update(users).set({ passkeyHandle: handle }).where(eq(users.id, actor.id));
  }
  const { challenge, flowToken } = await challengeFlow(deps, "register", { userId: actor.id, sessionId });
  const { generateRegistrationOptions } = await library();
  const options = await generateRegistrationOptions({
    rpName: deps.options.get("SystemName"),
    rpID: site.id,
    userName: actor.username,
    userDisplayName: actor.displayName || actor.username,
    userID: new Uint8Array(Buffer.from(handle, "base64url")),
    challenge: new Uint8Array(Buffer.from(challenge, "base64url")),
    timeout: TIMEOUT_MS,
    attestationType: "none",
    excludeCredentials: own.map(({ credentialId, transports }) => ({
      id: credentialId,
      transports: transports.split(",").filter((each) => each !== ""),
    })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    supportedAlgorithmIDs: ALGORITHMS,
  });
  return { options: { ...options }, flow_token: flowToken };
}

/** Throws `flow_over`, `passkey_refused`, `passkey_too_many`, `passkey_known`. */
export async function finishRegistration(
  deps: PasskeyDeps,
  actor: UserAccount,
  {
    flowToken,
    response,
    name,
    sessionId,
    told,
  }: { flowToken: string; response: unknown; name: string; sessionId: string; told: FactorTold },
): Promise<void> {
  const site = siteOf(deps);
  const flow = await useTokenFlow<Challenge>(deps, "passkey", flowToken);
  if (flow?.payload.purpose !== "register" || flow.userId !== actor.id || flow.sessionId !== sessionId)
    throw refuse("flow_over");
  const { verifyRegistrationResponse } = await library();
  const verified = await verifyRegistrationResponse({
    response: response as RegistrationResponseJSON,
    expectedChallenge: flow.payload.challenge,
    expectedOrigin: site.origin,
    expectedRPID: site.id,
    requireUserVerification: true,
    supportedAlgorithmIDs: ALGORITHMS,
  }).catch((error: unknown) => {
    deps.logger.debug("a passkey was refused", { user: actor.id, error: String(error) });
    throw refuse("passkey_refused");
  });
  if (!verified.verified) throw refuse("passkey_refused");
  const { credential, credentialDeviceType, credentialBackedUp, aaguid } = verified.registrationInfo;
  const { passkeys } = deps.db.t;
  await deps.db.atomic(function* (tx) {
    yield* lockUserSteps(tx, deps, actor.id);
    const [own] = yield* q(
      tx.select({ count: countRows() }).from(passkeys).where(eq(passkeys.userId, actor.id)),
    );
    if ((own?.count ?? 0) >= MOST) throw refuse("passkey_too_many", { most: MOST });
    const [row] = yield* q(
      tx
        .insert(passkeys)
        .values({
          userId: actor.id,
          credentialId: credential.id,
          publicKey: Buffer.from(credential.publicKey).toString("base64url"),
          counter: credential.counter,
          transports: (credential.transports ?? []).join(",").slice(0, 200),
          deviceType: credentialDeviceType,
          backedUp: credentialBackedUp,
          aaguid,
          name: nameOf(name) || `Passkey ${(own?.count ?? 0) + 1}`,
          createdAt: Math.floor(deps.clock.nowMs() / 1000),
        })
        .onConflictDoNothing()
        .returning({ name: passkeys.name }),
    );
    if (!row) throw refuse("passkey_known");
    yield* markFactorSteps(tx, deps, actor.id);
    yield* told(tx, { name: row.name });
  });
  await deps.accounts.userChanged(actor.id);
}

const nameOf = (typed: string): string => typed.trim().slice(0, NAME_CHARACTERS);

/** For a sign-in without a name, or (owner given) for proving oneself again in that session. */
export async function beginAssertion(
  deps: PasskeyDeps,
  owner?: { userId: number; sessionId: string },
): Promise<Begun> {
  const site = siteOf(deps);
  const { challenge, flowToken } = await challengeFlow(deps, owner ? "verify" : "login", owner ?? {});
  const { generateAuthenticationOptions } = await library();
  const options = await generateAuthenticationOptions({
    rpID: site.id,
    // Names no account: whoever asks learns nothing of which there are.
    allowCredentials: owner
      ? (await passkeysOf(deps, owner.userId)).map(({ credentialId }) => ({ id: credentialId }))
      : [],
    challenge: new Uint8Array(Buffer.from(challenge, "base64url")),
    timeout: TIMEOUT_MS,
    userVerification: "required",
  });
  return { options: { ...options }, flow_token: flowToken };
}

interface Shown {
  id?: unknown;
  response?: { userHandle?: unknown };
}

/**
 * Whose passkey signed the challenge. Throws `passkey_refused` for whatever is not right, and tells in the log where a
 * counter says that the passkey was copied.
 */
export async function finishAssertion(
  deps: PasskeyDeps,
  { flowToken, response }: { flowToken: string; response: unknown },
  expected?: { userId: number; sessionId: string },
): Promise<UserRow> {
  const site = siteOf(deps);
  const flow = await useTokenFlow<Challenge>(deps, "passkey", flowToken);
  if (flow?.payload.purpose !== (expected ? "verify" : "login")) throw refuse("flow_over");
  if (expected && (flow.userId !== expected.userId || flow.sessionId !== expected.sessionId))
    throw refuse("flow_over");
  const shown = (typeof response === "object" && response !== null ? response : {}) as Shown;
  const { passkeys, users } = deps.db.t;
  const [found] = await deps.db.orm
    .select({ passkey: passkeys, user: users })
    .from(passkeys)
    .innerJoin(users, eq(users.id, passkeys.userId))
    .where(eq(passkeys.credentialId, typeof shown.id === "string" ? shown.id : ""));
  if (!found || (expected && found.user.id !== expected.userId)) throw refuse("passkey_refused");
  const { passkey, user } = found;
  const handle = shown.response?.userHandle;
  // The library does not look at it; a discoverable passkey always sends it.
  if (
    expected
      ? handle !== undefined && handle !== null && handle !== user.passkeyHandle
      : handle !== user.passkeyHandle
  )
    throw refuse("passkey_refused");
  if (user.deletedAt !== null || user.status !== UserStatus.enabled) throw refuse("passkey_refused");
  const newCounter = await assertedCounter(deps, site, passkey, flow.payload.challenge, response);
  // Compared once more by the statement: of two copies that are shown at once, one gets in.
  const rose = await deps.db.orm
    .update(passkeys)
    .set({ counter: newCounter, lastUsedAt: Math.floor(deps.clock.nowMs() / 1000) })
    .where(
      and(
        eq(passkeys.id, passkey.id),
        newCounter === 0 ? eq(passkeys.counter, 0) : lt(passkeys.counter, newCounter),
      ),
    )
    .returning({ id: passkeys.id });
  if (rose.length === 0) throw refuse("passkey_refused");
  return user;
}

async function assertedCounter(
  deps: PasskeyDeps,
  site: PasskeySite,
  passkey: PasskeyRow,
  challenge: string,
  response: unknown,
): Promise<number> {
  const { verifyAuthenticationResponse } = await library();
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      requireUserVerification: true,
      credential: {
        id: passkey.credentialId,
        publicKey: new Uint8Array(Buffer.from(passkey.publicKey, "base64url")),
        counter: passkey.counter,
      },
    });
    if (verified) return authenticationInfo.newCounter;
  } catch (error) {
    if (/counter/i.test(String(error)))
      deps.logger.warn("a passkey's counter did not rise: it may have been copied", {
        user: passkey.userId,
        passkey: passkey.id,
      });
    else deps.logger.debug("a passkey was refused", { user: passkey.userId, error: String(error) });
  }
  throw refuse("passkey_refused");
}

export async function listPasskeys(deps: Pick<Deps, "db">, userId: number) {
  const rows = await passkeysOf(deps, userId);
  return rows.map((row) => ({
    id: row.id,
    name: row.name,
    created_at: row.createdAt,
    last_used_at: row.lastUsedAt,
    device_type: row.deviceType,
    backed_up: row.backedUp,
  }));
}

/** Throws `record_missing`, for another's like for none. */
export async function renamePasskey(
  deps: Pick<Deps, "db" | "ledger">,
  by: AuditActor,
  id: number,
  typed: string,
): Promise<void> {
  const { passkeys } = deps.db.t;
  const name = nameOf(typed) || "Passkey";
  await deps.db.atomic(function* (tx) {
    const rows = yield* q(
      tx
        .update(passkeys)
        .set({ name })
        .where(and(eq(passkeys.id, id), eq(passkeys.userId, by.id)))
        .returning({ id: passkeys.id }),
    );
    if (rows.length === 0) throw refuse("record_missing");
    yield* auditSteps(tx, deps, { user: by, action: "passkey.renamed", params: { name }, by });
  });
}
