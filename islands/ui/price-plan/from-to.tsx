// An old value beside its new one, and a change in percent.
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";

/** "+20 %", a typographic minus; what is tiny is not rounded to nothing. */
export function percentText(percent: number): string {
  const size = Math.abs(percent);
  const digits = size >= 100 ? 0 : size >= 0.05 ? 1 : 3;
  const text = formatNumber(Number(size.toFixed(digits)));
  return `${percent < 0 ? "−" : "+"}${text} %`;
}

/** Old and new beside each other; read aloud with the words between them. */
export function FromTo({ before, after }: { before: string; after: string }) {
  const t = useT();
  return (
    <>
      <span className="sr-only">{t("plan.from")} </span>
      <s className="text-muted">{before}</s>
      <span aria-hidden> → </span>
      <span className="sr-only"> {t("plan.to")} </span>
      <b className="font-medium">{after}</b>
    </>
  );
}
