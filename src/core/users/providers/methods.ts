// By what each account can come in, counted: nobody gives up the last way, neither their own nor everybody's.
// Refuses with `last_method` whatever would leave the actor, or every root, without one.
import { and, eq, inArray, isNull, ne, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { q } from "../../../db/database.ts";
import type { Orm, Steps } from "../../../db/database.ts";
import { Role, UserStatus } from "../../../shared/enums.ts";
import { refuse } from "../../../shared/failures.ts";
import { passkeySite } from "../../../shared/passkey-site.ts";
import type { OptionKey } from "../../options/definitions.ts";
import type { Deps } from "../../deps.ts";
import { arePasskeysOn } from "../factors/passkeys.ts";
import { PROVIDER_SWITCHES } from "./built-in.ts";
import { issuerOfDocument, readDiscovery } from "./oidc.ts";
import { enabledProviders } from "./registry.ts";
import type { RegistryDeps } from "./registry.ts";

type MethodDeps = RegistryDeps & Pick<Deps, "db" | "options">;

/** What would be left. */
interface Remaining {
  hasPasswords: boolean;
  hasPasskeys: boolean;
  providers: readonly string[];
}

async function remaining(
  deps: MethodDeps,
  without: { providers?: readonly string[]; passwords?: boolean; passkeys?: boolean },
): Promise<Remaining> {
  const providers = (await enabledProviders(deps)).map(({ id }) => id);
  return {
    hasPasswords: deps.options.get("PasswordLoginEnabled") && without.passwords !== true,
    hasPasskeys: arePasskeysOn(deps) && without.passkeys !== true,
    providers: providers.filter((id) => !without.providers?.includes(id)),
  };
}

/** Whether the account in `users` has a way in; as a condition, so that many are counted at once. */
function hasMethod({ db }: Pick<Deps, "db">, { hasPasswords, hasPasskeys, providers }: Remaining): SQL {
  const { identities, passkeys, users } = db.t;
  const ways = [
    sql`1 = 0`,
    ...(hasPasskeys ? [sql`exists (select 1 from ${passkeys} where ${passkeys.userId} = ${users.id})`] : []),
    ...(hasPasswords ? [sql`${users.passwordHash} <> ''`] : []),
    ...(providers.length > 0
      ? [
          sql`exists (select 1 from ${identities} where ${identities.userId} = ${users.id} and ${inArray(identities.provider, [...providers])})`,
        ]
      : []),
  ];
  return sql`(${sql.join(ways, sql` or `)})`;
}

async function countOf({ db }: Pick<Deps, "db">, where: SQL | undefined): Promise<number> {
  const { users } = db.t;
  const [row] = await db.orm
    .select({ n: sql<number>`count(*)` })
    .from(users)
    .where(and(isNull(users.deletedAt), where));
  return Number(row?.n ?? 0);
}

/** Throws `last_method` where this account has no way in any more; in the transaction that took one. */
export async function lastOwnCheck(deps: MethodDeps, userId: number): Promise<(tx: Orm) => Steps<void>> {
  const left = await remaining(deps, {});
  return function* (tx) {
    const { users } = deps.db.t;
    const [row] = yield* q(
      tx
        .select({ id: users.id })
        .from(users)
        .where(and(eq(users.id, userId), hasMethod(deps, left))),
    );
    if (!row) throw refuse("last_method");
  };
}

/** Changes of one account's ways in come one after another, so that two cannot take the last two. */
export function* inTurnSteps(tx: Orm, { db }: Pick<Deps, "db">, userId: number): Steps<void> {
  const { users } = db.t;
  if (db.kind === "postgres")
    yield* q(tx.select({ id: users.id }).from(users).where(eq(users.id, userId)).for("no key update"));
}

/**
 * Throws `last_method` where without that provider the actor, or every root, would have no way in; answers how many
 * accounts have only that one.
 */
export async function refuseProviderLoss(
  deps: MethodDeps,
  actorId: number,
  provider: string,
): Promise<number> {
  const { identities, users } = deps.db.t;
  const left = await remaining(deps, { providers: [provider] });
  await refuseRootsLockedOut(deps, actorId, left);
  const isBound = sql`exists (select 1 from ${identities} where ${identities.userId} = ${users.id} and ${identities.provider} = ${provider})`;
  return countOf(deps, and(isBound, sql`not ${hasMethod(deps, left)}`));
}

async function refuseRootsLockedOut(deps: MethodDeps, actorId: number, left: Remaining): Promise<void> {
  const { users } = deps.db.t;
  const before = await remaining(deps, {});
  const isActor = eq(users.id, actorId);
  const isRoot = and(eq(users.role, Role.root), eq(users.status, UserStatus.enabled), ne(users.id, 0));
  for (const who of [isActor, isRoot]) {
    // Who had none before loses nothing by this.
    const had = await countOf(deps, and(who, hasMethod(deps, before)));
    const has = await countOf(deps, and(who, hasMethod(deps, left)));
    if (had > 0 && has === 0) throw refuse("last_method");
  }
}

/** What goes with a way in: accounts that have only that, and passkeys that no browser will show any more. */
export interface WaysInLoss {
  accounts: number;
  passkeys: number;
}

const NO_LOSS: WaysInLoss = { accounts: 0, passkeys: 0 };

/** Accounts that have a way in now and would have none. */
async function countLosing(deps: MethodDeps, left: Remaining): Promise<number> {
  const before = await remaining(deps, {});
  return countOf(deps, and(hasMethod(deps, before), sql`not ${hasMethod(deps, left)}`));
}

/** Whether passkeys are in use, and an address lies at another host: none of them fits it. */
function isOtherHost({ options }: Pick<Deps, "options">, address: string): boolean {
  if (!arePasskeysOn({ options })) return false;
  return passkeySite(options.get("ServerAddress"))?.id !== passkeySite(address)?.id;
}

async function refuseHostLoss(deps: MethodDeps, actorId: number, address: string): Promise<WaysInLoss> {
  if (!isOtherHost(deps, address)) return NO_LOSS;
  const left = await remaining(deps, { passkeys: true });
  await refuseRootsLockedOut(deps, actorId, left);
  const { passkeys } = deps.db.t;
  const [row] = await deps.db.orm.select({ n: sql<number>`count(*)` }).from(passkeys);
  return { accounts: await countLosing(deps, left), passkeys: Number(row?.n ?? 0) };
}

/**
 * What an option that is about ways in needs beside its own form, before it is stored. Answers what goes with it. Throws
 * `last_method`, `oidc_discovery_failed`.
 */
export async function checkWaysIn(
  deps: MethodDeps,
  actorId: number,
  key: string,
  value: string,
): Promise<WaysInLoss> {
  if (key === "oidc.well_known" && /^https?:\/\//.test(value) && URL.canParse(value)) {
    await readDiscovery(deps, issuerOfDocument(value));
    return NO_LOSS;
  }
  if (key === "ServerAddress") return refuseHostLoss(deps, actorId, value);
  if (value !== "false") return NO_LOSS;
  if (key === "PasswordLoginEnabled") {
    const left = await remaining(deps, { passwords: true });
    await refuseNoneLeft(deps, actorId, left);
    return { accounts: await countLosing(deps, left), passkeys: 0 };
  }
  if (key === "passkey.enabled") {
    const left = await remaining(deps, { passkeys: true });
    await refuseRootsLockedOut(deps, actorId, left);
    return { accounts: await countLosing(deps, left), passkeys: 0 };
  }
  const provider = PROVIDER_SWITCHES[key as OptionKey];
  if (provider === undefined || !(await enabledProviders(deps)).some(({ id }) => id === provider))
    return NO_LOSS;
  return { accounts: await refuseProviderLoss(deps, actorId, provider), passkeys: 0 };
}

/**
 * The same for a document, which may switch several ways in off at once: each of them alone would leave the others.
 * `off`: options that are false afterwards; `address`: the site's address then. Throws `last_method`.
 */
export async function refuseWaysInLoss(
  deps: MethodDeps,
  actorId: number,
  { off, address }: { off: readonly string[]; address: string },
): Promise<void> {
  const providers = off.flatMap((key) => PROVIDER_SWITCHES[key as OptionKey] ?? []);
  const passwords = off.includes("PasswordLoginEnabled");
  const passkeys = off.includes("passkey.enabled") || isOtherHost(deps, address);
  if (providers.length === 0 && !passwords && !passkeys) return;
  const left = await remaining(deps, { providers, passwords, passkeys });
  await refuseRootsLockedOut(deps, actorId, left);
  if (passwords) await refuseNoneLeft(deps, actorId, left);
}

/** Having no way in yet is no reason to let somebody switch passwords off. */
async function refuseNoneLeft(deps: MethodDeps, actorId: number, left: Remaining): Promise<void> {
  const { users } = deps.db.t;
  if ((await countOf(deps, and(eq(users.id, actorId), hasMethod(deps, left)))) === 0)
    throw refuse("last_method");
}
