// One order: what was agreed, what happened to it in time, what the rail reported; for root, completing it by hand and refunds.
// Refuses both without a reason and the order's number typed; the server asks for a fresh proof besides.
import { useEffect, useState } from "react";
import { Role } from "../../../src/shared/enums.ts";
import { api, call, failureMessage } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { hasReceipt, isSum, moneyText } from "../../lib/order-words.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { patchUrl } from "../../lib/url-state.ts";
import type { AnyOrderRow, OrderEvent, OrderReport } from "../../lib/wire.ts";
import { Money, When } from "../../ui/badges.tsx";
import { confirm } from "../../ui/confirm.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { Section } from "../../ui/form.tsx";
import { OrderStatus } from "../../ui/order-status.tsx";
import { noteText } from "./row.ts";

interface Found {
  order: AnyOrderRow;
  events: readonly OrderEvent[];
  isFlagged: boolean;
}

interface OrderDrawerProps {
  tradeNo: string;
  onClose: () => void;
  onChanged: () => void;
}

async function load(tradeNo: string): Promise<Found | undefined> {
  const { items, events } = await call(api.user.topup.get({ query: { trade_no: tradeNo } }));
  const [order] = items;
  if (!order) return undefined;
  // An account that is gone has no flag to lift.
  const buyer = await call(api.user({ id: String(order.user_id) }).get()).catch(() => undefined);
  return { order, events, isFlagged: buyer?.flagged === true };
}

export default function OrderDrawer({ tradeNo, onClose, onChanged }: OrderDrawerProps) {
  const t = useT();
  const [found, setFound] = useState<Found>();
  const [failure, setFailure] = useState("");
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isGone = false;
    load(tradeNo).then(
      (next) => {
        if (isGone) return;
        setFound(next);
        setFailure(next ? "" : t("order.missing"));
      },
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
  }, [tradeNo, round]);
  const again = () => {
    setRound((count) => count + 1);
    onChanged();
  };
  return (
    <Drawer
      isOpen
      title={t("order.title")}
      aside={found ? <OrderStatus t={t} row={found.order} /> : undefined}
      onClose={onClose}
    >
      {failure === "" ? null : <Notice tone="error">{failure}</Notice>}
      {found === undefined && failure === "" ? <div className="skeleton h-40" aria-hidden /> : null}
      {found ? <OrderParts found={found} again={again} /> : null}
    </Drawer>
  );
}

function OrderParts({ found, again }: { found: Found; again: () => void }) {
  const t = useT();
  const { order, events, isFlagged } = found;
  const isRoot = (user.peek()?.role ?? 0) >= Role.root;
  return (
    <>
      {isFlagged ? <Flag t={t} order={order} again={again} mayLift={isRoot} /> : null}
      <OrderFacts t={t} order={order} />
      <Section title={t("order.history")}>
        <History t={t} order={order} events={events} />
      </Section>
      {isRoot ? (
        <>
          <Section title={t("order.reports")} isFolded>
            <Reports tradeNo={order.trade_no} count={events.length} />
          </Section>
          <ByHand order={order} again={again} />
        </>
      ) : (
        <p className="mt-4 text-muted">{t("order.rootActs")}</p>
      )}
    </>
  );
}

/** The account's keys are refused; who looked into the dispute lifts that. */
function Flag({
  t,
  order,
  again,
  mayLift,
}: {
  t: Translate;
  order: AnyOrderRow;
  again: () => void;
  mayLift: boolean;
}) {
  const lift = async () => {
    const isSure = await confirm({
      title: t("order.lift.title", { name: order.username }),
      text: t("order.lift.text"),
      action: t("order.lift.action"),
    });
    if (!isSure) return;
    try {
      await call(api.user({ id: String(order.user_id) }).notes.put({ flagged: false }));
      toast({ text: t("order.lift.done") });
    } catch (error) {
      toastFailure(error);
    }
    again();
  };
  return (
    <Notice tone="warning">
      <p>{t("order.flagged", { name: order.username })}</p>
      {mayLift ? (
        <button type="button" className="btn btn-sm btn-default mt-2" onClick={() => void lift()}>
          {t("order.lift.action")}
        </button>
      ) : null}
    </Notice>
  );
}

function OrderFacts({ t, order }: { t: Translate; order: AnyOrderRow }) {
  const facts: [string, React.ReactNode][] = [
    [
      t("topup.number"),
      <span className="inline-flex items-center gap-1 mono break-all">
        {order.trade_no}
        <CopyButton text={order.trade_no} label={t("topup.copyNumber")} />
      </span>,
    ],
    [
      t("order.user"),
      <a className="link" href={patchUrl("/user", { keyword: order.user_id, edit: order.user_id })}>
        {order.username || `#${order.user_id}`}
      </a>,
    ],
    [t("order.railMethod"), `${order.rail} · ${order.method_name}`],
    [t("topup.paid"), moneyText(order.money, order.currency)],
    [t("topup.credit"), order.plan === "" ? <Money quota={order.quota} /> : order.plan],
  ];
  if (order.paid !== "" && order.paid !== order.money)
    facts.push([t("order.reported"), moneyText(order.paid, order.currency)]);
  if (isSum(order.refunded)) facts.push([t("order.refunded"), moneyText(order.refunded, order.currency)]);
  if (isSum(order.disputed)) facts.push([t("order.disputed"), moneyText(order.disputed, order.currency)]);
  if (order.debited_quota > 0) facts.push([t("order.debited"), <Money quota={order.debited_quota} />]);
  if (order.provider_ref !== "")
    facts.push([t("order.reference"), <span className="mono break-all">{order.provider_ref}</span>]);
  if (order.note !== "") facts.push([t("order.note"), noteText(t, order.note)]);
  return (
    <>
      <dl className="facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
      </dl>
      {hasReceipt(order.status) ? (
        <p className="mt-3">
          <a className="link" href={`/topup/receipt/${order.trade_no}`}>
            {t("topup.receipt")}
          </a>
        </p>
      ) : null}
    </>
  );
}

