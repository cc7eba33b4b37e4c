// What becomes of somebody whom a provider vouches for: signed in, registered, bound, proven again, or told why not.
// Refuses to make anything of an address: neither does it sign in to an account that has it, nor does it make a second one.
import { randomInt } from "node:crypto";
import { and, eq } from "drizzle-orm";
import { q } from "../../../db/database.ts";
import { isUniqueViolation } from "../../../db/sql-state.ts";
import { Role, UserStatus } from "../../../shared/enums.ts";
import type { Language } from "../../../shared/enums.ts";
import { Failure } from "../../../shared/failures.ts";
import type { FailureCode } from "../../../shared/failure-codes.ts";
import { MAX_DISPLAY_NAME, MAX_USERNAME } from "../../../shared/name-limits.ts";
import { auditSteps } from "../../logs/audit.ts";
import { registeredBy } from "../../logs/sentences.ts";
import type { Deps } from "../../deps.ts";
import { foldMail, isPlainName, isReservedName } from "../folding.ts";
import type { MailAddress } from "../folding.ts";
import { mailFor, ownerOfMail } from "../mail-rules.ts";
import { addUser } from "../new-user.ts";
import { inviterOf } from "../registration.ts";
import { PROOF_SECONDS } from "../session-rows.ts";
import { requireProofMethod } from "../step-up.ts";
import { termsVersion } from "../terms.ts";
import type { UserRow } from "../users.ts";
import { insertIdentitySteps, labelOf, ownActor, ownerOf } from "./identities.ts";
import type { Origin } from "./identities.ts";
import { identityLetterSteps } from "./letters.ts";
import { sendSoon } from "../outbox.ts";
import type { IdentityProvider, Profile } from "./types.ts";

/** Who stands at the door. */
export interface Arrival extends Origin {
  language: Language;
  /** Invitation code. */
  aff: string;
  acceptsTerms: boolean;
  /** Counts a new account; throws where there were too many. */
  countAccount(): Promise<void>;
}

export interface ComeIn {
  user: UserRow;
  isNew: boolean;
}

const NAME_TRIES = 5;

function refusal(code: FailureCode, { label }: IdentityProvider): Failure {
  return new Failure("client", code, { params: { provider: label } });
}

/** The account, unless it may not come in. Throws `user_banned`, `oauth_account_deleted`. */
function usable(user: UserRow, provider: IdentityProvider): UserRow {
  if (user.deletedAt !== null) throw refusal("oauth_account_deleted", provider);
  if (user.status !== UserStatus.enabled) throw refusal("user_banned", provider);
  return user;
}

/** Whom the provider vouches for comes in: a known account, or a new one. */
export async function signInBy(
  deps: Deps,
  provider: IdentityProvider,
  profile: Profile,
  arrival: Arrival,
): Promise<ComeIn> {
  const known = await ownerOf(deps, provider, profile, arrival);
  if (known) return { user: usable(known, provider), isNew: false };
  const mail = profile.emailVerified && profile.email !== undefined ? foldMail(profile.email) : undefined;
  const owner = mail && (await ownerOfMail(deps, mail.key));
  if (owner) {
    const isLinked = provider.linksVerifiedMail && owner.role < Role.admin;
    if (!isLinked) throw refusal("oauth_email_exists", provider);
    await bindTo(deps, provider, profile, usable(owner, provider), arrival);
    return { user: owner, isNew: false };
  }
  if (!provider.allowsRegister) throw refusal("oauth_unbound", provider);
  if (!deps.options.get("RegisterEnabled")) throw new Failure("client", "register_closed");
  return registerBy(deps, provider, profile, arrival);
}

/** An address that the site's rules let in; an account is made without any other. */
function allowedMail(deps: Deps, { email, emailVerified }: Profile): MailAddress | undefined {
  if (!emailVerified || email === undefined) return undefined;
  try {
    return mailFor(deps, email);
  } catch {
    return undefined;
  }
}

/** A name of their own where one is left of it; undefined where not. */
function nameFrom(login: string | undefined): string | undefined {
  const name = (login ?? "").replace(/[^A-Za-z0-9_-]/g, "").slice(0, MAX_USERNAME);
  return name === "" || isReservedName(name) || !isPlainName(name) ? undefined : name;
}

const madeUpName = (id: string): string => `${id.slice(0, 12)}_${randomInt(1_000_000, 10_000_000)}`;

