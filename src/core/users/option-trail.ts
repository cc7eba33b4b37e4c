// Settings and plans in the audit trail: who changed which, from what to what, in the block that writes them.
// Refuses the values of secrets and of tables: of those it tells the names alone.
import { inArray } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Database } from "../../db/database.ts";
import { SOLD_PLANS } from "../../shared/price-desk.ts";
import type { Clock, Ledger } from "../deps.ts";
import { definitionOf } from "../options/definitions.ts";
import type { BesideChange, OptionAuthor, OptionRecorder } from "../options/store.ts";
import type { AuditActor, AuditEntry } from "../logs/audit.ts";
import { auditSteps } from "../logs/audit.ts";

const MAX_VALUE_CHARS = 200;
const UNTOLD = "…";

const cut = (text: string): string =>
  text.length > MAX_VALUE_CHARS ? `${text.slice(0, MAX_VALUE_CHARS)}${UNTOLD}` : text;

function actorOf({ userId, username, origin }: OptionAuthor): AuditActor {
  return { id: userId, username, role: 0, address: "", userAgent: "", authMethod: "none", ...origin };
}

/** What people change, and settings files; what the program itself renews is in the history of prices. */
const isTold = ({ userId, kind }: OptionAuthor): boolean => userId > 0 || kind === "cli";

type Terms = Readonly<Record<string, string | number | boolean>>;

/** A plan that is sold, made, changed or taken away: what it is called, and which of its terms are others. */
function planTold({ key, ...change }: BesideChange): Pick<AuditEntry, "action" | "params"> | undefined {
  if (key !== SOLD_PLANS) return undefined;
  const [before, after] = [change.before as Terms | null, change.after as Terms | null];
  const params = { plan: String((after ?? before)?.["title"] ?? change.name) };
  if (!before) return { action: "plan.create", params };
  if (!after) return { action: "plan.delete", params };
  const fields = Object.keys(after).filter((field) => before[field] !== after[field]);
  return { action: "plan.update", params: { ...params, fields: fields.join(", ") } };
}

export function optionTrail({ db, ledger }: { db: Database; clock: Clock; ledger: Ledger }): OptionRecorder {
  const { options } = db.t;
  return function* record(tx, writes, author, beside = []) {
    if (!author || !isTold(author)) return;
    const by = actorOf(author);
    for (const change of beside) {
      const told = planTold(change);
      if (told) yield* auditSteps(tx, { ledger }, { user: by, by, ...told });
    }
    if (writes.length === 0) return;
    const keys = writes.map(({ key }) => key);
    const rows = yield* q(tx.select().from(options).where(inArray(options.key, keys)));
    const stored = new Map(rows.map(({ key, value }) => [key, value]));
    for (const { key, text } of writes) {
      const { kind, secret, default: shipped } = definitionOf(key);
      const old = stored.get(key) ?? shipped;
      if (secret !== true && old === text) continue;
      const isUntold = secret === true || kind.isTable === true;
      const params = isUntold ? { key, old: UNTOLD, new: UNTOLD } : { key, old: cut(old), new: cut(text) };
      yield* auditSteps(tx, { ledger }, { user: by, action: "option.set", params, by });
    }
  };
}
