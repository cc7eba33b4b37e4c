// Controller of /api/cost: what upstreams charge, their bills, and how far both are apart. Nothing of it is for users.
// Administrators read; root writes, and root alone makes this server fetch an address.
import { Elysia, t } from "elysia";
import { importBill, listImports, previewCsv } from "../core/costs/bills.ts";
import { drift } from "../core/costs/drift.ts";
import { fetchBill } from "../core/costs/fetch-bill.ts";
import { BILL_SOURCES } from "../shared/bill-sources.ts";
import {
  COST_SOURCES,
  deleteCost,
  fillFromList,
  fillFromPricing,
  listCosts,
  MOST_COST_ROWS,
  putCosts,
} from "../core/costs/rows.ts";
import type { Deps } from "../core/deps.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { done, ok } from "../http/envelope.ts";
import { idOf, rowIdOf } from "../http/paging.ts";
import { plainText } from "../http/plain-text.ts";
import { positive, queryText } from "../http/queries/sent.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { refuse } from "../shared/failures.ts";

const id = t.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const moment = t.Optional(t.Integer({ minimum: 1, maximum: 2 ** 40 }));
const column = t.Optional(plainText(255));
const DAY_SECONDS = 86_400;
const DEFAULT_DAYS = 30;

export function costs(deps: Deps, session: SessionSettings) {
  return new Elysia().use(costRows(deps, session)).use(costBills(deps, session));
}

function costRows(deps: Deps, session: SessionSettings) {
  return (
    new Elysia({ prefix: "/api/cost" })
      .use(policy(session))
      .get("/", async ({ query }) => ok(await listCosts(deps, idOf(query.channel_id ?? ""))), {
        access: "admin",
        query: t.Object({ channel_id: queryText(20) }),
      })
      .post(
        "/",
        async ({ body, actor, session: current, request, address }) => {
          const { channel_id: channelId, source = "manual", rows } = body;
          return ok(
            await putCosts(
              deps,
              { channelId, source, rows },
              auditActorOf({ actor, session: current, request, address }),
            ),
          );
        },
        {
          access: "root",
          body: t.Object({
            channel_id: id,
            source: t.Optional(t.UnionEnum([...COST_SOURCES])),
            rows: t.Array(
              t.Object({
                model: plainText(255),
                row: t.Union([t.Record(t.String(), t.Unknown()), t.Null()]),
                factor: t.Optional(t.Number()),
                group_ratio: t.Optional(t.Number()),
                valid_from: moment,
              }),
              { minItems: 1, maxItems: MOST_COST_ROWS },
            ),
          }),
        },
      )
      .delete(
        "/:id",
        async ({ params, actor, session: current, request, address }) => {
          await deleteCost(
            deps,
            rowIdOf(params.id),
            auditActorOf({ actor, session: current, request, address }),
          );
          return done();
        },
        { access: "root" },
      )
      // What could be written, for whoever looks before.
      .post(
        "/fill",
        async ({ body }) => {
          const { channel_id: channelId, source, text, url, group } = body;
          if (source === "list") return ok(fillFromList(deps, channelId));
          const given = text ?? (url === undefined ? undefined : await pricingAt(deps, url));
          if (given === undefined) throw refuse("price_source_missing");
          return ok(fillFromPricing(deps, channelId, { text: given, group }));
        },
        {
          access: "root",
          body: t.Object({
            channel_id: id,
            source: t.UnionEnum(["list", "pricing"]),
            text: t.Optional(t.String()),
            url: t.Optional(plainText(2000)),
            group: t.Optional(plainText(255)),
          }),
        },
      )
  );
}

/** The list that an instance tells its groups' ratios in, by its plain address or the list's own. */
async function pricingAt(deps: Deps, text: string): Promise<string> {
  const bare = text.trim().replace(/\/+$/, "").replace(/\/v1$/, "");
  const url = /\/api\/(?:pricing|ratio_config)$/.test(bare) ? bare : `${bare}/api/pricing`;
  return fetchBill(deps, { url, key: "" }, undefined);
}

function costBills(deps: Deps, session: SessionSettings) {
  return new Elysia({ prefix: "/api/cost" })
    .use(policy(session))
    .get("/import", async ({ query }) => ok(await listImports(deps, idOf(query.channel_id ?? "") ?? 0)), {
      access: "admin",
      query: t.Object({ channel_id: queryText(20) }),
    })
    .post("/import/columns", ({ body }) => ok(previewCsv(body.text)), {
      access: "root",
      body: t.Object({ text: t.String() }),
    })
    .post(
      "/import",
      async ({ body, actor, session: current, request, address }) => {
        const { channel_id: channelId, source, text, url, key = "", columns, dry } = body;
        const from = url === undefined ? undefined : { url, key };
        const quotaPerUnit = body.quota_per_unit;
        const bill = { channelId, source, text, from, columns, quotaPerUnit, isDry: dry };
        return ok(await importBill(deps, bill, auditActorOf({ actor, session: current, request, address })));
      },
      {
        access: "root",
        body: t.Object({
          channel_id: id,
          source: t.UnionEnum([...BILL_SOURCES]),
          text: t.Optional(t.String()),
          url: t.Optional(plainText(2000)),
          /** Goes along with this errand, and is kept nowhere. */
          key: t.Optional(plainText(1000)),
          quota_per_unit: t.Optional(t.Number({ exclusiveMinimum: 0, maximum: 1e12 })),
          columns: t.Optional(
            t.Object({
              date: plainText(255),
              model: column,
              amount: column,
              unit: t.Optional(t.UnionEnum(["usd", "cent", "quota"])),
              input: column,
              cached: column,
              output: column,
              requests: column,
              request_id: column,
            }),
          ),
          dry: t.Optional(t.Boolean()),
        }),
      },
    )
    .get(
      "/drift",
      async ({ query }) => {
        const to = positive(query.end_timestamp) ?? Math.floor(deps.clock.nowMs() / 1000);
        const from = positive(query.start_timestamp) ?? Math.max(0, to - DEFAULT_DAYS * DAY_SECONDS);
        const source = BILL_SOURCES.find((each) => each === query.source);
        return ok(await drift(deps, { channelId: idOf(query.channel_id ?? "") ?? 0, from, to, source }));
      },
      {
        access: "admin",
        query: t.Object({
          channel_id: queryText(20),
          start_timestamp: queryText(20),
          end_timestamp: queryText(20),
          source: queryText(20),
        }),
      },
    );
}
