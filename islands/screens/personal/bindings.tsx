// Accounts elsewhere that sign in here: bound or not, with the way to either.
// Refuses to unbind without asking; whether that would lock somebody out, the server says.
import { useEffect, useState } from "react";
import { send } from "../../lib/api.ts";
import type { Binding } from "../../lib/account-security.ts";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import { startProvider } from "../../lib/sign-in.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { setQuery, useQuery } from "../../lib/url-state.ts";
import { Chip, When } from "../../ui/badges.tsx";
import { BusyButton } from "../../ui/busy-button.tsx";
import { confirm } from "../../ui/confirm.tsx";
import { ProviderIcon } from "../../ui/provider-buttons.tsx";
import { Card } from "./card.tsx";

const EmailDialog = lazyPart(() => import("./email-dialog.tsx"));
const WeChatDialog = lazyPart(() => import("../../ui/wechat-dialog.tsx"));

export interface BindingsProps {
  /** Empty: none yet. */
  email: string;
  initial: readonly Binding[];
  onEmail: (email: string) => void;
}

export function BindingsCard({ email, initial, onEmail }: BindingsProps) {
  const t = useT();
  const query = useQuery();
  const [rows, setRows] = useState(initial);
  const [busy, setBusy] = useState("");
  const [isWeChatOpen, setWeChatOpen] = useState(false);
  const [isEmailOpen, setEmailOpen] = useState(false);
  const refresh = async () => setRows(await send<Binding[]>("GET", "/api/user/oauth/bindings"));

  // The callback's page sends people here.
  const bound = query.bound;
  useEffect(() => {
    if (bound === undefined) return;
    const label = initial.find(({ provider }) => provider === bound)?.label ?? bound;
    toast({ text: t("personal.boundNow", { name: label }) });
    setQuery({ bound: undefined }, { replace: true });
  }, [bound]);

  const attempt = async (provider: string, run: () => Promise<void>) => {
    setBusy(provider);
    try {
      await run();
    } catch (error) {
      toastFailure(error, "binding");
    } finally {
      setBusy("");
    }
  };
  const bind = (row: Binding) =>
    row.kind === "wechat"
      ? setWeChatOpen(true)
      : void attempt(row.provider, () =>
          startProvider({ provider: row.provider, intent: "bind", next: "/personal" }),
        );
  const unbind = async (row: Binding) => {
    const yes = await confirm({
      title: t("personal.unbindAsk", { name: row.label }),
      text: t("personal.unbindText", { name: row.label }),
      action: t("personal.unbind"),
      isDanger: true,
    });
    if (!yes) return;
    await attempt(row.provider, async () => {
      await send("DELETE", `/api/user/oauth/bindings/${encodeURIComponent(row.provider)}`);
      await refresh();
      toast({ text: t("personal.unboundNow", { name: row.label }) });
    });
  };

  return (
    <Card id="bindings" title={t("personal.bindings")} note={t("personal.bindingsNote")}>
      <ul className="divide-y divide-base-300">
        <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
          <span className="min-w-32">{t("personal.binding.email")}</span>
          <span className="min-w-0 flex-1">
            {email === "" ? (
              <span className="text-muted">{t("personal.unbound")}</span>
            ) : (
              <span className="wrap-anywhere">{email}</span>
            )}
          </span>
          <button type="button" className="btn btn-default btn-sm" onClick={() => setEmailOpen(true)}>
            {t(email === "" ? "personal.bind" : "personal.emailSave")}
            <span className="sr-only">{t("personal.binding.email")}</span>
          </button>
        </li>
        {rows.map((row) => (
          <BindingRow
            key={row.provider}
            row={row}
            isBusy={busy === row.provider}
            onBind={() => bind(row)}
            onUnbind={() => void unbind(row)}
          />
        ))}
      </ul>
      {isEmailOpen ? (
        <EmailDialog
          before={email}
          onClose={() => setEmailOpen(false)}
          onDone={(next) => {
            setEmailOpen(false);
            onEmail(next);
          }}
        />
      ) : null}
      {isWeChatOpen ? (
        <WeChatDialog
          intent="bind"
          onClose={() => setWeChatOpen(false)}
          onDone={() => {
            setWeChatOpen(false);
            void attempt("wechat", refresh);
            toast({ text: t("personal.boundNow", { name: t("personal.binding.wechat_id") }) });
          }}
        />
      ) : null}
    </Card>
  );
}

interface BindingRowProps {
  row: Binding;
  isBusy: boolean;
  onBind: () => void;
  onUnbind: () => void;
}

function BindingRow({ row: { label, icon, account, enabled }, isBusy, onBind, onUnbind }: BindingRowProps) {
  const t = useT();
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
      <span className="flex min-w-32 items-center gap-2">
        <ProviderIcon icon={icon} label={label} />
        <span className="break-words">{label}</span>
      </span>
      <span className="min-w-0 flex-1 text-sm">
        {account === null ? (
          <span className="text-muted">{t("personal.unbound")}</span>
        ) : (
          <>
            <Chip>{account.label || t("personal.boundChip")}</Chip>
            <span className="ml-2 text-xs text-muted">
              {enabled ? (
                <>
                  {t("personal.passkeyUsed")}{" "}
                  <When at={account.last_used_at} never={t("personal.passkeyUnused")} />
                </>
              ) : (
                t("personal.notEnabled")
              )}
            </span>
          </>
        )}
      </span>
      {account !== null ? (
        <BusyButton isBusy={isBusy} className="btn-ghost btn-sm text-error" onPress={onUnbind}>
          {t("personal.unbind")}
          <span className="sr-only">{label}</span>
        </BusyButton>
      ) : enabled ? (
        <BusyButton isBusy={isBusy} className="btn-default btn-sm" onPress={onBind}>
          {t("personal.bind")}
          <span className="sr-only">{label}</span>
        </BusyButton>
      ) : null}
    </li>
  );
}
