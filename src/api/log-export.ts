// The log as a CSV file, streamed: the audit trail for whoever keeps or judges it, the own rows for their owner.
// Refuses a second file of the same account while one leaves.
import { Elysia, t } from "elysia";
import { createExportTurns, exportedRows } from "../core/logs/export.ts";
import type { LogExport } from "../core/logs/export.ts";
import type { LogJson } from "../core/logs/list.ts";
import { auditSteps } from "../core/logs/audit.ts";
import { readUntil } from "../core/kit/read-until.ts";
import type { Deps } from "../core/deps.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { fileStream } from "../http/file-stream.ts";
import { inLanguage } from "../http/log-texts.ts";
import { adminLogFields, adminLogFilter, logFields, logFilterOf } from "../http/queries/logs.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { BYTE_ORDER_MARK, csvLine } from "../shared/csv.ts";
import type { CsvCell } from "../shared/csv.ts";
import type { Language } from "../shared/enums.ts";

const COLUMNS = [
  "id",
  "time",
  "type",
  "user_id",
  "username",
  "action",
  "text",
  "admin_id",
  "admin_username",
  "ip",
  "user_agent",
  "auth_method",
  "params",
  "token_name",
  "model_name",
  "quota",
  "prompt_tokens",
  "completion_tokens",
  "use_time_ms",
  "is_stream",
  "channel",
  "channel_name",
  "group",
  "request_id",
  "upstream_model",
  "first_token_ms",
  "cache_tokens",
  "cost_usd",
] as const;

interface Other {
  op?: { action?: string; params?: object };
  ip?: string;
  ua?: string;
  auth_method?: string;
  admin_info?: { admin_id?: number; admin_username?: string };
  upstream_model_name?: string;
  /** Milliseconds; below 0: none came. */
  frt?: number;
  cache_tokens?: number;
}

function otherOf({ other }: LogJson): Other {
  if (other === "") return {};
  try {
    return JSON.parse(other) as Other;
  } catch {
    return {};
  }
}

/** A line of the file; times in UTC. `perUnit`: units of quota that are one dollar. */
function lineOf(row: LogJson, perUnit: number): string {
  const other = otherOf(row);
  const { op, ip, ua, auth_method: method, admin_info: admin, frt = -1 } = other;
  const cells: Record<(typeof COLUMNS)[number], CsvCell> = {
    ...row,
    time: new Date(row.created_at * 1000).toISOString(),
    action: op?.action,
    text: row.text ?? row.content,
    admin_id: admin?.admin_id,
    admin_username: admin?.admin_username,
    ip,
    user_agent: ua,
    auth_method: method,
    params: op?.params && JSON.stringify(op.params),
    upstream_model: other.upstream_model_name,
    first_token_ms: frt < 0 ? undefined : frt,
    cache_tokens: other.cache_tokens,
    // Twelve decimals hold every unit of quota exactly; the sum of the column is the sum of the charges.
    cost_usd: Number((row.quota / perUnit).toFixed(12)),
  };
  return csvLine(COLUMNS.map((name) => cells[name]));
}

/** "3" or "3,4,7"; what is no number is left out. */
const typesOf = (text = ""): number[] =>
  text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => /^\d{1,2}$/.test(each) && each !== "0")
    .map(Number);

export function logExport(deps: Deps, session: SessionSettings) {
  const turns = createExportTurns();
  async function* linesOf(
    request: Request,
    asked: LogExport,
    language: Language,
  ): AsyncGenerator<string, void> {
    yield BYTE_ORDER_MARK + csvLine(COLUMNS);
    const perUnit = deps.options.get("QuotaPerUnit");
    for await (const rows of exportedRows(readUntil(deps, request, true), asked))
      yield inLanguage(rows, language)
        .map((row) => lineOf(row, perUnit))
        .join("");
  }

  function file(request: Request, asked: LogExport, language: Language, onEnd: () => void): Response {
    const day = new Date(deps.clock.nowMs()).toISOString().slice(0, 10);
    return fileStream(
      deps,
      { visitors: session.visitors, request },
      {
        name: `log-${day}.csv`,
        type: "text/csv; charset=utf-8",
        parts: linesOf(request, asked, language),
        onEnd,
      },
    );
  }

  return (
    new Elysia({ prefix: "/api/log" })
      .use(policy(session))
      // † Both.
      .get(
        "/export",
        async ({ query, actor, session: current, request, address, language }) => {
          const filter = await adminLogFilter(deps, query);
          const types = typesOf(query.type);
          const end = turns.begin(actor.id);
          try {
            // Who took the trail along stands in it.
            const by = auditActorOf({ actor, session: current, request, address });
            const params = { types: types.join(", ") || "*" };
            await deps.db.atomic((tx) =>
              auditSteps(tx, deps, { user: by, action: "log.export", params, by }),
            );
            return file(request, { filter, types, owner: undefined }, language, end);
          } catch (error) {
            end();
            throw error;
          }
        },
        { access: "admin", query: t.Object(adminLogFields) },
      )
      .get(
        "/self/export",
        async ({ query, actor, request, language }) => {
          const asked = { filter: logFilterOf(query), types: typesOf(query.type), owner: actor };
          return file(request, asked, language, turns.begin(actor.id));
        },
        { access: "user", query: t.Object(logFields) },
      )
  );
}
