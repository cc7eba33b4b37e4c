// The price desk with prepared answers: a small table of prices, changes to it, and what a plan says of them.
import { createElement } from "react";
import type { ComponentType } from "react";
import PriceDesk from "../../islands/screens/price-desk.tsx";
import { createDesk } from "../../islands/ui/price-sheet/desk.ts";
import type { Desk } from "../../islands/ui/price-sheet/desk.ts";
import DeskBar from "../../islands/screens/price-desk/bar.tsx";
import type { SectionProps } from "../../islands/ui/price-sheet/section-props.ts";
import type { PriceDraft, PriceEffect, PricePlan, PriceRevision } from "../../islands/lib/wire.ts";
import type { DeskPrices } from "../../src/shared/price-desk.ts";
import { renderScreen } from "./render.tsx";
import type { Island, IslandOptions, SentRequest } from "./render.tsx";

export const NOW = Date.UTC(2026, 10, 20, 12) / 1000;

export function deskPrices(part: Partial<DeskPrices> = {}): DeskPrices {
  return {
    revision: 7,
    texts: {
      ModelRatio: '{"gpt-4o":1.25,"old-model":2}',
      CompletionRatio: '{"gpt-4o":4}',
      ModelPrice: "{}",
      GroupRatio: '{"default":1,"vip":0.5}',
    },
    served: [{ name: "gpt-4o", vendor: "openai" }],
    refused: {},
    groups: [],
    makers: [],
    isAutoDefault: false,
    ...part,
  };
}

export const RATIO = { key: "ModelRatio", name: "gpt-4o", before: 1.25, after: 1.5 };
export const GROUP = { key: "GroupRatio", name: "vip", before: 0.5, after: 0.75 };

export function draftRow(part: Partial<PriceDraft> = {}): PriceDraft {
  return {
    id: 3,
    title: "Autumn",
    note: "New list prices",
    changes: [RATIO, GROUP],
    parent: 7,
    state: "open",
    announce: false,
    effective_at: 0,
    version: 1,
    revision_id: 0,
    failure: null,
    user_id: 2,
    username: "keeper",
    scheduler_id: 0,
    scheduler_name: "",
    created_at: NOW - 7200,
    updated_at: NOW - 3600,
    ...part,
  };
}

export function revisionRow(part: Partial<PriceRevision> = {}): PriceRevision {
  return {
    id: 8,
    kind: "write",
    user_id: 1,
    username: "chief",
    created_at: NOW - 300,
    note: "",
    change_count: 1,
    fingerprint: "f",
    undo_of: 0,
    undone_by: 0,
    draft_id: 0,
    names: ["gpt-4o"],
    ...part,
  } as PriceRevision;
}

export function effectOf(part: Partial<PriceEffect> = {}): PriceEffect {
  const sums = { calls: 40, old: 590_000_000, new: 602_000_000, charged: 590_000_000 };
  return {
    ...sums,
    from: NOW - 7 * 86_400,
    to: NOW,
    every_hours: 1,
    approximate: { calls: 0, charged: 0 },
    lost_calls: 0,
    refused_calls: 0,
    uncertain: 0,
    by_model: [{ model: "gpt-4o", ...sums }],
    by_group: [{ group: "vip", ...sums }],
    by_user: [
      { user_id: 9, username: "alice", calls: 3, old: 1_000_000, new: 5_550_000, charged: 1_000_000 },
    ],
    cells: [],
    ...part,
  } as PriceEffect;
}

export function planOf(part: Partial<PricePlan> = {}): PricePlan {
  return {
    parent: 7,
    plan_hash: "hash-7",
    changes: [RATIO, GROUP],
    diff: [
      {
        model: "gpt-4o",
        vendor: "OpenAI",
        calls: 0,
        entries: [],
        lines: [
          { kind: "fresh", per: "mtok", before: 2.5, after: 3 },
          { kind: "cache_read", per: "mtok", before: 2.5, after: 3 },
          { kind: "output", per: "mtok", before: 10, after: 12 },
        ],
      },
    ],
    diff_count: 1,
    warnings: [],
    effect: null,
    ...part,
  } as PricePlan;
}

export const ok = (data: unknown) => ({ success: true, data });
export const refusal = (code: string) =>
  Response.json({ success: false, message: `refused: ${code}`, code }, { status: 200 });

/** Answers the difference at once, and the effect by days. */
export function answerPlan(
  island: Island,
  plan = planOf(),
  effect: PriceEffect | (() => Promise<unknown>) = effectOf(),
): void {
  island.answer("POST /api/price/plan", async ({ body }: SentRequest) => {
    if ((body as { days: number }).days === 0) return ok(plan);
    return ok({ ...plan, effect: typeof effect === "function" ? await effect() : effect });
  });
}

export interface DeskOptions extends IslandOptions {
  canApply?: boolean;
  drafts?: PriceDraft[];
  revisions?: PriceRevision[];
}

function prepare(island: Island, { drafts = [draftRow()], revisions = [revisionRow()] }: DeskOptions): void {
  island.answer("GET /api/price/desk", ok(deskPrices()));
  island.answer("GET /api/price/drafts", ok({ items: drafts, total: drafts.length, page: 1, page_size: 20 }));
  island.answer(
    "GET /api/price/revisions",
    ok({ items: revisions, total: revisions.length, page: 1, page_size: 20, revision: 8 }),
  );
  answerPlan(island);
}

/** The whole screen. */
export function openDesk(url: string, options: DeskOptions = {}): Island {
  const { canApply = true } = options;
  const section = new URL(url, "http://localhost").searchParams.get("section") ?? "models";
  const role = canApply ? 100 : 10;
  const island = renderScreen(PriceDesk, { url, data: { section, canApply }, user: { role }, ...options });
  prepare(island, options);
  return island;
}

/** One section over a desk with changes, and the bar; what is reloaded is counted. */
export function openSection(
  Section: ComponentType<SectionProps>,
  changes: readonly { key: string; name: string; after: unknown }[],
  options: DeskOptions = {},
): { island: Island; desk: Desk; reloads: () => number } {
  const { canApply = true } = options;
  const desk = createDesk();
  desk.open(deskPrices());
  for (const each of changes) desk.write([each], `Set ${each.name}`);
  let reloads = 0;
  const props: SectionProps = {
    desk,
    canApply,
    reload: async () => {
      reloads += 1;
    },
  };
  const Both = () => [
    createElement(Section, { key: "section", ...props }),
    createElement(DeskBar, { key: "bar", desk, isHidden: false, hasSteps: true }),
  ];
  const island = renderScreen(Both, { url: "/prices", user: { role: canApply ? 100 : 10 }, ...options });
  prepare(island, options);
  return { island, desk, reloads: () => reloads };
}
