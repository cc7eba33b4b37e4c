// Limits over several nodes on one PostgreSQL: twice a second each node tells what its calls hold and did, and reads what the
// others told. Refuses to trust a node that has been silent for some seconds.
import { sql } from "drizzle-orm";
import { q, rawQuery } from "../../db/database.ts";
import { lookAround } from "../../db/look-around.ts";
import type { Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { NOTHING_ELSEWHERE } from "./owner-use.ts";
import type { OwnerKind, OwnerUse } from "./owner-use.ts";

/** One node tells, the other hears in its next round: both and their questions stay within a second. */
const ROUND_MS = 400;
/** While nobody calls. */
const REST_MS = 2500;
/** A node that says nothing for so long has ended, or has lost the database: its calls count no more. */
const SILENT_SECONDS = 15;
/** Owners that nobody asked for in this time are not read; what is told of them stays until it is nothing. */
const ASKED_MS = 120_000;
const MAX_OWNERS = 5000;

export interface SharedUse {
  /** One round; tests call it. Never rejects. */
  round(): Promise<void>;
  close(): Promise<void>;
}

type SharedUseDeps = Pick<Deps, "db" | "clock" | "logger" | "nodeId">;

export function startSharing(
  { db, clock, logger, nodeId }: SharedUseDeps,
  owners: { all(): Iterable<OwnerUse>; find(kind: OwnerKind, id: number): OwnerUse | undefined },
  refill: () => void,
): SharedUse {
  /** What stands in the table of this node, so that what is over is told too. */
  let told = new Set<string>();
  let running: Promise<void> | undefined;
  let hasFailed = false;
  /** Owners were asked for lately, or are told of. */
  let isNeeded = false;

  async function exchange(): Promise<void> {
    const nowMs = clock.monotonicMs();
    refill();
    const asked = [...owners.all()]
      .filter((each) => nowMs - each.askedMs < ASKED_MS || told.has(each.key))
      .slice(0, MAX_OWNERS);
    isNeeded = asked.length > 0;
    if (!isNeeded) return;
    const own = asked.map((each) => ({
      kind: each.kind,
      id: each.account.id,
      held: each.held + each.account.pending,
      calls: each.calls,
      requests: each.requests.sum(nowMs),
      tokens: each.tokens.sum(nowMs) + each.openTokens,
    }));
    const busy = own.filter(({ held, calls, requests, tokens }) => held + calls + requests + tokens > 0);
    const found = await db.atomic((tx) => exchangeSteps(tx, nodeId, { busy, told, asked: own }));
    told = new Set(busy.map(({ kind, id }) => `${kind}:${id}`));
    for (const row of found) {
      const each = owners.find(row.kind === "user" ? "user" : "token", Number(row.id));
      if (!each) continue;
      const [held, calls, requests, tokens] = [row.held, row.calls, row.requests, row.tokens].map(Number);
      each.elsewhere =
        (held ?? 0) + (calls ?? 0) + (requests ?? 0) + (tokens ?? 0) === 0
          ? NOTHING_ELSEWHERE
          : { held: held ?? 0, calls: calls ?? 0, requests: requests ?? 0, tokens: tokens ?? 0 };
      if (row.used !== null) each.sawUsed(Number(row.used), nowMs);
    }
  }

  function round(): Promise<void> {
    return (running ??= exchange()
      .then(() => {
        hasFailed = false;
      })
      .catch((error: unknown) => {
        if (!hasFailed)
          logger.warn("limits could not be exchanged with other nodes", { error: String(error) });
        hasFailed = true;
      })
      .finally(() => {
        running = undefined;
      }));
  }

  const ends = [
    lookAround.lookEvery(ROUND_MS, () => void round(), REST_MS),
    // What others count of this node's is told to its end, and what is asked for is known as ever.
    lookAround.restUnless(() => isNeeded),
  ];
  return {
    round,
    async close() {
      ends.forEach((end) => end());
      await running;
      if (told.size === 0) return;
      await db
        .atomic(function* (tx) {
          yield* q(rawQuery(tx, sql`delete from limit_uses where node_id = ${nodeId}`));
        })
        .catch(() => undefined);
    },
  };
}

interface Told {
  kind: string;
  id: number;
  held: number;
  calls: number;
  requests: number;
  tokens: number;
}

/** Tells the own rows, and answers what the others tell of those that were asked for, with their counters. */
function* exchangeSteps(
  tx: Orm,
  nodeId: string,
  { busy, told, asked }: { busy: readonly Told[]; told: ReadonlySet<string>; asked: readonly Told[] },
): Steps<Record<string, string | number>[]> {
  if (told.size > 0)
    yield* q(
      rawQuery(
        tx,
        sql`delete from limit_uses where node_id = ${nodeId} and not exists (
          select 1 from json_to_recordset(${JSON.stringify(busy)}::json) as v(kind text, id bigint)
          where v.kind = limit_uses.kind and v.id = limit_uses.owner_id)`,
      ),
    );
  if (busy.length > 0)
    yield* q(
      rawQuery(
        tx,
        sql`insert into limit_uses (node_id, kind, owner_id, held, calls, requests, tokens, expires_at)
          select ${nodeId}, v.kind, v.id, v.held, v.calls, v.requests, v.tokens,
            floor(extract(epoch from now()))::bigint + ${SILENT_SECONDS}::bigint
          from json_to_recordset(${JSON.stringify(busy)}::json)
            as v(kind text, id bigint, held bigint, calls bigint, requests bigint, tokens bigint)
          on conflict (kind, owner_id, node_id) do update set held = excluded.held, calls = excluded.calls,
            requests = excluded.requests, tokens = excluded.tokens, expires_at = excluded.expires_at`,
      ),
    );
  const list = JSON.stringify(asked.map(({ kind, id }) => ({ kind, id })));
  return yield* q(
    rawQuery(
      tx,
      sql`select v.kind, v.id,
          case v.kind when 'user' then (select used_quota from users where id = v.id)
            else (select used_quota from tokens where id = v.id) end as used,
          coalesce(sum(u.held), 0) as held, coalesce(sum(u.calls), 0) as calls,
          coalesce(sum(u.requests), 0) as requests, coalesce(sum(u.tokens), 0) as tokens
        from json_to_recordset(${list}::json) as v(kind text, id bigint)
        left join limit_uses u on u.kind = v.kind and u.owner_id = v.id and u.node_id <> ${nodeId}
          and u.expires_at > extract(epoch from now())
        group by v.kind, v.id`,
    ),
  );
}
