// The cost rows of a channel: which one counts for each model, what came before and what will, and what fills them.
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { api, call } from "../../../lib/api.ts";
import { nowMs, siteZone } from "../../../lib/boot.ts";
import { formatWhen, timeTitle } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { toastFailure } from "../../../lib/toasts.ts";
import type { CostLine } from "../../../lib/wire.ts";
import { confirm } from "../../../ui/confirm.tsx";
import { FailureNotice } from "../../../ui/feedback.tsx";
import { costText } from "./cost-text.ts";
import { CostFill } from "./fill.tsx";
import type { CostPartProps } from "./props.ts";
import { CostForm } from "./row-form.tsx";
import { useRead } from "./use-read.ts";

export function CostRows({ channelId, canWrite, version, onChanged }: CostPartProps) {
  const t = useT();
  const { found, failure, again } = useRead(
    () => call(api.cost.get({ query: { channel_id: String(channelId) } })),
    `${channelId} ${version}`,
  );
  const [isAll, setAll] = useState(false);
  const [open, setOpen] = useState<"row" | "fill">();
  const rows = found?.filter((row) => isAll || row.in_force || row.valid_from > nowMs.value / 1000) ?? [];
  const hidden = (found?.length ?? 0) - rows.length;
  const remove = async (row: CostLine) => {
    const isSure = await confirm({
      title: t("cost.deleteTitle", { model: row.model }),
      text: t("cost.deleteText"),
      action: t("common.delete"),
      isDanger: true,
    });
    if (!isSure) return;
    try {
      await call(api.cost({ id: row.id }).delete());
      onChanged();
    } catch (error) {
      toastFailure(error);
    }
  };
  const written = () => {
    setOpen(undefined);
    onChanged();
  };
  return (
    <section className="mb-8" aria-labelledby="cost-rows">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h2 id="cost-rows" className="mr-auto">
          {t("cost.rows")}
        </h2>
        {canWrite ? (
          <>
            <button
              type="button"
              className="btn btn-sm btn-default"
              aria-expanded={open === "fill"}
              onClick={() => setOpen(open === "fill" ? undefined : "fill")}
            >
              {t("cost.fill")}
            </button>
            <button
              type="button"
              className="btn btn-sm btn-default"
              aria-expanded={open === "row"}
              onClick={() => setOpen(open === "row" ? undefined : "row")}
            >
              {t("cost.add")}
            </button>
          </>
        ) : null}
      </div>
      {open === "row" ? <CostForm channelId={channelId} onWritten={written} /> : null}
      {open === "fill" ? <CostFill channelId={channelId} onWritten={written} /> : null}
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={again} />}
      {found?.length === 0 ? <p className="text-muted">{t("cost.none")}</p> : null}
      {rows.length === 0 ? null : (
        <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={t("cost.rows")}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col">{t("cost.model")}</th>
                <th scope="col">{t("cost.price")}</th>
                <th scope="col">{t("cost.from")}</th>
                <th scope="col" className="max-sm:hidden">
                  {t("cost.source")}
                </th>
                {canWrite ? <th scope="col" aria-label={t("common.delete")} /> : null}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.id} className={row.in_force ? "" : "text-muted"}>
                  <th scope="row" className="mono font-normal wrap-anywhere">
                    {row.model === "*" ? t("cost.all") : row.model}
                  </th>
                  <td>{costText(t, row)}</td>
                  <td className="whitespace-nowrap" title={timeTitle(row.valid_from * 1000, siteZone.value)}>
                    {formatWhen(row.valid_from * 1000, nowMs.value, siteZone.value)}
                  </td>
                  <td className="max-sm:hidden">{t(`cost.source.${row.source}`)}</td>
                  {canWrite ? (
                    <td className="text-right">
                      <button
                        type="button"
                        className="btn btn-ghost btn-xs"
                        aria-label={t("cost.deleteTitle", { model: row.model })}
                        onClick={() => void remove(row)}
                      >
                        <Trash2 aria-hidden size={14} />
                      </button>
                    </td>
                  ) : null}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {hidden > 0 ? (
        <button type="button" className="link mt-1 text-dense" onClick={() => setAll(true)}>
          {t("cost.earlier", { count: hidden })}
        </button>
      ) : null}
    </section>
  );
}
