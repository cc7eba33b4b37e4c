// All that the site has of a person, as one JSON file for them: account, keys, sessions, payments, tasks, letters, log.
// Refuses secrets and what belongs to others: sealed texts, hashes, sums of the site and administrators' notes are left out.
import { and, asc, eq, gt } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { Deps, UserAccount } from "../deps.ts";
import { exportedRows } from "../logs/export.ts";
import { END_OF_TIME } from "../logs/filter.ts";
import { getUser } from "./users.ts";

type Row = Record<string, unknown>;

/** Columns that are nobody's to read, or only the site's; every section leaves them out. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  "keyHash",
  "keySealed",
  "previousKeyHash",
  "credentialId",
  "publicKey",
  "counter",
  "aaguid",
  "sessionVersion",
  "letterSealed",
  "channelId",
  "settledHour",
  "polls",
  "nextPollMs",
  "actorId",
  "providerRef",
  "sessionId",
  "snapshot",
]);

interface Section {
  name: string;
  table: PgTable;
  /** By which its rows are walked. */
  id: PgColumn;
  owner: PgColumn;
  /** Further columns that are left out here. */
  without?: readonly string[];
}

const PAGE_ROWS = 500;

/** Tables with rows of a person; a test holds them against the schema. */
export function ownSections({ t }: Deps["db"]): Section[] {
  const section = (
    name: string,
    table: PgTable & { userId: PgColumn },
    id: PgColumn,
    without: readonly string[] = [],
  ): Section => ({ name, table, id, owner: table.userId, without });
  return [
    section("keys", t.tokens, t.tokens.id),
    section("identities", t.identities, t.identities.id),
    // The id of a session is the cookie itself.
    section("sessions", t.sessions, t.sessions.id, ["id"]),
    section("passkeys", t.passkeys, t.passkeys.id),
    section("balance_entries", t.credits, t.credits.id),
    section("orders", t.orders, t.orders.id),
    section("plans", t.userPlans, t.userPlans.id),
    section("plan_periods", t.planPeriods, t.planPeriods.id),
    section("drawings", t.drawings, t.drawings.id),
    section("tasks", t.tasks, t.tasks.id),
    section("letters_waiting", t.outbox, t.outbox.id),
  ];
}

/** Names as on the wire. */
const snake = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function shown(row: Row, without: readonly string[]): Row {
  const kept = Object.entries(row).filter(
    ([name]) => name !== "userId" && !LEFT_OUT.has(name) && !without.includes(name),
  );
  return Object.fromEntries(kept.map(([name, value]) => [snake(name), value]));
}

async function* sectionRows(
  { db }: Pick<Deps, "db">,
  section: Section,
  userId: number,
): AsyncGenerator<Row[], void> {
  let last: unknown;
  const key = Object.entries(section.table).find(([, column]) => column === section.id)?.[0] ?? "id";
  for (;;) {
    const rows = (await db.reader
      .select()
      .from(section.table)
      .where(and(eq(section.owner, userId), last === undefined ? undefined : gt(section.id, last)))
      .orderBy(asc(section.id))
      .limit(PAGE_ROWS)) as Row[];
    if (rows.length > 0) yield rows;
    if (rows.length < PAGE_ROWS) return;
    last = rows.at(-1)?.[key];
  }
}

/** A list as JSON text in parts, the first of which names it. */
async function* listText(
  name: string,
  pages: AsyncGenerator<readonly object[], void>,
): AsyncGenerator<string, void> {
  let isFirst = true;
  yield `,\n"${name}": [`;
  for await (const page of pages) {
    const lines = page.map((row) => JSON.stringify(row)).join(",\n");
    yield `${isFirst ? "\n" : ",\n"}${lines}`;
    isFirst = false;
  }
  yield "]";
}

async function* mapped(
  pages: AsyncGenerator<Row[], void>,
  without: readonly string[],
): AsyncGenerator<Row[], void> {
  for await (const page of pages) yield page.map((row) => shown(row, without));
}

/** The file in parts. Times are Unix seconds (drawings: milliseconds), amounts quota units. */
export async function* ownDataText(deps: Deps, actor: UserAccount): AsyncGenerator<string, void> {
  const {
    password: _,
    original_password: __,
    verification_code: ___,
    access_token: ____,
    ...account
  } = await getUser(deps, actor.id);
  const head = {
    exported_at: new Date(deps.clock.nowMs()).toISOString(),
    quota_per_dollar: deps.options.get("QuotaPerUnit"),
  };
  yield `{\n"about": ${JSON.stringify(head)},\n"account": ${JSON.stringify(account)}`;
  for (const section of ownSections(deps.db))
    yield* listText(section.name, mapped(sectionRows(deps, section, actor.id), section.without ?? []));
  const filter = { type: 0, from: 0, to: END_OF_TIME };
  yield* listText("log", exportedRows(deps, { filter, types: [], owner: actor }));
  yield "\n}\n";
}
