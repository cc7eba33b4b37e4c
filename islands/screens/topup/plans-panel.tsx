// Plans in the wallet: what is on sale and how it is paid, what runs and how much of it is left, what there was.
// Refuses to take money, or to end a plan, before it said what goes and what stays.
import { useEffect, useState } from "react";
import { api, call } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { leaveFor, postTo } from "../../lib/leave.ts";
import { moneyText } from "../../lib/order-words.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { OwnPlans, SoldPlan, UserPlan } from "../../lib/wire.ts";
import { confirm } from "../../ui/confirm.tsx";
import { PlanCard } from "../../ui/plan-card.tsx";
import { PlanRuns } from "../../ui/plan-runs.tsx";

interface PlansPanelProps {
  plans: OwnPlans;
  /** Grows when an order was seen to be paid: it may have begun a plan. */
  round: number;
  /** The balance has changed; its rows are to be read anew. */
  onChanged: () => void;
}

export function PlansPanel({ plans: first, round, onChanged }: PlansPanelProps) {
  const t = useT();
  const [plans, setPlans] = useState(first);
  const [busy, setBusy] = useState("");

  const reread = async () => {
    const next = await call(api.plan.self.get());
    setPlans(next);
    if (user.value) user.value = { ...user.value, quota: next.balance };
    onChanged();
  };

  useEffect(() => {
    // What is not read now stands there after the next visit.
    if (round > 0) void reread().catch(() => undefined);
  }, [round]);

  /** One act at a time; what it changed is read anew, also after a refusal. */
  const act = async (key: string, run: () => Promise<boolean>) => {
    if (busy !== "") return;
    setBusy(key);
    try {
      // Whoever is on the way to the provider has nothing to read any more.
      if (await run()) await reread();
    } catch (error) {
      toastFailure(error, "plan");
      await reread().catch(() => undefined);
    }
    setBusy("");
  };

  const fromWallet = async (plan: SoldPlan) => {
    const isSure = await confirm({
      title: t("plans.buyConfirm", { title: plan.title }),
      text: t("plans.buyWalletText", { amount: formatQuota(plan.wallet_price) }),
      action: t("plans.buyAction"),
    });
    if (isSure)
      await act(`${plan.id} wallet`, async () => {
        await call(api.plan({ id: plan.id }).buy.post({ method: "wallet" }));
        toast({ text: t("plans.bought", { title: plan.title }) });
        return true;
      });
  };

  const byRail = async (plan: SoldPlan, { rail, type, name }: SoldPlan["methods"][number]) => {
    const money = moneyText(plan.price, plan.currency);
    const isSure = await confirm({
      title: t("topup.payConfirm", { money, method: name }),
      text: t("plans.buyOrderText", { title: plan.title }),
      action: t("topup.payAction", { money }),
    });
    if (isSure)
      await act(`${plan.id} ${rail} ${type}`, async () => {
        const { url, fields } = await call(api.plan({ id: plan.id }).buy.post({ rail, method: type }));
        if (fields) postTo(url, fields);
        else leaveFor(url);
        return false;
      });
  };

  const cancel = async (plan: UserPlan) => {
    const left = plan.period ? plan.period.quota - plan.period.used : 0;
    const isSure = await confirm({
      title: t("plans.cancelConfirm", { title: plan.title }),
      text: t(plan.period ? "plans.cancelText" : "plans.cancelWaitingText", { amount: formatQuota(left) }),
      action: t("plans.cancelAction"),
      isDanger: true,
    });
    if (isSure)
      await act(`cancel ${plan.id}`, async () => {
        await call(api.plan.self({ id: plan.id }).cancel.post());
        toast({ text: t("plans.cancelled", { title: plan.title }) });
        return true;
      });
  };

  if (plans.items.length === 0 && plans.on_sale.length === 0) return null;
  return (
    <section className="mb-6" aria-labelledby="plans-title" data-testid="plans">
      <div className="mb-2 flex flex-wrap items-baseline gap-x-3">
        <h2 id="plans-title">{t("plans.title")}</h2>
        {plans.left > 0 ? (
          <p className="text-dense text-muted">{t("plans.ofBalance", { amount: formatQuota(plans.left) })}</p>
        ) : null}
      </div>
      <PlanRuns
        plans={plans.items}
        actions={(plan) => (
          <button
            type="button"
            className="btn btn-sm btn-default"
            aria-busy={busy === `cancel ${plan.id}`}
            onClick={() => void cancel(plan)}
          >
            {t("plans.cancelAction")}
          </button>
        )}
      />
      {plans.on_sale.length === 0 ? null : (
        <ul className="mt-4 grid gap-4 sm:grid-cols-2 xl:grid-cols-3" aria-label={t("plans.onSale")}>
          {plans.on_sale.map((plan) => (
            <PlanCard key={plan.id} plan={plan}>
              <Buttons {...{ plan, busy, fromWallet, byRail }} />
            </PlanCard>
          ))}
        </ul>
      )}
    </section>
  );
}

interface ButtonsProps {
  plan: SoldPlan;
  /** The act that is under way; "" for none. */
  busy: string;
  fromWallet: (plan: SoldPlan) => Promise<void>;
  byRail: (plan: SoldPlan, method: SoldPlan["methods"][number]) => Promise<void>;
}

/** A way to pay each; none where the account has bought it as often as it may. */
function Buttons({ plan, busy, fromWallet, byRail }: ButtonsProps) {
  const t = useT();
  if (!plan.is_open) return <p className="text-dense text-muted">{t("plans.boughtAll")}</p>;
  const named = (button: string) => t("plans.buyNamed", { title: plan.title, button });
  const by = (method: string) => t("plans.buyBy", { method });
  const fromBalance = t("plans.buyFromBalance");
  return (
    <>
      {plan.methods.map((method) => (
        <button
          key={`${method.rail} ${method.type}`}
          type="button"
          className="btn btn-sm btn-default"
          aria-busy={busy === `${plan.id} ${method.rail} ${method.type}`}
          aria-label={named(by(method.name))}
          onClick={() => void byRail(plan, method)}
        >
          {by(method.name)}
        </button>
      ))}
      {plan.wallet_price > 0 ? (
        <button
          type="button"
          className="btn btn-sm btn-default"
          aria-busy={busy === `${plan.id} wallet`}
          aria-label={named(fromBalance)}
          onClick={() => void fromWallet(plan)}
        >
          {fromBalance}
        </button>
      ) : null}
    </>
  );
}
