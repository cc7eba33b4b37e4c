// A user's plans in administration: what runs and what there was, one to give, one to end, and the wallet's price back.
// Refuses each of them without a reason.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { formatQuota } from "../../lib/format.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { Plan, UserPlan, UserPlans, UserRow } from "../../lib/wire.ts";
import { confirm } from "../../ui/confirm.tsx";
import { DrawerForm } from "../../ui/drawer.tsx";
import { FailureNotice } from "../../ui/feedback.tsx";
import { SelectField, TextField } from "../../ui/form.tsx";
import { isUnfinished, PlanRuns } from "../../ui/plan-runs.tsx";

const MAX_REASON = 200;

interface GiveValues extends Record<string, unknown> {
  plan: number;
  reason: string;
}

/** The plans of the user and all that may be given, read when the drawer opens and after each change. */
function useUserPlans(userId: number) {
  const [found, setFound] = useState<{ plans: UserPlans; offers: Plan[] }>();
  const [failure, setFailure] = useState<string>();
  const read = async () => {
    try {
      const [plans, offers] = await Promise.all([
        call(api.plan.user({ id: userId }).get()),
        call(api.plan.get()),
      ]);
      setFound({ plans, offers });
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  };
  useEffect(() => void read(), [userId]);
  return { found, failure, read };
}

export default function UserPlansDrawer({
  row,
  onClose,
  onSaved,
}: {
  row: UserRow;
  onClose: () => void;
  onSaved: () => void;
}) {
  const t = useT();
  const { found, failure, read } = useUserPlans(row.id);
  const form = useForm<GiveValues>({
    initial: { plan: 0, reason: "" },
    validate: ({ plan, reason }) => ({
      ...(reason.trim() === "" ? { reason: t("plans.noReason") } : {}),
      ...(plan === 0 ? { plan: t("plans.choose") } : {}),
    }),
  });

  const end = async (plan: UserPlan, refund: boolean) => {
    const reason = form.values.reason.trim();
    if (reason === "") {
      form.fail("reason", t("plans.noReason"));
      return;
    }
    const left = plan.period ? plan.period.quota - plan.period.used : 0;
    const isSure = await confirm({
      title: t(refund ? "plans.refundConfirm" : "plans.cancelConfirm", { title: plan.title }),
      text: refund
        ? t("plans.refundText", { price: formatQuota(plan.paid_quota), used: formatQuota(plan.used_total) })
        : t(plan.period ? "plans.cancelText" : "plans.cancelWaitingText", { amount: formatQuota(left) }),
      action: t(refund ? "plans.refundAction" : "plans.cancelAction"),
      isDanger: true,
    });
    if (!isSure) return;
    try {
      await call(api.plan.user({ id: row.id }).cancel.post({ user_plan_id: plan.id, reason, refund }));
      toast({ text: t("plans.cancelled", { title: plan.title }) });
      onSaved();
    } catch (error) {
      toastFailure(error, "plan");
    }
    await read();
  };

  const offers = found?.offers ?? [];
  return (
    <DrawerForm
      form={form}
      isOpen
      isNew
      title={t("plans.ofUser", { name: row.username })}
      saveLabel={t("plans.give")}
      onClose={onClose}
      onSave={async ({ plan, reason }) => {
        await call(api.plan.user({ id: row.id }).post({ plan_id: plan, reason: reason.trim() }));
        const given = offers.find(({ id }) => id === plan);
        toast({ text: t("plans.given", { title: given?.title ?? "", name: row.username }) });
        onSaved();
      }}
    >
      {failure === undefined ? null : <FailureNotice text={failure} onRetry={read} />}
      {found && found.plans.items.length === 0 ? (
        <p className="mb-4 text-muted">{t("plans.hasNone")}</p>
      ) : null}
      {found && found.plans.left > 0 ? (
        <p className="mb-2 text-dense text-muted">
          {t("plans.ofBalance", { amount: formatQuota(found.plans.left) })}
        </p>
      ) : null}
      <div className="mb-6">
        <PlanRuns
          plans={found?.plans.items ?? []}
          actions={(plan) =>
            isUnfinished(plan) ? (
              <>
                <button
                  type="button"
                  className="btn btn-sm btn-default"
                  onClick={() => void end(plan, false)}
                >
                  {t("plans.cancelAction")}
                </button>
                {plan.source === "wallet" ? (
                  <button
                    type="button"
                    className="btn btn-sm btn-default"
                    onClick={() => void end(plan, true)}
                  >
                    {t("plans.refundAction")}
                  </button>
                ) : null}
              </>
            ) : null
          }
        />
      </div>
      <TextField
        form={form}
        name="reason"
        label={t("plans.reason")}
        hint={t("plans.reasonHint")}
        limit={MAX_REASON}
        isRequired
        input={{ autoComplete: "off" }}
      />
      <SelectField
        form={form}
        name="plan"
        label={t("plans.giveWhich")}
        choices={[
          { value: 0, label: t("plans.choose") },
          ...offers.map(({ id, title }) => ({ value: id, label: title })),
        ]}
      />
    </DrawerForm>
  );
}
