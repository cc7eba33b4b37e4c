// One model beside the sheet: every price it has, before and after, its rules, and taking its price away.
import { useSignals } from "@preact/signals-react/runtime";
import { TOKEN_KINDS } from "../../../../src/shared/price-row.ts";
import { formatNumber } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { Drawer } from "../../../ui/drawer.tsx";
import { Before } from "../../../ui/sheet-row.tsx";
import type { Desk } from "../desk.ts";
import { dollarsText } from "./columns.ts";
import type { Facts } from "./rows.ts";

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
  const stored = desk.storedRowOf(model);
  const refused = facts.refusedOf(model);
  const shown = (["call", ...TOKEN_KINDS] as const).filter(
    (kind) => row?.[kind] !== undefined || stored?.[kind] !== undefined,
  );
  return (
    <Drawer
      isOpen
      title={<span className="mono">{model}</span>}
      onClose={onClose}
      footer={
        row ? (
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
      <p className="mt-4 text-dense text-muted">
        {t("desk.models.ruleCount", { count: row?.when?.length ?? 0 })}
      </p>
    </Drawer>
  );
}
