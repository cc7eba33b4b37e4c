// What a batch or an import would change: the first models with their price before and after, and how many there are.
import { ArrowRight } from "lucide-react";
import { useT } from "../../../lib/i18n.ts";
import type { Preview } from "./batch-edits.ts";

export function PreviewList({ preview: { lines, count } }: { preview: Preview }) {
  const t = useT();
  return (
    <section aria-label={t("desk.models.preview")} className="mt-4">
      <p className="font-medium" role="status">
        {t("desk.models.changes", { count })}
      </p>
      <ul className="mt-1 text-dense">
        {lines.map(({ model, before, after }) => (
          <li key={model} className="flex flex-wrap items-baseline gap-x-3 border-b border-base-300 py-1">
            <span className="mono min-w-0 grow wrap-anywhere">{model}</span>
            <span className="flex items-center gap-1.5 tabular-nums">
              <span className="text-muted">{before}</span>
              <ArrowRight aria-label={t("desk.models.becomes")} size={12} />
              {after}
            </span>
          </li>
        ))}
      </ul>
      {count > lines.length ? (
        <p className="mt-1 text-xs text-muted">{t("desk.models.andMore", { count: count - lines.length })}</p>
      ) : null}
    </section>
  );
}
