// The console's calls about changes of prices: plans, drafts, the history and its undo.
import type { ConsoleOperation } from "../schema.ts";

const change = { key: "ModelRatio", name: "gpt-4o", after: 1.5 };

export const prices: Readonly<Record<string, ConsoleOperation>> = {
  "GET /api/price/desk": {
    tag: "Prices",
    summary: "Prices, groups and their uses",
    description:
      "`texts`: the options that hold prices, as stored; `revision` is theirs. `refused`: calls of the last day that were " +
      "refused for want of a price, by model.",
  },
  "GET /api/price/revisions": {
    tag: "Prices",
    summary: "List the changes of prices",
    description:
      "The latest first; `revision` is the latest of all. Every write of a price, ratio, group or plan on sale is one, by whichever call.",
    fields: {
      p: "Page; the first is 1.",
      after: "Only later revisions than this one.",
      name: "Only revisions that touched this model or group, or the plan of this title.",
    },
  },
  "GET /api/price/revisions/{id}": {
    tag: "Prices",
    summary: "Show a change of prices",
    description: "Each name with what stood there before and after; null: nothing.",
  },
  "GET /api/price/revisions/{id}/undo": {
    tag: "Prices",
    summary: "What undoing a change would do",
    description: "`skipped` are names that were changed since.",
  },
  "POST /api/price/revisions/{id}/undo": {
    tag: "Prices",
    summary: "Undo a change of prices",
    description:
      "By a new revision with the inverse. Names that were changed since are skipped, unless `include` lists them.",
    body: { note: "Too dear", include: [{ key: "ModelRatio", name: "gpt-4o" }] },
  },
  "GET /api/price/drafts": {
    tag: "Prices",
    summary: "List the drafts",
    fields: {
      p: "Page; the first is 1.",
      state: "open, scheduled, applied, failed or discarded; all but discarded ones where absent.",
    },
  },
  "POST /api/price/drafts": {
    tag: "Prices",
    summary: "Begin a draft",
    description:
      "`key` is an option that holds prices and `name` an entry of it, or `Plans` and the id of a plan on sale; of a plan, " +
      "`after` names the terms that change, and a `name` that is no number makes a new one.",
    body: { title: "Autumn", note: "New list prices", changes: [change] },
  },
  "PUT /api/price/drafts": {
    tag: "Prices",
    summary: "Change or schedule a draft",
    description:
      "`version` as it was read. `effective_at` (Unix seconds; 0: by hand) is for root and comes with the `parent` that was " +
      "looked at. At that moment a draft whose names were changed since fails; what is edited is no longer scheduled. " +
      "`announce`: while it is scheduled, users read the old price, the new one and the moment.",
    body: { id: 1, version: 1, title: "Autumn", changes: [change] },
  },
  "DELETE /api/price/drafts/{id}": { tag: "Prices", summary: "Discard a draft" },
  "GET /api/price/missing": {
    tag: "Prices",
    summary: "Models without a price, and what the shipped table has for them",
    description:
      "`row` is in dollars; null: the table has none. `guards`: why nobody but a person should set it (free, for one).",
    fields: { models: "Names with commas between them; the models of enabled channels where absent." },
  },
  "POST /api/price/missing": {
    tag: "Prices",
    summary: "Set missing prices from the shipped table",
    description:
      "As one revision, which can be undone. Never changes a price: models that have one are `kept`; those that the table " +
      "does not know are `unknown`, those whose price there deserves a second look `guarded`.",
    body: { models: ["gpt-5.4"], note: "New models" },
  },
  "POST /api/price/plan": {
    tag: "Prices",
    summary: "Plan a change of prices",
    description:
      "Changes nothing. `diff` is in dollars; `effect` replays the log of the last 1, 7 or 30 days (0: no replay; 7 where " +
      "absent): `old` at the prices in force, `new` at the planned ones, `charged` as it was, in units; `uncertain` calls began " +
      "within a second of a moment at which their price changes.",
    body: { parent: 0, changes: [change], days: 7 },
  },
  "GET /api/price/sync": {
    tag: "Prices",
    summary: "List the kept sources of prices",
    description: "As option PriceSources has them; `auto`: small steps of their prices are taken every day.",
  },
  "POST /api/price/sync": {
    tag: "Prices",
    summary: "Compare prices with a source",
    description:
      "Changes nothing. `source`: the shipped table, another instance (its `/api/ratio_config`, else `/api/pricing`), a public " +
      "list, or `detect`. Administrators send a `text`; fetching a `url`, or the instance behind a channel (`channel_id`), is " +
      "root's; `kept` names a source of option PriceSources, in place of all the others. `strip` are beginnings that names lose. A row is taken by changes that carry its `taken` in a plan. `guards` say " +
      "why a row is not ticked; an entry that cannot be read is in `dropped`, with the reason.",
    body: { source: "detect", text: '{"data":{"model_ratio":{"gpt-4o":1.25}}}', strip: ["openai/"] },
  },
  "POST /api/price/apply": {
    tag: "Prices",
    summary: "Apply a plan",
    description:
      "All of it or nothing. Refused as `price_plan_stale`, naming what changed, where the parent is no longer the latest " +
      "revision. Calls in flight keep their price. `draft_id`: the draft that it came from is done with; `draft_version`: refused where " +
      "somebody changed it since.",
    body: { plan_hash: "0".repeat(64), parent: 0, changes: [change], note: "New list prices" },
  },
  "GET /api/cost/": {
    tag: "Prices",
    summary: "List what upstreams charge",
    description:
      "Rows of a channel, or of all; `row` in dollars, null: the shipped list's, times `factor` and the upstream's " +
      "`group_ratio`. `in_force` is the one that counts now.",
    fields: { channel_id: "Only rows of this channel." },
  },
  "POST /api/cost/": {
    tag: "Prices",
    summary: "Write what an upstream charges",
    description:
      "All rows or none. Each holds from `valid_from` on (now where absent); calls that were settled keep their cost. " +
      "`model` is the upstream's name; `*` is for all without a row of their own.",
    body: {
      channel_id: 1,
      rows: [{ model: "gpt-4o", row: { in: 2.5, out: 10 }, factor: 0.9, group_ratio: 1 }],
    },
  },
  "DELETE /api/cost/{id}": { tag: "Prices", summary: "Delete a cost row" },
  "POST /api/cost/fill": {
    tag: "Prices",
    summary: "Find costs for a channel's models",
    description:
      "Of the shipped list, or of another instance's `/api/pricing` by text or address; `group` is the one that our key is " +
      "in there. Nothing is written.",
    body: { channel_id: 1, source: "list" },
  },
  "GET /api/cost/import": {
    tag: "Prices",
    summary: "List the bills that were read in",
    fields: { channel_id: "Whose bills." },
  },
  "POST /api/cost/import": {
    tag: "Prices",
    summary: "Read a provider's bill in",
    description:
      "By `text`, or by `url` and the provider's `key`, which is kept nowhere; pages are followed. Each line counts once, " +
      "whatever is read again: `known` lines were read before, `replaced` ones said something else. `dry`: only says so.",
    body: { channel_id: 1, source: "openai-costs", text: '{"data":[]}' },
  },
  "POST /api/cost/import/columns": {
    tag: "Prices",
    summary: "Show the columns of a CSV",
    body: { text: "date,model,cost" },
  },
  "GET /api/cost/drift": {
    tag: "Prices",
    summary: "Compare bills with what was reckoned",
    description:
      "By UTC day and upstream model, in billionths of a dollar; null: unknown. Tolerated is half a percent of the bill, or " +
      "a cent. `offer` is a cost row; prices of sale are never touched.",
    fields: {
      channel_id: "Which channel.",
      source: "A kind of bill; that of the latest import where absent.",
      start_timestamp: "Unix seconds; the last 30 days where absent.",
      end_timestamp: "Unix seconds, included.",
    },
  },
};
