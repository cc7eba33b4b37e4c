// What administrators tell users about single models, as a bar: which models, what about them, until when.
// Refuses notices about models that are not at hand, where the caller says which ones are.
import { useSignals } from "@preact/signals-react/runtime";
import { timeZone } from "../lib/boot.ts";
import { formatDateTime } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { namesText } from "../lib/model-names.ts";
import type { ModelNotice } from "../lib/wire.ts";
import { Notice } from "./feedback.tsx";

export interface ModelNoticesProps {
  notices: readonly ModelNotice[];
  /** Only what concerns one of these; all of them where absent. */
  models?: readonly string[];
}

export default function ModelNotices({ notices, models }: ModelNoticesProps) {
  const t = useT();
  useSignals();
  const zone = timeZone.value;
  const wanted = models && new Set(models);
  const told = notices
    .map((each) => ({ ...each, about: each.models.filter((name) => !wanted || wanted.has(name)) }))
    .filter(({ about }) => about.length > 0);
  if (told.length === 0) return null;
  return (
    <Notice tone="warning">
      <ul role="status">
        {told.map(({ id, about, text, until }) => (
          <li key={id} className="wrap-anywhere">
            <span className="mono">{namesText(t, about)}</span>: {text}
            {until === 0 ? null : (
              <span className="text-muted">
                {" "}
                {t("notice.until", { time: formatDateTime(until * 1000, zone).slice(0, 16) })}
              </span>
            )}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
