// All ways to sign in by somebody else: which are on, what the others lack, and the address that each server has to know.
// Refuses to delete one without saying how many accounts are bound to it, and how many have nothing else.
import { Plus } from "lucide-react";
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { status } from "../../../lib/boot.ts";
import { useT } from "../../../lib/i18n.ts";
import { lazyPart } from "../../../lib/lazy-part.tsx";
import { toast, toastFailure } from "../../../lib/toasts.ts";
import { Chip, StatusDot } from "../../../ui/badges.tsx";
import { confirm } from "../../../ui/confirm.tsx";
import { CopyButton } from "../../../ui/copy-button.tsx";
import type { GroupExtraProps } from "../editor-props.ts";
import { providerLossText } from "../ways-in.ts";
import { builtInStates, customState } from "./sign-in-rows.ts";
import type { ProviderState } from "./sign-in-rows.ts";
import type { ProviderDrawerProps } from "./provider-drawer.tsx";
import type { CustomProvider } from "./provider-values.ts";

const ProviderDrawer = lazyPart<ProviderDrawerProps>(() => import("./provider-drawer.tsx"));

/** "new": the drawer of one that is not there yet. */
type Open = CustomProvider | "new" | undefined;

export default function Providers({ rows }: GroupExtraProps) {
  const t = useT();
  const [own, setOwn] = useState<readonly CustomProvider[]>();
  const [failure, setFailure] = useState<string>();
  const [open, setOpen] = useState<Open>();
  const load = () =>
    call(api["custom-oauth-provider"].get())
      .then(setOwn)
      .catch((error: unknown) => setFailure(failureMessage(error)));
  useEffect(() => void load(), []);

  const remove = async (row: CustomProvider) => {
    let loss: string;
    try {
      loss = await providerLossText(row.slug);
    } catch (error) {
      toastFailure(error);
      return;
    }
    const bound = t(row.identities === 0 ? "editor.providers.deleteNone" : "editor.providers.deleteText", {
      count: row.identities,
    });
    const isSure = await confirm({
      title: t("editor.providers.delete", { name: row.name }),
      text: [bound, loss].filter(Boolean).join(" "),
      action: t("editor.providers.deleteAction"),
      isDanger: true,
      ...(row.identities > 20 ? { typed: String(row.identities) } : {}),
    });
    if (!isSure) return;
    try {
      const gone = await call(api["custom-oauth-provider"]({ id: row.slug }).delete());
      toast({ text: t("editor.providers.deleted", { name: row.name, count: gone.identities }) });
    } catch (error) {
      toastFailure(error);
    }
    await load();
  };

  return (
    <div className="setting-line">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <p className="font-medium" id="providers-name">
          {t("editor.providers.title")}
        </p>
        <button type="button" className="btn btn-default btn-sm" onClick={() => setOpen("new")}>
          <Plus aria-hidden size={14} />
          {t("editor.providers.add")}
        </button>
      </div>
      <p className="setting-help">{t("editor.providers.help")}</p>
      <ul className="mt-2 divide-y divide-base-300" aria-labelledby="providers-name">
        {builtInStates(rows).map((state) => (
          <ProviderLine key={state.id} state={state} />
        ))}
        {own?.map((row) => (
          <ProviderLine
            key={row.slug}
            state={customState(row, rows, (field) => t(`editor.providers.field.${field}`))}
            bound={row.identities}
            onEdit={() => setOpen(row)}
            onDelete={() => void remove(row)}
          />
        ))}
      </ul>
      {failure === undefined ? null : (
        <p className="text-error" role="alert">
          {failure}
        </p>
      )}
      {open === undefined ? null : (
        <ProviderDrawer
          row={open === "new" ? undefined : open}
          onClose={() => setOpen(undefined)}
          onSaved={() => void load()}
        />
      )}
    </div>
  );
}

interface LineProps {
  state: ProviderState;
  /** Of a provider of the operator's own. */
  bound?: number;
  onEdit?: () => void;
  onDelete?: () => void;
}

function ProviderLine({ state, bound, onEdit, onDelete }: LineProps) {
  const t = useT();
  const { id, label, isOn, missing, isRedirecting, hasSecret, group } = state;
  const base = status.value.server_address?.replace(/\/+$/, "") ?? "";
  const lacks = missing.length === 0 ? undefined : t("editor.providers.lacks", { names: missing.join(", ") });
  const tone = isOn ? (lacks ? "broken" : "ok") : "off";
  return (
    <li className="flex flex-wrap items-start gap-x-4 gap-y-1 py-2">
      <div className="min-w-40 flex-1">
        <p className="flex flex-wrap items-center gap-2 font-medium">
          <span className="wrap-anywhere">{label}</span>
          {group === undefined ? <Chip>{t("editor.providers.own")}</Chip> : null}
        </p>
        {isRedirecting && base !== "" ? (
          <p className="flex items-center gap-1">
            <code className="mono text-xs text-muted wrap-anywhere">{`${base}/oauth/${id}`}</code>
            <CopyButton
              text={`${base}/oauth/${id}`}
              label={t("editor.providers.copyCallback", { name: label })}
            />
          </p>
        ) : null}
      </div>
      <div className="min-w-40 flex-1 text-[13px]">
        <StatusDot tone={tone} reason={lacks}>
          {t(isOn ? (lacks ? "editor.providers.incomplete" : "common.enabled") : "common.disabled")}
        </StatusDot>
        <p className="text-xs text-muted">
          {t(hasSecret ? "editor.providers.secretSet" : "editor.providers.secretMissing")}
          {bound === undefined ? "" : ` · ${t("editor.providers.bound", { count: bound })}`}
        </p>
      </div>
      <div className="flex gap-1">
        {group === undefined ? (
          <>
            <button
              type="button"
              className="btn btn-ghost btn-sm"
              aria-label={t("editor.providers.editNamed", { name: label })}
              onClick={onEdit}
            >
              {t("common.edit")}
            </button>
            <button
              type="button"
              className="btn btn-ghost btn-sm text-error"
              aria-label={t("editor.providers.deleteNamed", { name: label })}
              onClick={onDelete}
            >
              {t("common.delete")}
            </button>
          </>
        ) : (
          <a
            className="btn btn-ghost btn-sm"
            href={`#group-${group}`}
            aria-label={t("editor.providers.toOptions", { name: label })}
          >
            {t("editor.providers.options")}
          </a>
        )}
      </div>
    </li>
  );
}
