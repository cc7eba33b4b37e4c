// What administrators tell users about single models, as a bar: which models, what about them, until when; and which prices
// change when. Refuses notices about models that are not at hand, where the caller says which ones are.
import { useSignals } from "@preact/signals-react/runtime";
import type { PricesToCome } from "../../src/shared/prices-to-come.ts";
import { timeZone } from "../lib/boot.ts";
import { formatDateTime, formatNumber } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { namesText } from "../lib/model-names.ts";
import type { ModelNotice } from "../lib/wire.ts";
import { Notice } from "./feedback.tsx";

export interface ModelNoticesProps {
  notices: readonly ModelNotice[];
  /** Announced changes of prices. */
  pricesToCome?: readonly PricesToCome[];
  /** Only what concerns one of these; all of them where absent. */
  models?: readonly string[];
}

export default function ModelNotices({ notices, pricesToCome = [], models }: ModelNoticesProps) {
  const t = useT();
  useSignals();
  const zone = timeZone.value;
  const wanted = models && new Set(models);
  const aboutOf = (names: readonly string[]) => names.filter((name) => !wanted || wanted.has(name));
  const told = notices
    .map((each) => ({ ...each, about: aboutOf(each.models) }))
    .filter(({ about }) => about.length > 0);
  const moments = pricesToCome
    .map((each) => ({ ...each, about: aboutOf(each.models) }))
    .filter(({ about, groups }) => about.length + groups.length > 0);
  if (told.length + moments.length === 0) return null;
  const at = (seconds: number) => formatDateTime(seconds * 1000, zone).slice(0, 16);
  return (
    <Notice tone="warning">
      <ul role="status">
        {told.map(({ id, about, text, until }) => (
          <li key={id} className="wrap-anywhere">
            <span className="mono">{namesText(t, about)}</span>: {text}
            {until === 0 ? null : (
              <span className="text-muted"> {t("notice.until", { time: at(until) })}</span>
            )}
          </li>
        ))}
        {moments.map(({ effective_at: moment, about, groups }) => (
          <li key={moment} className="wrap-anywhere">
            {about.length === 0 ? null : (
              <>
                <span className="mono">{namesText(t, about)}</span>:{" "}
                {t("notice.pricesFrom", { time: at(moment), zone })}{" "}
                <a className="link" href={pricesOf(about)}>
                  {t("notice.seePrices")}
                </a>
              </>
            )}
            {groups.map(({ group, before, after }) => (
              <span key={group} className="block">
                <span className="mono">{group}</span>:{" "}
                {t("notice.groupFrom", {
                  time: at(moment),
                  zone,
                  before: formatNumber(before),
                  after: formatNumber(after),
                })}
              </span>
            ))}
          </li>
        ))}
      </ul>
    </Notice>
  );
}

function pricesOf([first, ...more]: readonly string[]): string {
  return first !== undefined && more.length === 0
    ? `/pricing?model=${encodeURIComponent(first)}`
    : "/pricing";
}
