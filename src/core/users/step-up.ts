// Whoever does something that could take the account away proves first that they are still the one who signed in.
// Refuses with `verification_required`, and the ways that the account has to prove itself.
import { eq } from "drizzle-orm";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { verifyPassword } from "./credentials.ts";
import { factorsOf } from "./factors/factor-rows.ts";
import { arePasskeysOn } from "./factors/passkeys.ts";
import { proveSecondCode } from "./factors/totp.ts";
import { enabledProviders, isRedirecting } from "./providers/registry.ts";
import type { RegistryDeps } from "./providers/registry.ts";
import type { Session } from "./sessions.ts";

export type StepUpDeps = RegistryDeps &
  Pick<Deps, "db" | "clock" | "seal" | "options" | "accounts" | "sessions">;

/** Whom an action asks: everybody, or accounts with a second factor (identity.md 5.4). */
export type ProofNeed = "everybody" | "with_factor";

export interface ProofCaller {
  actor: UserAccount;
  /** Undefined: an access token, which cannot prove anything. */
  session: Session | undefined;
}

/** How the account can prove itself. Where it has a usable factor, neither its password nor a provider is a proof. */
async function proofMethods(deps: StepUpDeps, actor: Pick<UserAccount, "id">): Promise<string[]> {
  const { users, identities } = deps.db.t;
  const factors = await factorsOf(deps, actor.id);
  const methods: string[] = [];
  if (factors.hasTotp) methods.push("2fa");
  if (factors.passkeys > 0 && arePasskeysOn(deps)) methods.push("passkey");
  if (methods.length > 0) return methods;
  const [row] = await deps.db.orm
    .select({ passwordHash: users.passwordHash })
    .from(users)
    .where(eq(users.id, actor.id));
  if (row && row.passwordHash !== "") methods.push("password");
  const bound = await deps.db.orm
    .select({ provider: identities.provider })
    .from(identities)
    .where(eq(identities.userId, actor.id));
  // A round by one that is off, or that sends no browser anywhere, proves nothing.
  const rounds = (await enabledProviders(deps)).filter(isRedirecting).map(({ id }) => id);
  const own = bound.filter(({ provider }) => rounds.includes(provider));
  return [...methods, ...own.map(({ provider }) => `provider:${provider}`)];
}

/** Throws Failure `verification_required` (403) unless the session is freshly proven. */
export async function requireFreshProof(
  deps: StepUpDeps,
  { actor, session }: ProofCaller,
  need: ProofNeed,
): Promise<void> {
  const isAsked =
    need === "everybody" || actor.secondFactor || deps.options.get("SecurityStepUp") === "always";
  if (!isAsked) return;
  // Calls of programs pass where only the factor asks: the row of the log says by what they came.
  if (!session && need === "with_factor") return;
  if (session && session.sudoUntil > deps.clock.nowMs() / 1000) return;
  throw new Failure("forbidden", "verification_required", {
    data: { methods: session ? await proofMethods(deps, actor) : [] },
  });
}

/**
 * Whether this way is a proof for the account: of one with a usable factor, neither its password nor a round by a provider is.
 * Throws `verification_required` with the ways that are.
 */
export async function requireProofMethod(
  deps: StepUpDeps,
  actor: Pick<UserAccount, "id">,
  method: string,
): Promise<void> {
  const methods = await proofMethods(deps, actor);
  if (!methods.includes(method))
    throw new Failure("forbidden", "verification_required", { data: { methods } });
}

/** What only a person may have: refused to access tokens of accounts with a factor. */
export async function requirePerson(deps: StepUpDeps, caller: ProofCaller): Promise<void> {
  if (!caller.session && caller.actor.secondFactor)
    throw new Failure("forbidden", "verification_required", { data: { methods: [] } });
  await requireFreshProof(deps, caller, "with_factor");
}

/** Throws `password_old_wrong`, `verification_required` where a password is no proof for this account. */
export async function proveByPassword(deps: StepUpDeps, actor: UserAccount, password: string): Promise<void> {
  await requireProofMethod(deps, actor, "password");
  const { users } = deps.db.t;
  const [row] = await deps.db.orm
    .select({ passwordHash: users.passwordHash })
    .from(users)
    .where(eq(users.id, actor.id));
  const { matches } = await verifyPassword(password, row?.passwordHash ?? "");
  if (!matches) throw refuse("password_old_wrong");
}

/** Throws `second_factor_wrong`, `too_many_attempts`. */
export async function proveByCode(deps: StepUpDeps, actor: UserAccount, code: string): Promise<void> {
  if (!(await proveSecondCode(deps, actor.id, code))) throw refuse("second_factor_wrong");
}
