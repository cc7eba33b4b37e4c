// Accounts and all that belongs to them alone: identities, factors, plans that run, keys, codes; and what their books begin with.
// Refuses to read a table into memory as a whole, but for what decides who keeps a name: numbers and names of the accounts.
import { randomBytes } from "node:crypto";
import { TAKEN_SLUGS } from "../../core/users/providers/custom-rows.ts";
import type { PlanTerms } from "../../core/plans/purchases.ts";
import type { TablesContext } from "../context.ts";
import { rowsFor } from "../insert.ts";
import type { NewRow } from "../insert.ts";
import { deniedBy, mapBackupCode, mapPasskey, mapTotp } from "../mapping/factors.ts";
import type { FactorFacts } from "../mapping/factors.ts";
import { effectsOf, mapPlan, mapRunning, preferenceIn } from "../mapping/plans.ts";
import type { MappedPlan, MappedRunning } from "../mapping/plans.ts";
import { mapBinding, mapProvider } from "../mapping/providers.ts";
import { mapRedemption, mapToken } from "../mapping/tokens.ts";
import { createTakenNames, isDeletedUser, mapUser } from "../mapping/users.ts";
import type { MappedUser, TakenNames, UserFacts } from "../mapping/users.ts";
import { createOpenings } from "../openings.ts";
import type { Openings } from "../openings.ts";
import { wholeOf } from "../values.ts";

/** What the other steps ask about accounts. */
interface Accounts {
  has: (id: number) => boolean;
  isLiving: (id: number) => boolean;
}

/** Of the site's settings, what decides about its rows. */
export interface SiteFacts {
  quotaPerUnit: number;
  zone: string;
  passkeyHost: { old: string; own: string };
}

interface Roll extends Accounts {
  createdAt: (id: number) => number;
  preference: (id: number) => string | undefined;
}

/** Numbers of all accounts, who of them lives, and since when. */
async function callRoll({ source, family, sums, now }: TablesContext): Promise<Roll> {
  const living = new Map<number, boolean>();
  const preferences = new Map<number, string>();
  const since = new Map<number, number>();
  const columns = ["id", "status", "deleted_at", "created_at", "setting"];
  for await (const page of source.pages("users", { columns })) {
    for (const row of page) {
      const id = wholeOf(row, "id");
      living.set(id, !isDeletedUser(row, family));
      const preference = preferenceIn(row);
      if (preference !== "") preferences.set(id, preference);
      const createdAt = wholeOf(row, "created_at") || (sums.user.get(id)?.first ?? 0);
      if (createdAt > 0) since.set(id, createdAt);
    }
  }
  // Whoever left no trace came before the next one who did.
  let next = now;
  for (const id of [...living.keys()].toReversed()) {
    const own = since.get(id);
    if (own === undefined) since.set(id, next);
    else next = own;
  }
  return {
    has: (id) => living.has(id),
    isLiving: (id) => living.get(id) === true,
    createdAt: (id) => since.get(id) ?? now,
    preference: (id) => (living.has(id) ? (preferences.get(id) ?? "") : undefined),
  };
}

/** Plans on sale, and those that run; written at once, there are few. */
async function readPlans(
  context: TablesContext,
  roll: Roll,
  { quotaPerUnit, zone }: SiteFacts,
): Promise<{ plans: Map<number, MappedPlan>; running: MappedRunning[] }> {
  const { source, notes, now, settings } = context;
  const unlimitedQuota = settings.unlimitedPlanQuota;
  const plans = new Map<number, MappedPlan>();
  const titles = new Set<string>();
  for await (const page of source.pages("subscription_plans"))
    for (const row of page) {
      const plan = mapPlan(row, { notes, now, quotaPerUnit, unlimitedQuota, titles });
      plans.set(plan.id, plan);
    }
  const running: MappedRunning[] = [];
  const facts = { notes, now, zone, plans, unlimitedQuota, preferenceOf: roll.preference };
  for await (const page of source.pages("user_subscriptions")) {
    running.push(...page.flatMap((row) => mapRunning(row, facts) ?? []));
    context.advance("user_subscriptions", page.length);
  }
  return { plans, running };
}

