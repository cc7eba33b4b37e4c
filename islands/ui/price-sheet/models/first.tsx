// The sheet of models as it comes from the server: views with counts, and the first rows to read until they can be edited.
import { useSignals } from "@preact/signals-react/runtime";
import { modelQuestion, MODEL_VIEWS } from "../../../../src/shared/price-desk.ts";
import type { DeskPageData, FirstModel, ModelView } from "../../../../src/shared/price-desk.ts";
import { bootData } from "../../../lib/boot.ts";
import { useT } from "../../../lib/i18n.ts";
import { useQuery } from "../../../lib/url-state.ts";
import { TabCount } from "../../page-header.tsx";
import { useSheetQuery } from "./query.ts";
import { BASE_COLUMNS, dollarsText, unitOf } from "./columns.ts";

export function ModelViews({ counts }: { counts: Partial<Record<ModelView, number>> }) {
  const t = useT();
  useSignals();
  const { query, setQuery, hrefOf } = useSheetQuery();
  const { view } = modelQuestion(query);
  return (
    <nav className="join max-w-full overflow-x-auto" aria-label={t("desk.models.views")}>
      {MODEL_VIEWS.map((id) => {
        const patch = { view: id === "all" ? undefined : id };
        return (
          <a
            key={id}
            href={hrefOf(patch)}
            className="btn btn-default btn-sm join-item flex-none gap-1.5 pointer-coarse:min-h-11"
            aria-current={view === id ? "page" : undefined}
            onClick={(event) => {
              if (event.metaKey || event.ctrlKey || event.shiftKey) return;
              event.preventDefault();
              setQuery(patch);
            }}
          >
            {t(`desk.models.view.${id}`)}
            <TabCount count={counts[id]} />
          </a>
        );
      })}
    </nav>
  );
}

/** A name with its maker, and how many rules its price has. */
export function ModelName({ name, maker, rules }: Pick<FirstModel, "name" | "maker" | "rules">) {
  const t = useT();
  return (
    <>
      <span className="mono">{name}</span>
      {rules > 0 ? (
        <span className="badge badge-ghost badge-xs ml-1.5 font-normal">
          {t("desk.models.rules", { count: rules })}
        </span>
      ) : null}
      {maker === "" ? null : <span className="ml-1.5 text-xs text-muted">{maker}</span>}
    </>
  );
}

export function FirstModels() {
  const t = useT();
  const query = useQuery();
  const { first } = bootData<DeskPageData>();
  const unit = query["unit"] === "ratio" ? "ratio" : "dollars";
  // Beside the dollars that the server wrote, ratios would be work for nothing.
  const hasRows = first !== undefined && unit === "dollars";
  return (
    <>
      <div className="mb-2 flex min-h-9 flex-wrap items-center gap-2">
        <ModelViews counts={first?.counts ?? {}} />
      </div>
      <div className="skeleton mb-1 h-9 pointer-coarse:h-11" aria-hidden />
      <div className="mb-1 min-h-9 pointer-coarse:min-h-11" aria-hidden />
      <div className={`skeleton h-dvh ${hasRows ? "sm:hidden" : ""}`} aria-hidden />
      {hasRows ? (
        <div className="sheet max-sm:hidden" role="table" aria-label={t("desk.models.sheet")} tabIndex={0}>
          <div role="rowgroup" className="sticky top-0 z-4">
            <div role="row">
              {BASE_COLUMNS.map(({ id, width, isNumber }) => (
                <div
                  key={id}
                  role="columnheader"
                  data-row={-1}
                  data-number={isNumber || undefined}
                  style={{ width }}
                >
                  <span>
                    {t(`desk.models.column.${id}`)}
                    {isNumber ? <span className="font-normal"> {unitOf(id, "dollars")}</span> : null}
                  </span>
                </div>
              ))}
            </div>
          </div>
          <div role="rowgroup">
            {first.rows.map((model) => (
              <FirstRow key={model.name} {...model} />
            ))}
          </div>
        </div>
      ) : null}
    </>
  );
}

function FirstRow({ name, maker, rules, row, isOutputDerived }: FirstModel) {
  const t = useT();
  return (
    <div role="row">
      {BASE_COLUMNS.map(({ id, width, isNumber }) => (
        <div
          key={id}
          role={id === "name" ? "rowheader" : "cell"}
          data-row
          data-number={isNumber || undefined}
          data-muted={(id === "out" && isOutputDerived) || undefined}
          style={{ width }}
        >
          <span className="sheet-text max-w-full truncate">
            {id === "name" ? (
              <ModelName {...{ name, maker, rules }} />
            ) : id === "billing" ? (
              t(
                `desk.models.billing.${row === undefined ? "none" : row.call === undefined ? "tokens" : "call"}`,
              )
            ) : (
              dollarsText(row, id)
            )}
          </span>
        </div>
      ))}
    </div>
  );
}
