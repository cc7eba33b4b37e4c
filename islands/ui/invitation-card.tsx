// The invitation card: the link to hand out, what it brought, and moving the reward into the balance.
// Refuses transfers below one unit and above the reward before the server has to.
import { useId, useState } from "react";
import { api, call } from "../lib/api.ts";
import { status } from "../lib/boot.ts";
import { formatNumber, formatQuota } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { CopyButton } from "./copy-button.tsx";
import { toast, toastFailure } from "./feedback.tsx";

export interface Invitation {
  code: string;
  /** People who came. */
  count: number;
  /** Reward that is not moved yet, and all of it ever. */
  quota: number;
  history: number;
}

export function InvitationCard({
  invitation,
  onMoved,
}: {
  invitation: Invitation;
  onMoved: (quota: number) => void;
}) {
  const t = useT();
  const id = useId();
  const site = status.peek();
  const minimum = site.quota_per_unit || 500_000;
  const [left, setLeft] = useState(invitation.quota);
  const [dollars, setDollars] = useState("");
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const link = `${(site.server_address || "").replace(/\/+$/, "")}/register?aff=${invitation.code}`;

  const move = async () => {
    const quota = dollars.trim() === "" ? left : Math.round(Number(dollars) * minimum);
    if (!Number.isFinite(quota) || quota < minimum)
      return setProblem(t("topup.transferLow", { minimum: formatQuota(minimum) }));
    if (quota > left) return setProblem(t("topup.transferShort"));
    setProblem("");
    setBusy(true);
    try {
      await call(api.user.aff_transfer.post({ quota }));
      setLeft(left - quota);
      setDollars("");
      onMoved(quota);
      toast({ text: t("topup.transferred", { amount: formatQuota(quota) }) });
    } catch (error) {
      toastFailure(error);
    } finally {
      setBusy(false);
    }
  };

  return (
    <section className="panel" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`} className="font-semibold">
        {t("topup.invitation")}
      </h2>
      <p className="flex items-center gap-2 mt-2 min-w-0">
        <code className="mono break-all">{link}</code>
        <CopyButton text={link} label={t("topup.copyLink")} />
      </p>
      <dl className="facts mt-3">
        <div>
          <dt>{t("topup.invited")}</dt>
          <dd>{formatNumber(invitation.count)}</dd>
        </div>
        <div>
          <dt>{t("topup.reward")}</dt>
          <dd>{formatQuota(left)}</dd>
        </div>
        <div>
          <dt>{t("topup.rewardEver")}</dt>
          <dd>{formatQuota(invitation.history)}</dd>
        </div>
      </dl>
      {left >= minimum ? (
        <form
          className="flex flex-wrap items-end gap-2 mt-3"
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void move();
          }}
        >
          <div>
            <label className="field-label" htmlFor={id}>
              {t("topup.transferAmount")}
            </label>
            <input
              id={id}
              className="input"
              inputMode="decimal"
              value={dollars}
              placeholder={(left / minimum).toFixed(2)}
              aria-invalid={problem !== ""}
              aria-describedby={problem === "" ? undefined : `${id}-problem`}
              onChange={(event) => setDollars(event.target.value)}
            />
          </div>
          <button type="submit" className="btn btn-default" disabled={isBusy}>
            {t("topup.transfer")}
          </button>
          {problem === "" ? null : (
            <p id={`${id}-problem`} className="text-error text-sm basis-full" role="alert">
              {problem}
            </p>
          )}
        </form>
      ) : (
        <p className="text-muted text-sm mt-3">
          {t("topup.transferFrom", { minimum: formatQuota(minimum) })}
        </p>
      )}
    </section>
  );
}
