// The log as a CSV file, streamed: the audit trail for whoever keeps or judges it, the own rows for their owner.
// Refuses to read ahead of a slow client: the next page is asked for when the last one has left.
import { Elysia, t } from "elysia";
import { createExportTurns, exportedRows } from "../core/logs/export.ts";
import type { LogExport } from "../core/logs/export.ts";
import type { LogJson } from "../core/logs/list.ts";
import { auditSteps } from "../core/logs/audit.ts";
import type { Deps } from "../core/deps.ts";
import { auditActorOf } from "../http/audit-actor.ts";
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
] as const;

interface Other {
  op?: { action?: string; params?: object };
  ip?: string;
  ua?: string;
  auth_method?: string;
  admin_info?: { admin_id?: number; admin_username?: string };
}

function otherOf({ other }: LogJson): Other {
  if (!other.includes('"op"')) return {};
  try {
    return JSON.parse(other) as Other;
  } catch {
    return {};
  }
}

/** A line of the file; times in UTC. */
function lineOf(row: LogJson): string {
  const { op, ip, ua, auth_method: method, admin_info: admin } = otherOf(row);
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
  const { visitors } = session;

  function file(request: Request, asked: LogExport, language: Language, end: () => void): Response {
    const pages = exportedRows(deps, asked);
    let isOwing = false;
    visitors.feed(request, { isOwing: () => isOwing });
    const over = () => {
      end();
      visitors.fed(request);
    };
    const encoder = new TextEncoder();
    let head = BYTE_ORDER_MARK + csvLine(COLUMNS);
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          isOwing = true;
          try {
            const next = await pages.next();
            const rows = next.done ? [] : next.value;
            const text = head + inLanguage(rows, language).map(lineOf).join("");
            head = "";
            if (text !== "") controller.enqueue(encoder.encode(text));
            if (!next.done) return;
            over();
            controller.close();
          } catch (error) {
            over();
            deps.logger.error("an export of the log broke off", { error: String(error) });
            // Bytes have no place for an error: the connection breaks, so that nobody takes a part for the whole.
            controller.error(error);
          } finally {
            isOwing = false;
          }
        },
        async cancel() {
          over();
          await pages.return();
        },
      },
      { highWaterMark: 0 },
    );
    const day = new Date(deps.clock.nowMs()).toISOString().slice(0, 10);
    return new Response(body, {
      headers: {
        "content-type": "text/csv; charset=utf-8",
        "content-disposition": `attachment; filename="log-${day}.csv"`,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
      },
    });
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
            const params = { types: types.join(", ") };
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
