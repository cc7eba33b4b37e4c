// By what each account can come in, counted: nobody gives up the last way, neither their own nor everybody's.
// Refuses with `last_method` whatever would leave the actor, or every root, without one; asked inside the block that writes,
// in turn over all nodes, so that two changes cannot take the last two.
import { and, eq, inArray, isNull, ne, sql } from "drizzle-orm";
import type { SQL } from "drizzle-orm";
import { q } from "../../../db/database.ts";
import type { Orm, Steps } from "../../../db/database.ts";
import { Role, UserStatus } from "../../../shared/enums.ts";
import { refuse } from "../../../shared/failures.ts";
import { passkeySite } from "../../../shared/passkey-site.ts";
import { PROVIDER_SWITCHES } from "../../../shared/ways-in.ts";
import { definitionOf } from "../../options/definitions.ts";
import type { OptionKey } from "../../options/definitions.ts";
import type { OptionRecorder, OptionWrite } from "../../options/store.ts";
import type { Deps } from "../../deps.ts";
import { arePasskeysOn } from "../factors/passkeys.ts";
import { builtInProviders } from "./built-in.ts";
import type { BuiltInDeps } from "./built-in.ts";
import { issuerOfDocument, readDiscovery } from "./oidc.ts";

type MethodDeps = BuiltInDeps & Pick<Deps, "db" | "options">;

/** The mark whose row whoever takes a way in holds until the commit. */
const MARK = "ways_in";

/** Ways in that are there, or left. */
interface Ways {
  hasPasswords: boolean;
  hasPasskeys: boolean;
  providers: readonly string[];
  /** Those of them that the operator defined. */
  own: readonly string[];
}

/** What a change takes. */
interface Taken {
  providers: readonly string[];
  passwords: boolean;
  passkeys: boolean;
  /** Every provider that the operator defined: none works without the site's address. */
  own: boolean;
}

const NOTHING: Taken = { providers: [], passwords: false, passkeys: false, own: false };

const isAnythingIn = ({ providers, passwords, passkeys, own }: Taken): boolean =>
  providers.length > 0 || passwords || passkeys || own;

const without = (ways: Ways, taken: Taken): Ways => ({
  hasPasswords: ways.hasPasswords && !taken.passwords,
  hasPasskeys: ways.hasPasskeys && !taken.passkeys,
  providers: ways.providers.filter(
    (id) => !taken.providers.includes(id) && !(taken.own && ways.own.includes(id)),
  ),
  own: taken.own ? [] : ways.own,
});

const SWITCHES = Object.entries(PROVIDER_SWITCHES) as [OptionKey & keyof typeof PROVIDER_SWITCHES, string][];
const DECIDING: readonly OptionKey[] = [
  "PasswordLoginEnabled",
  "passkey.enabled",
  "ServerAddress",
  ...SWITCHES.map(([key]) => key),
];

/**
 * The ways in as the database has them: what another node switched off a moment ago is off. Whether a provider has its keys
 * is asked of memory, for a switch that is on keeps them (options/guards.ts).
 */
function* waysSteps(tx: Orm, deps: MethodDeps): Steps<Ways> {
  const { customProviders, options } = deps.db.t;
  const rows = yield* q(
    tx
      .select()
      .from(options)
      .where(inArray(options.key, [...DECIDING])),
  );
  const stored = new Map(rows.map(({ key, value }) => [key, value]));
  const text = (key: OptionKey): string => stored.get(key) ?? definitionOf(key).default;
  const own = yield* q(
    tx
      .select({ id: customProviders.slug })
      .from(customProviders)
      .where(and(eq(customProviders.enabled, true), ne(customProviders.clientId, ""))),
  );
  const ready = new Set(
    builtInProviders(deps)
      .filter(({ enabled }) => enabled)
      .map(({ id }) => id),
  );
  const address = text("ServerAddress");
  const defined = address === "" ? [] : own.map(({ id }) => id);
  return {
    hasPasswords: text("PasswordLoginEnabled") === "true",
    hasPasskeys: text("passkey.enabled") === "true" && passkeySite(address) !== undefined,
    providers: [
      ...SWITCHES.filter(([key, id]) => text(key) === "true" && ready.has(id)).map(([, id]) => id),
      ...defined,
    ],
    own: defined,
  };
}

