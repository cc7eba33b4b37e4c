// The invitation card: the link to hand out, what it brought, and moving the reward into the balance.
// Refuses transfers below one unit and above the reward before the server has to.
import { useId, useState } from "react";
import { DEFAULT_QUOTA_PER_UNIT } from "../../src/shared/money.ts";
import { api, call } from "../lib/api.ts";
import { status } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import { formatQuota } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { useSite } from "../lib/site.ts";
import { CopyButton } from "./copy-button.tsx";
import { toast, toastFailure } from "../lib/toasts.ts";
import { MoneyField } from "./money-field.tsx";
import { PhoneFold } from "./phone-fold.tsx";
import { Count, Money } from "./badges.tsx";

export interface Invitation {
  code: string;
  /** People who came. */
  count: number;
  /** Reward that is not moved yet, and all of it ever. */
  quota: number;
  history: number;
}

interface TransferValues extends Record<string, unknown> {
  quota: number | undefined;
}

export function InvitationCard({
  invitation,
  isFolded = false,
  onMoved,
}: {
  invitation: Invitation;
  /** One line on phones until it is opened. */
  isFolded?: boolean;
  onMoved: (quota: number) => void;
}) {
  const t = useT();
  const id = useId();
  const site = status.peek();
  const minimum = site.quota_per_unit || DEFAULT_QUOTA_PER_UNIT;
  const [left, setLeft] = useState(invitation.quota);
  const link = `${useSite()}/register?aff=${invitation.code}`;
  // Nobody can come by a link while registration is closed; what was earned can still be moved.
  const isOpen = site.register_enabled !== false;
  if (!isOpen && left === 0) return null;

  return (
    <section
      className="rounded-box border border-base-300 bg-base-100 px-5 py-4 max-sm:py-0"
      id="invitation"
      aria-labelledby={`${id}-title`}
    >
      <PhoneFold id={`${id}-title`} title={t("topup.invitation")} startsOpen={!isFolded}>
        {isOpen ? (
          <>
            <p className="mt-1 text-sm text-muted">{t("topup.invitationNote")}</p>
            <p className="mt-2 flex min-w-0 items-center gap-2">
              {/* One line: the address is known only when the page has come alive, and nothing may move then. */}
              <code className="mono w-0 flex-1 truncate" title={link}>
                {link}
              </code>
              <CopyButton text={link} label={t("topup.copyLink")} />
            </p>
          </>
        ) : null}
        <dl className="facts mt-3">
          <div>
            <dt>{t("topup.invited")}</dt>
            <dd>
              <Count value={invitation.count} />
            </dd>
          </div>
          <div>
            <dt>{t("topup.reward")}</dt>
            <dd>
              <Money quota={left} />
            </dd>
          </div>
          <div>
            <dt>{t("topup.rewardEver")}</dt>
            <dd>
              <Money quota={invitation.history} />
            </dd>
          </div>
        </dl>
        {left >= minimum ? (
          <TransferForm
            key={left}
            left={left}
            minimum={minimum}
            onMoved={(quota) => {
              setLeft(left - quota);
              onMoved(quota);
            }}
          />
        ) : (
          <p className="mt-3 text-sm text-muted">
            {t("topup.transferFrom", { minimum: formatQuota(minimum) })}
          </p>
        )}
      </PhoneFold>
    </section>
  );
}

function TransferForm({
  left,
  minimum,
  onMoved,
}: {
  left: number;
  minimum: number;
  onMoved: (quota: number) => void;
}) {
  const t = useT();
  const form = useForm<TransferValues>({
    initial: { quota: left },
    validate: ({ quota }) =>
      quota === undefined || !(quota >= minimum)
        ? { quota: t("topup.transferLow", { minimum: formatQuota(minimum) }) }
        : quota > left
          ? { quota: t("topup.transferShort") }
          : {},
  });
  const move = async () => {
    try {
      await form.submit(async ({ quota = 0 }) => {
        await call(api.user.aff_transfer.post({ quota }));
        toast({ text: t("topup.transferred", { amount: formatQuota(quota) }) });
        onMoved(quota);
      });
    } catch (error) {
      toastFailure(error, "transfer");
    }
  };
  return (
    <form
      ref={form.element}
      className="mt-3"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void move();
      }}
    >
      <MoneyField
        form={{ ...form, isChanged: () => false }}
        name="quota"
        label={t("topup.transferAmount")}
        presets={left === minimum ? [] : [minimum, left]}
        presetsLabel={t("topup.transferPresets")}
      />
      <button type="submit" className="btn btn-default" disabled={form.isBusy} aria-busy={form.isBusy}>
        {t("topup.transfer")}
      </button>
    </form>
  );
}