async function writePlans(
  { target }: TablesContext,
  { plans, running }: { plans: ReadonlyMap<number, MappedPlan>; running: readonly MappedRunning[] },
): Promise<void> {
  const step = await target.begin("plans");
  await step.write([
    rowsFor("plans", [...plans.values()]),
    rowsFor(
      "userPlans",
      running.map((each) => each.userPlan),
    ),
    rowsFor(
      "planPeriods",
      running.map(({ period }) => ({ ...period, id: target.nextId("planPeriods") })),
    ),
    rowsFor(
      "credits",
      running.map(({ credit }) => ({ ...credit, id: target.nextId("credits") })),
    ),
  ]);
}

interface Factors {
  totps: NewRow<"totps">[];
  codes: Omit<NewRow<"backupCodes">, "id">[];
  passkeys: Omit<NewRow<"passkeys">, "id">[];
}

async function readFactors(context: TablesContext, roll: Roll, { passkeyHost }: SiteFacts): Promise<Factors> {
  const { source, notes, seal, now } = context;
  const facts: FactorFacts = { notes, seal, now, isLiving: roll.isLiving, passkeyHost };
  const totps = new Map<number, NewRow<"totps">>();
  for await (const page of source.pages("two_fas"))
    for (const row of page) {
      const totp = mapTotp(row, facts);
      if (totp) totps.set(totp.userId, totp);
    }
  const codes: Factors["codes"] = [];
  const seen = new Set<string>();
  for await (const page of source.pages("two_fa_backup_codes"))
    for (const row of page) {
      const code = mapBackupCode(row, notes, (id) => totps.has(id));
      if (!code || seen.has(code.hash)) continue;
      seen.add(code.hash);
      codes.push(code);
    }
  const passkeys = new Map<string, Factors["passkeys"][number]>();
  for await (const page of source.pages("passkey_credentials"))
    for (const row of page) {
      const passkey = mapPasskey(row, facts);
      if (passkey && !passkeys.has(passkey.credentialId)) passkeys.set(passkey.credentialId, passkey);
    }
  return { totps: [...totps.values()], codes, passkeys: [...passkeys.values()] };
}

async function writeFactors({ target }: TablesContext, { totps, codes, passkeys }: Factors): Promise<void> {
  const step = await target.begin("factors");
  await step.write([
    rowsFor("totps", totps),
    rowsFor(
      "backupCodes",
      codes.map((code) => ({ ...code, id: target.nextId("backupCodes") })),
    ),
    rowsFor(
      "passkeys",
      passkeys.map((passkey) => ({ ...passkey, id: target.nextId("passkeys") })),
    ),
  ]);
}

/** First the living, in the order of their numbers, then the deleted: so names find their owners. */
async function writeUsers(
  context: TablesContext,
  facts: UserFacts,
  openings: Openings,
  owned: Set<string>,
): Promise<void> {
  const { source, family, notes, target } = context;
  const step = await target.begin("users");
  for (const deleted of [false, true]) {
    for await (const page of source.pages("users")) {
      const mapped: MappedUser[] = page
        .filter((row) => isDeletedUser(row, family) === deleted)
        .map((row) => mapUser(row, facts));
      notes.read("users", mapped.length);
      notes.carried("users", mapped.length);
      const identities = mapped.flatMap((each) => each.identities);
      for (const { provider, userId } of identities) owned.add(`${provider}:${userId}`);
      await step.write([
        rowsFor(
          "users",
          mapped.map(({ user }) => user),
        ),
        rowsFor(
          "identities",
          identities.map((each) => ({ ...each, id: target.nextId("identities") })),
        ),
        rowsFor(
          "credits",
          mapped.flatMap((each) => each.credits).map((each) => ({ ...each, id: target.nextId("credits") })),
        ),
        openings.rows(mapped.map(({ opening }) => opening)),
      ]);
      context.advance("users", mapped.length);
    }
  }
}