/** Made, reported, credited: in time, the oldest first. */
function History({ t, order, events }: { t: Translate; order: AnyOrderRow; events: readonly OrderEvent[] }) {
  const steps = [
    { at: order.create_time, text: t("order.made") },
    ...events.map(({ at, verdict }) => ({
      at,
      text: t("order.reportedAs", { verdict: noteText(t, verdict) }),
    })),
    ...(order.complete_time > 0
      ? [
          {
            at: order.complete_time,
            text:
              order.actor_id > 0
                ? t("order.creditedBy", { name: order.actor_name || `#${order.actor_id}` })
                : t("order.credited"),
          },
        ]
      : []),
  ].toSorted((a, b) => a.at - b.at);
  return (
    <ol className="border-l-2 border-base-300 pl-3">
      {steps.map(({ at, text }, index) => (
        <li key={index} className="flex flex-wrap gap-x-3 py-1">
          <span className="text-muted">
            <When at={at} isAbsolute />
          </span>
          <span>{text}</span>
        </li>
      ))}
    </ol>
  );
}

/** What the rail sent, as it was kept: without signatures and keys. */
function Reports({ tradeNo, count }: { tradeNo: string; count: number }) {
  const t = useT();
  const [reports, setReports] = useState<readonly OrderReport[]>();
  const [failure, setFailure] = useState("");
  useEffect(() => {
    let isGone = false;
    call(api.user.topup({ trade_no: tradeNo }).events.get()).then(
      (next) => isGone || setReports(next),
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
  }, [tradeNo, count]);
  if (failure !== "") return <p className="text-error">{failure}</p>;
  if (reports?.length === 0) return <p className="text-muted">{t("order.noReports")}</p>;
  return (
    <ul className="flex flex-col gap-3">
      {(reports ?? []).map(({ event_id: id, at, verdict, payload }) => (
        <li key={id}>
          <p className="flex flex-wrap gap-x-3">
            <When at={at} isAbsolute />
            <strong>{noteText(t, verdict)}</strong>
            <span className="mono break-all text-muted">{id}</span>
          </p>
          <pre
            className="mono mt-1 max-h-64 overflow-auto rounded-field bg-base-200 p-2 text-xs"
            tabIndex={0}
            role="region"
            aria-label={t("order.report")}
          >
            {JSON.stringify(payload, undefined, 2)}
          </pre>
        </li>
      ))}
    </ul>
  );
}

const BY_HAND: readonly string[] = ["created", "pending", "expired", "failed", "review"];

function ByHand({ order, again }: { order: AnyOrderRow; again: () => void }) {
  const t = useT();
  const [reason, setReason] = useState("");
  const [isProRata, setProRata] = useState(false);
  const [problem, setProblem] = useState("");
  const canComplete = BY_HAND.includes(order.status);
  const canProRate = order.status === "review" && order.paid !== "" && order.paid !== order.money;
  if (!canComplete && !order.can_refund) return null;

  const act = async (kind: "complete" | "refund") => {
    if (reason.trim() === "") {
      setProblem(t("order.reasonMissing"));
      return;
    }
    const money = moneyText(order.money, order.currency);
    const isSure = await confirm({
      title: t(`order.${kind}.title`),
      text: t(`order.${kind}.text`, { money, amount: formatQuota(order.quota), name: order.username }),
      action: t(`order.${kind}.action`),
      isDanger: kind === "refund",
      typed: order.trade_no,
    });
    if (!isSure) return;
    const body = { trade_no: order.trade_no, reason: reason.trim() };
    try {
      if (kind === "refund") await call(api.user.topup.refund.post(body));
      else
        await call(
          api.user.topup.complete.post(isProRata && canProRate ? { ...body, pro_rata: true } : body),
        );
      toast({ text: t(`order.${kind}.done`) });
      setReason("");
    } catch (error) {
      toastFailure(error);
    }
    again();
  };

  return (
    <Section title={t("order.byHand")}>
      <label className="block">
        <span className="text-dense font-semibold">{t("order.reason")}</span>
        <input
          className="input mt-1 w-full"
          autoComplete="off"
          maxLength={255}
          value={reason}
          aria-invalid={problem !== "" || undefined}
          aria-describedby="order-reason-hint"
          onChange={(event) => {
            setReason(event.target.value);
            setProblem("");
          }}
        />
      </label>
      <p
        id="order-reason-hint"
        className={`mt-1 text-xs ${problem === "" ? "text-muted" : "text-error"}`}
        role={problem === "" ? undefined : "alert"}
      >
        {problem === "" ? t("order.reasonHint") : problem}
      </p>
      {canProRate ? (
        <label className="mt-2 flex min-h-9 items-center gap-2">
          <input
            type="checkbox"
            className="checkbox checkbox-sm"
            checked={isProRata}
            onChange={(event) => setProRata(event.target.checked)}
          />
          {t("order.proRata", { money: moneyText(order.paid, order.currency) })}
        </label>
      ) : null}
      <div className="mt-3 flex flex-wrap gap-2">
        {canComplete ? (
          <button type="button" className="btn btn-default" onClick={() => void act("complete")}>
            {t("order.complete.action")}
          </button>
        ) : null}
        {order.can_refund ? (
          <button type="button" className="btn btn-default text-error" onClick={() => void act("refund")}>
            {t("order.refund.action")}
          </button>
        ) : null}
      </div>
    </Section>
  );
}