async function registerBy(
  deps: Deps,
  provider: IdentityProvider,
  profile: Profile,
  arrival: Arrival,
): Promise<ComeIn> {
  const terms = termsVersion(deps);
  if (terms !== "" && !arrival.acceptsTerms)
    throw new Failure("client", "terms_unaccepted", { param: "accept_terms" });
  await arrival.countAccount();
  const inviterId = await inviterOf(deps, arrival.aff);
  const mail = allowedMail(deps, profile);
  let username = nameFrom(profile.login) ?? madeUpName(provider.id);
  for (let tries = 1; ; tries++) {
    try {
      const name = username;
      const id = await addUser(deps, {
        username,
        displayName: displayName(profile) ?? username,
        mail,
        inviterId,
        setting: JSON.stringify({ language: arrival.language }),
        termsVersion: terms === "" ? undefined : terms,
        *after(tx, userId) {
          yield* insertIdentitySteps(tx, deps, { userId, provider: provider.id, profile });
          const user = { id: userId, username: name, role: Role.user };
          yield* auditSteps(tx, deps, {
            user,
            action: "account.registered",
            params: { provider: provider.label, account: labelOf(profile) },
            by: { ...ownActor(user, arrival), authMethod: "none" },
            content: registeredBy(provider.label, labelOf(profile)),
          });
        },
      });
      return { user: await rowOf(deps, id), isNew: true };
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== "username_taken" || tries === NAME_TRIES) throw error;
      // Somebody was quicker: with the same subject, the same address, or only the same name.
      const known = await ownerOf(deps, provider, profile, arrival);
      if (known) return { user: usable(known, provider), isNew: false };
      if (mail && (await ownerOfMail(deps, mail.key))) throw refusal("oauth_email_exists", provider);
      username = madeUpName(provider.id);
    }
  }
}

/** Without what nobody sees, cut to the length of one. */
function displayName({ name, login }: Profile): string | undefined {
  const plain = (name ?? login ?? "").replace(/\p{C}/gu, "").trim();
  const cut = Array.from(plain).slice(0, MAX_DISPLAY_NAME).join("");
  return cut === "" ? undefined : cut;
}

async function rowOf(deps: Pick<Deps, "db">, id: number): Promise<UserRow> {
  const { users } = deps.db.t;
  const [row] = await deps.db.orm.select().from(users).where(eq(users.id, id));
  if (!row) throw new Failure("internal", "internal_error");
  return row;
}

/** Binds the foreign account to one of ours. Throws `oauth_bound`, `oauth_bound_other`. */
export async function bindBy(
  deps: Deps,
  provider: IdentityProvider,
  profile: Profile,
  { userId, ...origin }: Origin & { userId: number },
): Promise<void> {
  await bindTo(deps, provider, profile, usable(await rowOf(deps, userId), provider), origin);
}

async function bindTo(
  deps: Deps,
  provider: IdentityProvider,
  profile: Profile,
  user: UserRow,
  origin: Origin,
): Promise<void> {
  const { identities } = deps.db.t;
  try {
    await deps.db.atomic(function* (tx) {
      const rows = yield* q(
        tx
          .select()
          .from(identities)
          .where(and(eq(identities.provider, provider.id), eq(identities.userId, user.id))),
      );
      const own = rows[0];
      if (own && !own.legacy)
        throw refusal(own.subject === profile.subject ? "oauth_bound" : "oauth_bound_other", provider);
      // The number takes the place of the login that the same account was imported with.
      if (own)
        yield* q(tx.delete(identities).where(eq(identities.id, own.id)).returning({ id: identities.id }));
      yield* insertIdentitySteps(tx, deps, { userId: user.id, provider: provider.id, profile });
      yield* auditSteps(tx, deps, {
        user,
        action: "identity.bound",
        params: { provider: provider.label, account: labelOf(profile) },
        by: ownActor(user, origin),
      });
      yield* identityLetterSteps(tx, deps, user, {
        provider: provider.label,
        account: labelOf(profile),
        isBound: true,
      });
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw refusal("oauth_bound", provider);
    throw error;
  }
  sendSoon(deps);
}

/**
 * The same foreign account as is bound: the session counts as proven again. Throws `oauth_other_account`, and
 * `verification_required` where the account has a second factor by now: a provider is no proof of one.
 */
export async function proveBy(
  deps: Deps,
  provider: IdentityProvider,
  profile: Profile,
  { userId, sessionId, ...origin }: Origin & { userId: number; sessionId: string },
): Promise<void> {
  const owner = await ownerOf(deps, provider, profile, origin);
  if (owner?.id !== userId) throw refusal("oauth_other_account", provider);
  usable(owner, provider);
  await requireProofMethod(deps, { id: userId }, `provider:${provider.id}`);
  await deps.sessions.prove(sessionId, Math.floor(deps.clock.nowMs() / 1000) + PROOF_SECONDS);
}
