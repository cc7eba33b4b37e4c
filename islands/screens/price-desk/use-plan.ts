// The plan of the changes at hand: its difference first, then what it would have meant for the last days.
// Refuses to go on with a plan whose prices somebody changed meanwhile: it says who changed what.
import { useSignals } from "@preact/signals-react/runtime";
import { useCallback, useEffect, useRef, useState } from "react";
import { MAX_PLAN_BYTES, MAX_PLAN_CHANGES } from "../../../src/shared/price-desk.ts";
import { api, ApiFailure, call, failureMessage, isAbort } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import type { PriceEffect, PricePlan, PriceRevision } from "../../lib/wire.ts";
import type { Desk, DeskChange } from "../../ui/price-sheet/desk.ts";

export const PLAN_DAYS = [1, 7, 30] as const;
export type PlanDays = (typeof PLAN_DAYS)[number];

type EffectState =
  | { is: "loading" }
  | { is: "cancelled" }
  | { is: "failed"; text: string }
  | { is: "there"; effect: PriceEffect };

type PlanState =
  | { is: "loading" }
  | { is: "failed"; text: string }
  /** Somebody changed prices since the desk read them. */
  | { is: "stale"; since: readonly PriceRevision[] }
  | { is: "there"; plan: PricePlan };

export interface PlanAtHand {
  state: PlanState;
  effect: EffectState;
  cancel: () => void;
  again: () => void;
  /** For whoever applies and is refused. */
  tellStale: () => Promise<void>;
}

type Body = Parameters<typeof api.price.plan.post>[0];

/** As calls send them. */
export function sentOf(changes: readonly DeskChange[]): Body["changes"] {
  return changes as Body["changes"];
}

const MOST_REVISIONS = 20;

/** More than one request may carry: told here, in words, before it is sent. */
const isTooLarge = (changes: readonly DeskChange[]): boolean =>
  changes.length > MAX_PLAN_CHANGES || JSON.stringify(changes).length > MAX_PLAN_BYTES;

async function revisionsAfter(parent: number): Promise<readonly PriceRevision[]> {
  const query = { after: String(parent), page_size: String(MOST_REVISIONS) };
  return (await call(api.price.revisions.get({ query }))).items;
}

export function usePlan(desk: Desk, days: PlanDays): PlanAtHand {
  useSignals();
  const [state, setState] = useState<PlanState>({ is: "loading" });
  const [effect, setEffect] = useState<EffectState>({ is: "loading" });
  const [round, setRound] = useState(0);
  const running = useRef<AbortController>(undefined);
  const changes = desk.changes.value;
  const parent = desk.prices.value?.revision ?? 0;
  const tellStale = useCallback(async () => {
    try {
      setState({ is: "stale", since: await revisionsAfter(parent) });
    } catch (error) {
      setState({ is: "failed", text: failureMessage(error) });
    }
  }, [parent]);

  useEffect(() => {
    if (isTooLarge(changes)) {
      setState({ is: "failed", text: t("plan.tooMany", { count: changes.length, limit: MAX_PLAN_CHANGES }) });
      return undefined;
    }
    const controller = new AbortController();
    setState({ is: "loading" });
    const body: Body = { parent, changes: sentOf(changes), days: 0 };
    call(api.price.plan.post(body, { fetch: { signal: controller.signal } })).then(
      (plan) => {
        if (!controller.signal.aborted) setState({ is: "there", plan });
      },
      (error: unknown) => {
        if (controller.signal.aborted || isAbort(error)) return;
        if (error instanceof ApiFailure && error.code === "price_plan_stale") void tellStale();
        else setState({ is: "failed", text: failureMessage(error) });
      },
    );
    return () => controller.abort();
  }, [changes, parent, round]);

  const isThere = state.is === "there";
  useEffect(() => {
    if (!isThere) return undefined;
    const controller = new AbortController();
    running.current = controller;
    setEffect({ is: "loading" });
    const body: Body = { parent, changes: sentOf(changes), days };
    call(api.price.plan.post(body, { fetch: { signal: controller.signal } })).then(
      ({ effect: found }) => {
        if (found && !controller.signal.aborted) setEffect({ is: "there", effect: found });
      },
      (error: unknown) => {
        if (controller.signal.aborted || isAbort(error)) return;
        setEffect({ is: "failed", text: failureMessage(error) });
      },
    );
    return () => controller.abort();
  }, [isThere, state, days]);

  return {
    state,
    effect,
    tellStale,
    cancel: () => {
      running.current?.abort();
      setEffect({ is: "cancelled" });
    },
    again: () => setRound((before) => before + 1),
  };
}
