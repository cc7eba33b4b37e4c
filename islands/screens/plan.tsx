// Plans that the site sells, as administrators see them: cards with how many were sold; root has a drawer to make and change one.
// Refuses to hide what a change does not reach, what was bought keeps its terms; and to offer changes to anybody but root.
import { useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { useShortcut } from "../lib/keys.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { useTableQuery } from "../lib/table-query.ts";
import { toast, toastFailure } from "../lib/toasts.ts";
import { setQuery } from "../lib/url-state.ts";
import type { Plan } from "../lib/wire.ts";
import { StatusDot } from "../ui/badges.tsx";
import { confirm } from "../ui/confirm.tsx";
import { Empty } from "../ui/feedback.tsx";
import { NewButton } from "../ui/list-screen.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { PlanCard } from "../ui/plan-card.tsx";

const PlanDrawer = lazyPart(() => import("./plan/drawer.tsx"));

export interface PlanPageData {
  plans: Plan[];
  groups: string[];
  /** Currencies of the rails that are open: what a new plan's price is proposed in. */
  currencies: string[];
  /** Prices are root's to change. */
  mayChange: boolean;
}

export default function PlanScreen() {
  const t = useT();
  const data = bootData<PlanPageData>();
  const { query } = useTableQuery(1);
  const [plans, setPlans] = useState(data.plans);
  const { mayChange } = data;
  useShortcut(mayChange ? { keys: "c", label: "plans.new", run: () => setQuery({ new: 1 }) } : undefined);
  const close = () => setQuery({ new: undefined, edit: undefined });
  const open = plans.find(({ id }) => String(id) === query.edit);
  const reread = async () => setPlans(await call(api.plan.get()));

  const change = async (run: () => Promise<unknown>, said: string) => {
    try {
      await run();
      toast({ text: said });
    } catch (error) {
      toastFailure(error, "plan");
    }
    await reread().catch(toastFailure);
  };
  const remove = async (plan: Plan) => {
    const isSure = await confirm({
      title: t("plans.deleteConfirm", { title: plan.title }),
      text: plan.running > 0 ? t("plans.deleteRunning", { count: plan.running }) : t("plans.deleteText"),
      action: t("common.delete"),
      isDanger: true,
    });
    if (isSure) await change(() => call(api.plan({ id: plan.id }).delete()), t("common.deleted"));
  };
  const toggle = (plan: Plan) =>
    change(
      () => call(api.plan({ id: plan.id }).put({ enabled: !plan.enabled })),
      t(plan.enabled ? "plans.nowOff" : "plans.nowOn", { title: plan.title }),
    );

  return (
    <>
      <PageHeader
        title={t("plans.title")}
        note={t("plans.purpose")}
        action={mayChange ? <NewButton label={t("plans.new")} /> : undefined}
      />
      {plans.length === 0 ? (
        <Empty
          title={t("plans.empty")}
          text={t(mayChange ? "plans.emptyText" : "plans.emptyForAdmins")}
          action={mayChange ? <NewButton label={t("plans.new")} isSmall /> : undefined}
        />
      ) : (
        <ul className="grid gap-4 sm:grid-cols-2 xl:grid-cols-3">
          {plans.map((plan) => (
            <PlanCard
              key={plan.id}
              plan={plan}
              badge={
                <StatusDot tone={plan.enabled ? "ok" : "off"}>
                  {t(plan.enabled ? "plans.on" : "plans.off")}
                </StatusDot>
              }
            >
              <p className="w-full text-dense text-muted">
                {t("plans.sold", { count: plan.sold, running: plan.running })}
              </p>
              {mayChange ? (
                <>
                  <button
                    type="button"
                    className="btn btn-sm btn-default"
                    aria-label={t("plans.editNamed", { title: plan.title })}
                    onClick={() => setQuery({ edit: plan.id })}
                  >
                    {t("common.edit")}
                  </button>
                  <button
                    type="button"
                    className="btn btn-sm btn-default"
                    aria-label={t(plan.enabled ? "plans.switchOff" : "plans.switchOn", { title: plan.title })}
                    onClick={() => void toggle(plan)}
                  >
                    {t(plan.enabled ? "common.disable" : "common.enable")}
                  </button>
                  <button
                    type="button"
                    className="btn btn-sm btn-default"
                    aria-label={t("plans.deleteNamed", { title: plan.title })}
                    onClick={() => void remove(plan)}
                  >
                    {t("common.delete")}
                  </button>
                </>
              ) : null}
            </PlanCard>
          ))}
        </ul>
      )}
      {mayChange && (query.new === "1" || open) ? (
        <PlanDrawer
          key={open?.id ?? "new"}
          row={query.new === "1" ? undefined : open}
          groups={data.groups}
          currency={data.currencies[0] ?? "USD"}
          onClose={close}
          onSaved={() => {
            toast({ text: t("common.saved") });
            void reread().catch(toastFailure);
          }}
        />
      ) : null}
    </>
  );
}
