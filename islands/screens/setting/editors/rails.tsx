// Which ways to pay are open by what is saved, what each still needs, and the addresses that their providers call.
// Refuses to guess whether one is open: the server says what it offers.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { status } from "../../../lib/boot.ts";
import { useT } from "../../../lib/i18n.ts";
import { StatusDot } from "../../../ui/badges.tsx";
import { CopyButton } from "../../../ui/copy-button.tsx";
import type { GroupExtraProps } from "../editor-props.ts";

interface Rail {
  name: string;
  title: string;
  /** Where its provider sends its reports. */
  path: string;
  /** Options without which anybody could forge a payment. */
  needs: readonly string[];
}

const RAILS: readonly Rail[] = [
  {
    name: "epay",
    title: "Epay",
    path: "/api/user/epay/notify",
    needs: ["PayAddress", "EpayId", "EpayKey"],
  },
  {
    name: "stripe",
    title: "Stripe",
    path: "/api/stripe/webhook",
    needs: ["StripeApiSecret", "StripeWebhookSecret"],
  },
];

export default function Rails({ rows }: GroupExtraProps) {
  const t = useT();
  const [open, setOpen] = useState<ReadonlySet<string>>();
  const [failure, setFailure] = useState("");
  const row = (key: string) => rows.get(key);
  const isSet = (key: string): boolean => row(key)?.isSet === true || (row(key)?.value ?? "") !== "";
  const saved = RAILS.map(({ needs }) => needs.map(isSet).join()).join();
  useEffect(() => {
    let isGone = false;
    call(api.user.topup.info.get()).then(
      ({ methods }) => isGone || setOpen(new Set(methods.map(({ rail }) => rail))),
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
  }, [saved]);
  const server = status.peek().server_address ?? "";
  const base = (row("CustomCallbackAddress")?.value || server).replace(/\/+$/, "");
  return (
    <div className="setting-line">
      <p className="font-medium">{t("editor.rails.title")}</p>
      <p className="setting-help">{t("editor.rails.help")}</p>
      {failure === "" ? null : (
        <p className="mt-1 text-xs text-error" role="alert">
          {failure}
        </p>
      )}
      <ul className="mt-2 flex flex-col gap-3" aria-busy={open === undefined && failure === ""}>
        {RAILS.map(({ name, title, path, needs }) => {
          const missing = [
            ...needs.filter((key) => !isSet(key)).map((key) => t(`option.title.${key}`)),
            ...(server === "" ? [t("option.title.ServerAddress")] : []),
          ];
          const isOpen = open?.has(name) === true;
          const reason =
            missing.length > 0
              ? t("editor.rails.missing", { names: missing.join(t("editor.rails.comma")) })
              : isOpen
                ? undefined
                : t("editor.rails.notSelling");
          return (
            <li key={name} className="rounded-field border border-base-300 px-3 py-2">
              <p className="flex flex-wrap items-baseline gap-x-3">
                <strong>{title}</strong>
                {open === undefined ? null : (
                  <StatusDot tone={isOpen ? "ok" : "off"} reason={isOpen ? undefined : reason}>
                    {t(isOpen ? "editor.rails.open" : "editor.rails.closed")}
                  </StatusDot>
                )}
              </p>
              {base === "" ? null : (
                <p className="mt-1 flex min-w-0 items-center gap-1 text-dense">
                  <span className="text-muted whitespace-nowrap">{t("editor.rails.callback")}</span>
                  <code className="mono min-w-0 break-all">{base + path}</code>
                  <CopyButton text={base + path} label={t("editor.rails.copy", { name: title })} />
                </p>
              )}
            </li>
          );
        })}
      </ul>
    </div>
  );
}
