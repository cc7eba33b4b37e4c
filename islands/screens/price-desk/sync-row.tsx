// One model of a comparison: its price here, at the source, and what it will be; opened, every kind of it side by side.
import { useState } from "react";
import type { ReactNode } from "react";
import { isSameRow, tidyDollars } from "../../../src/shared/price-row.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { changeShare, differsBeside, isTakeable, pricePairs } from "./sync-rows.ts";
import type { PricePair, SyncLine } from "./sync-rows.ts";

interface RowProps {
  line: SyncLine;
  /** The price with the changes of the desk. */
  pending: PriceRow | undefined;
  isTicked: boolean;
  onTick: (isOn: boolean) => void;
}

export function SyncRow({ line, pending, isTicked, onTick }: RowProps) {
  const t = useT();
  const [isOpen, setOpen] = useState(false);
  const { name, guards, ours, theirs } = line;
  const isTaken = theirs !== null && isSameRow(pending, theirs);
  const after = isTicked ? theirs : (pending ?? null);
  return (
    <>
      <tr aria-selected={isTicked}>
        <td className="sync-tick align-top">
          <input
            type="checkbox"
            className="checkbox"
            aria-label={t("sync.tick", { name })}
            checked={isTicked}
            disabled={!isTakeable(line) || isTaken}
            onChange={(event) => onTick(event.target.checked)}
          />
        </td>
        <th scope="row" className="text-left align-top">
          <button
            type="button"
            className="mono cursor-pointer text-left wrap-anywhere"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            {name}
          </button>
          <span className="mt-0.5 flex flex-wrap gap-1">
            <span className="badge badge-sm badge-ghost">{t(`sync.case.${line.case}`)}</span>
            {isTaken ? (
              <span className="badge badge-sm badge-ghost" data-tone="ok">
                {t("sync.isTaken")}
              </span>
            ) : null}
            {guards.map((guard) => (
              <span key={guard} className="badge badge-sm badge-ghost" data-tone="attention">
                {t(`sync.guard.${guard}`)}
              </span>
            ))}
          </span>
        </th>
        <PriceCell label={t("sync.column.ours")} row={ours} />
        <PriceCell label={t("sync.column.theirs")} row={theirs} against={ours} />
        <PriceCell
          label={t("sync.column.taken")}
          row={after}
          isStrong={!isSameRow(after ?? undefined, ours ?? undefined)}
        />
      </tr>
      {isOpen ? (
        <tr className="sync-open">
          <td />
          <td colSpan={4}>
            <Kinds line={line} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

const dollars = (value: number): string => `$${tidyDollars(value)}`;

const SHORT_DIGITS = 5;
/** As much of a price as a row has room for; opened, it is told in full. */
const shortDollars = (value: number): string => `$${Number(value.toPrecision(SHORT_DIGITS))}`;

/** "$2.5 / $10": in and out by the million tokens, or the fixed price. */
function mainPrice(t: Translate, row: PriceRow): string {
  if (row.call !== undefined) return t(`sync.per.${row.unit ?? "call"}`, { price: shortDollars(row.call) });
  return `${shortDollars(row.in ?? 0)} / ${shortDollars(row.out ?? 0)}`;
}

/** Shown in a row without opening it. */
const SHOWN: readonly string[] = ["in", "out", "cache_read", "call"];

/** What else the price knows, as few words as tell that it is there, and how much of it differs. */
function besidePrice(t: Translate, row: PriceRow, against: PriceRow | null): string {
  const more: string[] = [];
  if (row.cache_read !== undefined) more.push(t("sync.cacheShort", { price: shortDollars(row.cache_read) }));
  const rules = row.when?.length ?? 0;
  if (rules > 0) more.push(t("sync.rules", { count: rules }));
  const sides = { ours: against, theirs: row, base: null };
  const differing = pricePairs(sides).filter(({ kind, isChanged }) => isChanged && !SHOWN.includes(kind));
  if (differing.length > 0) more.push(t("sync.moreDiffer", { count: differing.length }));
  return more.join(" · ");
}

function PriceCell({
  label,
  row,
  against = null,
  isStrong = false,
}: {
  label: string;
  row: PriceRow | null;
  /** What it is compared with: rises and falls are told. */
  against?: PriceRow | null;
  isStrong?: boolean;
}) {
  const t = useT();
  const share = row && against ? mainShare(against, row) : undefined;
  return (
    <td className={`align-top tabular-nums ${isStrong ? "font-semibold" : ""}`}>
      <span className="text-xs text-muted sm:hidden">{label}</span>
      {row ? (
        <span className="block">
          {mainPrice(t, row)}
          {share === undefined ? null : <Change share={share} />}
        </span>
      ) : (
        <span className="block text-muted">–</span>
      )}
      {row ? (
        <span className="block text-xs font-normal text-muted">{besidePrice(t, row, against)}</span>
      ) : null}
    </td>
  );
}

/** By how much the price that changes most changes: of input, output or the call. */
function mainShare(before: PriceRow, after: PriceRow): number | undefined {
  const shares = pricePairs({ ours: before, theirs: after, base: null })
    .filter(({ kind, isChanged }) => isChanged && (kind === "in" || kind === "out" || kind === "call"))
    .map(changeShare)
    .filter((share) => share !== undefined);
  return shares.length === 0 ? undefined : shares.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
}

const PERCENT = 100;

function Change({ share }: { share: number }): ReactNode {
  const percent = Number((share * PERCENT).toPrecision(2));
  const text = `${percent > 0 ? "+" : "−"}${Math.abs(percent)} %`;
  return (
    <span className={`ml-2 text-xs whitespace-nowrap ${percent > 0 ? "text-error" : "text-success"}`}>
      {text}
    </span>
  );
}

function Kinds({ line }: { line: SyncLine }) {
  const t = useT();
  const { base, origin } = line;
  const pairs = pricePairs(line);
  const price = (value: number | null) => (value === null ? "–" : dollars(value));
  const share = (pair: PricePair) => (pair.isChanged ? changeShare(pair) : undefined);
  return (
    <div className="mb-2 text-xs">
      <table className="table sum-table w-auto">
        <thead>
          <tr>
            <th scope="col">{t("sync.unit")}</th>
            {base ? <th scope="col">{t("sync.column.base")}</th> : null}
            <th scope="col">{t("sync.column.ours")}</th>
            <th scope="col">{t("sync.column.theirs")}</th>
          </tr>
        </thead>
        <tbody>
          {pairs.map((pair) => {
            const change = share(pair);
            return (
              <tr key={pair.kind}>
                <th scope="row" className="text-left">
                  {t(`sync.kind.${pair.kind}`)}
                </th>
                {base ? <td>{price(pair.base)}</td> : null}
                <td>{price(pair.ours)}</td>
                <td className={pair.isChanged ? "font-semibold" : ""}>
                  {price(pair.theirs)}
                  {change === undefined ? null : <Change share={change} />}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {differsBeside(line) ? <p className="mt-1 text-muted">{t("sync.besideDiffers")}</p> : null}
      {origin === "" ? null : (
        <p className="mt-1 text-muted">
          {origin === "own" || origin === "shipped"
            ? t(`sync.originOf.${origin}`)
            : t("sync.origin", { source: origin })}
        </p>
      )}
    </div>
  );
}