/** Changes of ways in come one after another, over all nodes. */
function* waysInTurnSteps(tx: Orm, { db }: Pick<Deps, "db">): Steps<void> {
  const { marks } = db.t;
  if (db.kind === "postgres")
    yield* q(
      tx
        .insert(marks)
        .values({ key: MARK, value: 0 })
        .onConflictDoUpdate({ target: marks.key, set: { value: sql`${marks.value}` } })
        .returning({ key: marks.key }),
    );
}

/** Whether the account in `users` has a way in; as a condition, so that many are counted at once. */
function hasMethod({ db }: Pick<Deps, "db">, { hasPasswords, hasPasskeys, providers }: Ways): SQL {
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

function* countSteps(tx: Orm, { db }: Pick<Deps, "db">, where: SQL | undefined): Steps<number> {
  const { users } = db.t;
  const [row] = yield* q(
    tx
      .select({ n: sql<number>`count(*)` })
      .from(users)
      .where(and(isNull(users.deletedAt), where)),
  );
  return Number(row?.n ?? 0);
}

/** Throws `last_method` where this account has no way in any more; in the block that took one. */
export function* lastOwnSteps(tx: Orm, deps: MethodDeps, userId: number): Steps<void> {
  const { users } = deps.db.t;
  yield* waysInTurnSteps(tx, deps);
  const left = yield* waysSteps(tx, deps);
  const [row] = yield* q(
    tx
      .select({ id: users.id })
      .from(users)
      .where(and(eq(users.id, userId), hasMethod(deps, left))),
  );
  if (!row) throw refuse("last_method");
}

/** Changes of one account's ways in come one after another, so that two cannot take the last two. */
export function* inTurnSteps(tx: Orm, { db }: Pick<Deps, "db">, userId: number): Steps<void> {
  const { users } = db.t;
  if (db.kind === "postgres")
    yield* q(tx.select({ id: users.id }).from(users).where(eq(users.id, userId)).for("no key update"));
}

/** The actor, and every root who may come in: the partial index `users_staff` finds them. */
function* refuseLockedOutSteps(
  tx: Orm,
  deps: MethodDeps,
  actorId: number,
  { before, left, passwords }: { before: Ways; left: Ways; passwords: boolean },
): Steps<void> {
  const { users } = deps.db.t;
  const isActor = eq(users.id, actorId);
  const isRoot = and(
    sql`${users.role} >= 10`,
    eq(users.role, Role.root),
    eq(users.status, UserStatus.enabled),
    ne(users.id, 0),
  );
  for (const who of [isActor, isRoot]) {
    // Who had none before loses nothing by this.
    const had = yield* countSteps(tx, deps, and(who, hasMethod(deps, before)));
    const has = yield* countSteps(tx, deps, and(who, hasMethod(deps, left)));
    if (had > 0 && has === 0) throw refuse("last_method");
  }
  // But having no way in yet is no reason to let somebody switch passwords off.
  if (passwords && (yield* countSteps(tx, deps, and(isActor, hasMethod(deps, left)))) === 0)
    throw refuse("last_method");
}

/** Throws `last_method` where what is taken would leave the actor, or every root, without a way in; in the block that takes it. */
function* refuseTakenSteps(tx: Orm, deps: MethodDeps, actorId: number, taken: Taken): Steps<void> {
  yield* waysInTurnSteps(tx, deps);
  const before = yield* waysSteps(tx, deps);
  const left = without(before, taken);
  yield* refuseLockedOutSteps(tx, deps, actorId, { before, left, passwords: taken.passwords });
}

/** The same for one provider, before its row is switched off or goes. */
export function* refuseProviderLossSteps(
  tx: Orm,
  deps: MethodDeps,
  actorId: number,
  provider: string,
): Steps<void> {
  yield* refuseTakenSteps(tx, deps, actorId, { ...NOTHING, providers: [provider] });
}

/** Whether passkeys are in use, and an address lies at another host: none of them fits it. */
function isOtherHost({ options }: Pick<Deps, "options">, address: string): boolean {
  if (!arePasskeysOn({ options })) return false;
  return passkeySite(options.get("ServerAddress"))?.id !== passkeySite(address)?.id;
}

/** What options take when they are written, all of them together. */
function takenBy(deps: Pick<Deps, "options">, writes: readonly OptionWrite[]): Taken {
  const off = writes.filter(({ text }) => text === "false").map(({ key }) => key);
  const address = writes.find(({ key }) => key === "ServerAddress");
  return {
    providers: SWITCHES.filter(([key]) => off.includes(key)).map(([, id]) => id),
    passwords: off.includes("PasswordLoginEnabled"),
    passkeys: off.includes("passkey.enabled") || (address !== undefined && isOtherHost(deps, address.text)),
    own: address?.text === "",
  };
}

/**
 * Hears of every write of options by a person, also of a settings file, which may switch several ways in off at once: each of
 * them alone would leave the others.
 */
export function waysInRecorder(deps: MethodDeps): OptionRecorder {
  return function* (tx, writes, author) {
    const taken = takenBy(deps, writes);
    if (author && author.userId > 0 && isAnythingIn(taken))
      yield* refuseTakenSteps(tx, deps, author.userId, taken);
  };
}

/** What goes with ways in: accounts that have only those, and passkeys that no browser will show any more. */
export interface WaysInLoss {
  accounts_without_sign_in: number;
  passkeys_orphaned: number;
}

const NO_LOSS: WaysInLoss = { accounts_without_sign_in: 0, passkeys_orphaned: 0 };

async function lossOf(
  deps: MethodDeps,
  actorId: number,
  taken: Taken,
  isMoved: boolean,
): Promise<WaysInLoss> {
  const { db } = deps;
  if (!isAnythingIn(taken)) return NO_LOSS;
  const before = await db.atomic(function* (tx) {
    const ways = yield* waysSteps(tx, deps);
    const left = without(ways, taken);
    yield* refuseLockedOutSteps(tx, deps, actorId, { before: ways, left, passwords: taken.passwords });
    return ways;
  });
  // Accounts that have a way in now and would have none: over all of them, so not in an atomic block.
  const { passkeys, users } = db.t;
  const isLosing = and(
    isNull(users.deletedAt),
    hasMethod(deps, before),
    sql`not ${hasMethod(deps, without(before, taken))}`,
  );
  const [accounts] = await db.orm
    .select({ n: sql<number>`count(*)` })
    .from(users)
    .where(isLosing);
  const [keys] = isMoved ? await db.orm.select({ n: sql<number>`count(*)` }).from(passkeys) : [];
  return { accounts_without_sign_in: Number(accounts?.n ?? 0), passkeys_orphaned: Number(keys?.n ?? 0) };
}

/** What goes with a provider that is switched off or deleted. Throws `last_method`. */
export async function providerLoss(deps: MethodDeps, actorId: number, provider: string): Promise<WaysInLoss> {
  return lossOf(deps, actorId, { ...NOTHING, providers: [provider] }, false);
}

/** What goes with an option's new text; nothing is written. Throws `last_method`. */
export async function waysInLoss(
  deps: MethodDeps,
  actorId: number,
  key: string,
  text: string,
): Promise<WaysInLoss> {
  const deciding = DECIDING.find((each) => each === key);
  if (deciding === undefined) return NO_LOSS;
  const taken = takenBy(deps, [{ key: deciding, text }]);
  return lossOf(deps, actorId, taken, key === "ServerAddress" && taken.passkeys);
}

/** What is asked elsewhere before an option about ways in is stored. Throws `oidc_discovery_failed`. */
export async function checkDiscovery(deps: MethodDeps, key: string, text: string): Promise<void> {
  if (key === "oidc.well_known" && /^https?:\/\//.test(text) && URL.canParse(text))
    await readDiscovery(deps, issuerOfDocument(text));
}
