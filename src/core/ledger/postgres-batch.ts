// A batch as one statement: a function of the database that runs the statements of postgres-statements.ts in their order. One way
// there and back in place of two, one answer to read in place of ten, and nothing to begin or to commit, because a statement
// alone is a transaction. Each statement in it sees what was committed before it began, as those that are sent one by one do.
// Refuses to be needed: where the database does not let the function be made, batches travel as before (enterAtOnce).
import { createHash } from "node:crypto";
import { sql } from "drizzle-orm";
import { isAway } from "../../db/away.ts";
import { fixedQuery, flightOf, q, rawQuery } from "../../db/database.ts";
import type { Database, Orm, Steps } from "../../db/database.ts";
import { sqlState } from "../../db/sql-state.ts";
import type { Deps } from "../deps.ts";
import {
  LIST_NAMES,
  listsOf,
  LOCKED_TABLES,
  lockedIds,
  lockText,
  statementTexts,
  tokenOf,
  userOf,
} from "./postgres-statements.ts";
import type { Batch, InsertTexts, MarkStep } from "./postgres-statements.ts";
import type { Figures } from "./store.ts";

/** What the statement that moves the mark takes as $1 and following. */
const MARK_PARAMETERS = [
  "p_last bigint",
  "p_journaled bigint",
  "p_entered bigint",
  "p_set_aside bigint",
  "p_skipped bigint",
  "p_node text",
  "p_incarnation bigint",
  "p_before bigint",
];
/** JSON lists; an empty text where there is none. */
const LISTS = [
  ...LOCKED_TABLES.map((table) => `p_lock_${table} text`),
  ...LIST_NAMES.map((name) => `p_${name} text`),
];
const PARAMETERS = [...MARK_PARAMETERS, ...LISTS, "p_zone text"];

const NO_SUCH_FUNCTION = "42883";
/** No right to make one, no such language, a feature that this server lacks. */
const REFUSED = /^(?:42|0A)/;

interface BatchFunction {
  name: string;
  create: string;
}

/** Its name tells its text, so that nodes of two builds do not overwrite each other's. `moveMark` fails where the mark is elsewhere. */
function batchFunction(texts: InsertTexts, moveMark: string): BatchFunction {
  const statements = statementTexts(texts);
  const ifGiven = (parameter: string, text: string) => `if ${parameter} <> '' then ${text}; end if;`;
  const mark = MARK_PARAMETERS.reduce(
    (text, parameter, at) => text.replaceAll(`$${at + 1}`, parameter.split(" ")[0] ?? ""),
    intoPassed(moveMark),
  );
  const locks = LOCKED_TABLES.map((table) => {
    const parameter = `p_lock_${table}`;
    return ifGiven(
      parameter,
      lockText(table)
        .replace("$1", parameter)
        .replace(/^select /, "perform "),
    );
  });
  const charges = LIST_NAMES.map((name) => {
    const text = statements[name].replaceAll("$1::json", `p_${name}::json`).replaceAll("$2::text", "p_zone");
    if (name === "rollups") return ifGiven(`p_${name}`, intoPassed(text, "zone_now, "));
    if (name !== "users" && name !== "tokens") return ifGiven(`p_${name}`, text);
    const answered = `with charged as (${text}) select json_agg(charged) into ${name}_now from charged`;
    return ifGiven(`p_${name}`, answered);
  });
  const body = `declare
  passed integer;
  zone_now text;
  users_now json;
  tokens_now json;
begin
${[mark, ...locks, ...charges].map((text) => text.replace(/;?$/, ";")).join("\n")}
return json_build_object('users', users_now, 'tokens', tokens_now)::text;
end`;
  const name = `enter_batch_${createHash("sha256").update(body).digest("hex").slice(0, 12)}`;
  const create = `create or replace function ${name}(${PARAMETERS.join(", ")}) returns text language plpgsql as $body$
${body} $body$`;
  return { name, create };
}

/** What `checked` answers is looked at by nobody: it fails, or is 1. */
function intoPassed(text: string, before = ""): string {
  return text.replace(/ as checked from (\w+)$/, ` as checked into ${before}passed from $1`);
}

/** One at a time makes it: PostgreSQL refuses two who write the same function at once. */
function make(db: Database, { name, create }: BatchFunction): Promise<void> {
  return db.atomic(function* (tx) {
    yield* q(rawQuery(tx, sql`select pg_advisory_xact_lock(hashtext(${name}))`));
    yield* q(rawQuery(tx, sql.raw(create)));
  });
}

export interface OneStatement {
  /** Makes the function where it is not there; what fails is tried again before the next batch. */
  prepare(): Promise<void>;
  /**
   * Everything of a batch, for `atomic(…, "at once")`; it fails as that of `enterAtOnce` does. Undefined for a batch that closes
   * reservations, and where the database has no such function. Rejects where the database is away.
   */
  bodyOf(batch: Batch, mark: (tx: Orm) => MarkStep): Promise<((tx: Orm) => Steps<Figures>) | undefined>;
  /** The function is gone: an older state of the database was put back. It is made again before the next batch. */
  isGone(error: unknown): boolean;
}

export function createOneStatement(
  { db, logger }: Pick<Deps, "db" | "logger">,
  texts: InsertTexts,
  moveMark: string,
): OneStatement {
  const made = batchFunction(texts, moveMark);
  const call = `select ${made.name}(${PARAMETERS.map((_, at) => `$${at + 1}`).join(", ")}) as figures`;
  let state: "unknown" | "there" | "refused" = "unknown";

  /** What may be over by the next batch is no refusal: until then this one travels as several statements. */
  async function find(): Promise<void> {
    try {
      const [row] = await rawQuery(db.orm, sql`select to_regproc(${made.name}) is not null as is_there`);
      if (String(row?.["is_there"]) !== "true") await make(db, made);
      state = "there";
    } catch (error) {
      if (isAway(error)) throw error;
      if (!REFUSED.test(sqlState(error))) return;
      state = "refused";
      logger.warn("batches travel as several statements: the database takes no function of them", {
        error: String(error),
      });
    }
  }

  return {
    prepare: () => find().catch(() => undefined),
    async bodyOf(batch, mark) {
      if (batch.sums.holds.length > 0) return undefined;
      if (state === "unknown") await find();
      if (state !== "there") return undefined;
      const ids = lockedIds(batch);
      const lists = listsOf(batch, []);
      const textOf = (list: readonly unknown[]) => (list.length === 0 ? "" : JSON.stringify(list));
      return function* (tx) {
        const values = [
          ...mark(tx).values,
          ...LOCKED_TABLES.map((table) => textOf(ids[table])),
          ...LIST_NAMES.map((name) => textOf(lists[name])),
          batch.zone,
        ];
        const [answer] = yield* q(flightOf([fixedQuery(tx, call, values)]));
        const { users, tokens } = JSON.parse(String(answer?.[0]?.["figures"])) as Answer;
        return { users: (users ?? []).map(userOf), tokens: (tokens ?? []).map(tokenOf) };
      };
    },
    isGone(error) {
      if (sqlState(error) !== NO_SUCH_FUNCTION) return false;
      state = "unknown";
      return true;
    },
  };
}

type Rows = Parameters<typeof userOf>[0][] | null;

interface Answer {
  users: Rows;
  tokens: Rows;
}
