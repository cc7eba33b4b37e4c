// One model beside the sheet: every price it has, before and after, its rules, and taking its price away.
// Refuses to close over rules that are not whole: they would be gone.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { isSameRow, TOKEN_KINDS } from "../../../../src/shared/price-row.ts";
import type { PriceRules } from "../../../../src/shared/price-row.ts";
import { formatNumber } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { lazyPart } from "../../../lib/lazy-part.tsx";
import { Drawer } from "../../drawer.tsx";
import { Before } from "../../sheet-row.tsx";
import type { Desk } from "../desk.ts";
import type { RulesEditorProps } from "../rules-editor.tsx";
import { dollarsText } from "./columns.ts";
import type { Facts } from "./rows.ts";

const RulesEditor = lazyPart<RulesEditorProps>(() => import("../rules-editor.tsx"));

/** The rules of one model while they are edited. */
function useRules(desk: Desk, model: string) {
  const t = useT();
  const [start] = useState(() => (desk.valueOf("PriceRules", model) ?? {}) as PriceRules);
  const [nowMs] = useState(Date.now);
  // Undefined: not whole yet.
  const [rules, setRules] = useState<PriceRules | undefined>(start);
  const [isTold, setTold] = useState(false);
  return {
    start,
    nowMs,
    isTold,
    setRules,
    isDirty: !isSameRow(rules, start),
    /** False: they are not whole, and say so. */
    take(): boolean {
      setTold(true);
      if (!rules) return false;
      const after = Object.keys(rules).length === 0 ? null : rules;
      const edit = { key: "PriceRules", name: model, after };
      if (!isSameRow(rules, start)) desk.write([edit], t("desk.models.step.rules", { model }));
      return true;
    },
  };
}

interface ModelDrawerProps {
  desk: Desk;
  model: string;
  facts: Facts;
  onRemove: () => void;
  onClose: () => void;
}

export function ModelDrawer({ desk, model, facts, onRemove, onClose }: ModelDrawerProps) {
  useSignals();
  const t = useT();
  const row = desk.rowOf(model);
  const rules = useRules(desk, model);
  const stored = desk.storedRowOf(model);
  const refused = facts.refusedOf(model);
  const shown = (["call", ...TOKEN_KINDS] as const).filter(
    (kind) => row?.[kind] !== undefined || stored?.[kind] !== undefined,
  );
  return (
    <Drawer
      isOpen
      width="wide"
      isDirty={rules.isDirty}
      title={<span className="mono">{model}</span>}
      onClose={onClose}
      footer={
        row ? (
          <>
            <button
              type="button"
              className="btn btn-default mr-auto text-error"
              onClick={() => {
                onRemove();
                onClose();
              }}
            >
              {t("desk.models.remove")}
            </button>
            <button
              type="button"
              className="btn btn-primary"
              onClick={() => {
                if (rules.take()) onClose();
              }}
            >
              {t("desk.models.keepRules")}
            </button>
          </>
        ) : undefined
      }
    >
      <p className="mb-3 text-muted">
        {[
          facts.makerOf(model),
          t(facts.used.has(model) ? "desk.models.isUsed" : "desk.models.isUnused"),
          ...(refused > 0
            ? [t("desk.models.refusedLong", { count: refused, number: formatNumber(refused) })]
            : []),
        ]
          .filter((part) => part !== "")
          .join(" · ")}
      </p>
      {shown.length === 0 ? (
        <p>{t("desk.models.noPriceYet")}</p>
      ) : (
        <dl className="grid grid-cols-[1fr_auto] gap-y-1.5 tabular-nums">
          {shown.map((kind) => {
            const [now, before] = [dollarsText(row, kind), dollarsText(stored, kind)];
            return (
              <div key={kind} className="contents">
                <dt>
                  {t(`desk.models.column.${kind}`)}{" "}
                  <span className="text-xs text-muted">{kind === "call" ? "$" : "$/M"}</span>
                </dt>
                <dd className="flex items-baseline justify-end gap-2">
                  {now === before ? null : <Before text={before} />}
                  {now === "" ? "–" : now}
                </dd>
              </div>
            );
          })}
        </dl>
      )}
      {row ? (
        <div className="mt-6 border-t border-base-300 pt-4">
          <RulesEditor
            model={model}
            rules={rules.start}
            base={row}
            onChange={rules.setRules}
            isTold={rules.isTold}
            nowMs={rules.nowMs}
          />
        </div>
      ) : null}
    </Drawer>
  );
}
