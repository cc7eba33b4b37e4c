// Back from the provider: asks what became of the order until that is known, and says so.
// Refuses to credit anything, or to call a payment lost: what comes later is credited by itself.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useRef, useState } from "react";
import { api, call, isAbort } from "../../lib/api.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { hasReceipt, isWaiting, moneyText } from "../../lib/order-words.ts";
import { setQuery } from "../../lib/url-state.ts";
import type { OrderDetail } from "../../lib/wire.ts";
import { Notice } from "../../ui/feedback.tsx";

const POLL_MS = 2000;
/** Asked for so often it is late, and asked for more rarely. */
const LATE_AFTER = 10;
const LATE_POLL_MS = 10_000;
/** Five minutes more; then only by hand. */
const MOST_POLLS = 40;

/** The order anew until it no longer waits; `onCredited` once, when it was seen to be credited here. */
function useOrder(first: OrderDetail, onCredited: (quota: number) => void) {
  const [order, setOrder] = useState(first);
  const [polls, setPolls] = useState(0);
  const latest = useRef(onCredited);
  latest.current = onCredited;
  const waits = isWaiting(order.status);
  const ask = async (isGone: () => boolean) => {
    try {
      const next = await call(api.user.topup({ trade_no: order.trade_no }).get());
      if (isGone()) return;
      if (waits && next.status === "success") latest.current(next.quota);
      setOrder(next);
    } catch (error) {
      // The next look will say.
      if (isAbort(error)) return;
    }
    if (!isGone()) setPolls((count) => count + 1);
  };
  useEffect(() => {
    if (!waits || polls >= MOST_POLLS) return undefined;
    let isOver = false;
    const timer = setTimeout(() => void ask(() => isOver), polls < LATE_AFTER ? POLL_MS : LATE_POLL_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [waits, polls]);
  // Whoever comes back from the provider's own window wants to know now.
  useEffect(() => {
    if (!waits) return undefined;
    let isOver = false;
    const onFocus = () => void ask(() => isOver);
    window.addEventListener("focus", onFocus);
    return () => {
      isOver = true;
      window.removeEventListener("focus", onFocus);
    };
  }, [waits]);
  return { order, isLate: waits && polls >= LATE_AFTER, again: () => void ask(() => false) };
}

const TONES = {
  success: "success",
  refunded: "info",
  failed: "error",
  expired: "warning",
  review: "warning",
} as const;

function sentenceOf(
  t: Translate,
  { status, quota, refunded, currency, plan }: OrderDetail,
  isLate: boolean,
): string {
  if (isWaiting(status)) return t(isLate ? "topup.return.late" : "topup.return.waiting");
  if (status === "success" && plan !== "") return t("topup.return.plan", { plan });
  if (status === "success") return t("topup.return.credited", { amount: formatQuota(quota) });
  if (status === "refunded") return t("topup.return.refunded", { money: moneyText(refunded, currency) });
  if (status === "review") return t("topup.return.review");
  return t(status === "failed" ? "topup.return.failed" : "topup.return.expired");
}

interface ReturnNoticeProps {
  order: OrderDetail;
  onCredited: (quota: number) => void;
}

export function ReturnNotice({ order: first, onCredited }: ReturnNoticeProps) {
  useSignals();
  const t = useT();
  const { order, isLate, again } = useOrder(first, onCredited);
  const { status, trade_no: tradeNo, money, currency } = order;
  const waits = isWaiting(status);
  return (
    <div className="mb-4" role="status" data-testid="order-state" data-status={status}>
      <Notice
        tone={TONES[status as keyof typeof TONES] ?? "info"}
        onClose={() => setQuery({ order: undefined })}
      >
        <p className="font-semibold">
          {waits && !isLate ? (
            <span className="loading loading-spinner loading-xs mr-2 align-middle" aria-hidden />
          ) : null}
          {sentenceOf(t, order, isLate)}
        </p>
        <p className="mt-1 text-dense wrap-anywhere">
          {t("topup.return.order", { order: tradeNo, money: moneyText(money, currency) })}
        </p>
        {hasReceipt(status) ? (
          <p className="mt-2">
            <a className="link" href={`/topup/receipt/${tradeNo}`}>
              {t("topup.receipt")}
            </a>
          </p>
        ) : null}
        {isLate ? (
          <button type="button" className="btn btn-sm btn-default mt-2" onClick={again}>
            {t("topup.return.again")}
          </button>
        ) : null}
      </Notice>
    </div>
  );
}