async function writeProviders(
  context: TablesContext,
  roll: Roll,
  taken: TakenNames,
  owned: Set<string>,
): Promise<void> {
  const { source, notes, seal, now, target } = context;
  const step = await target.begin("providers");
  const slugs = new Map<number, string>();
  const takenSlugs = new Set(TAKEN_SLUGS);
  for await (const page of source.pages("custom_oauth_providers")) {
    const providers = page.map((row) => mapProvider(row, { notes, seal, now, takenSlugs }));
    for (const { id, slug } of providers) slugs.set(id, slug);
    await step.write([rowsFor("customProviders", providers)]);
  }
  const facts = { notes, taken, slugs, owned, isLiving: roll.isLiving };
  for await (const page of source.pages("user_oauth_bindings")) {
    const bindings = page.flatMap((row) => mapBinding(row, facts) ?? []);
    await step.write([
      rowsFor(
        "identities",
        bindings.map((each) => ({ ...each, id: target.nextId("identities") })),
      ),
    ]);
    context.advance("user_oauth_bindings", page.length);
  }
}

async function writeKeys(context: TablesContext, roll: Roll, openings: Openings): Promise<void> {
  const { source, family, notes, seal, now, sums, target } = context;
  const common = { family, notes, seal, now, sums: sums.token, hasUser: roll.has };
  const tokens = await target.begin("tokens");
  const facts = { ...common, taken: new Set<string>() };
  for await (const page of source.pages("tokens")) {
    const mapped = page.flatMap((row) => mapToken(row, facts) ?? []);
    await tokens.write([
      rowsFor(
        "tokens",
        mapped.map(({ token }) => token),
      ),
      openings.rows(mapped.map(({ opening }) => opening)),
    ]);
    context.advance("tokens", page.length);
  }
  const redemptions = await target.begin("redemptions");
  const codeFacts = { ...common, taken: new Set<string>() };
  for await (const page of source.pages("redemptions")) {
    await redemptions.write([
      rowsFor(
        "redemptions",
        page.flatMap((row) => mapRedemption(row, codeFacts) ?? []),
      ),
    ]);
    context.advance("redemptions", page.length);
  }
}

export interface ImportedAccounts extends Accounts {
  termsOf: (planId: number) => PlanTerms | undefined;
}

export async function importAccounts(context: TablesContext, site: SiteFacts): Promise<ImportedAccounts> {
  const { source, family, notes, seal, now, sums } = context;
  const roll = await callRoll(context);
  const bought = await readPlans(context, roll, site);
  const factors = await readFactors(context, roll, site);
  const taken = createTakenNames();
  const openings = createOpenings(context);
  const owned = new Set<string>();
  const passkeys = new Set(factors.passkeys.map(({ userId }) => userId));
  await writeUsers(
    context,
    {
      family,
      notes,
      seal,
      now,
      taken,
      sums: sums.user,
      plans: effectsOf(bought.running),
      factors: new Set([...factors.totps.map(({ userId }) => userId), ...passkeys]),
      passkeys,
      hasNumericGithub: source.has("custom_oauth_providers"),
      denied: deniedBy(await source.all("casbin_rule")),
      createdAt: roll.createdAt,
      randomHandle: () => randomBytes(32).toString("base64url"),
    },
    openings,
    owned,
  );
  await writePlans(context, bought);
  await writeFactors(context, factors);
  await writeProviders(context, roll, taken, owned);
  await writeKeys(context, roll, openings);
  return {
    has: roll.has,
    isLiving: roll.isLiving,
    termsOf(planId) {
      const plan = bought.plans.get(planId);
      if (!plan) return undefined;
      const {
        title,
        durationUnit,
        durationCount,
        reset,
        quota,
        group = "",
        overflow = true,
        maxPerUser = 0,
      } = plan;
      return {
        planId,
        title,
        durationUnit,
        durationCount,
        reset,
        quota,
        group,
        overflow,
        stack: "parallel",
        maxPerUser,
        zone: site.zone,
      };
    },
  };
}
