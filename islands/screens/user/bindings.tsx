// By whom else an account may sign in, and the way to undo that for its owner.
// Refuses to undo without asking, and the viewer's own ones, which their account page undoes with proof; what the owner's rank forbids,
// the server says.
import { useEffect, useState } from "react";
import { ApiFailure, failureMessage, fetchChecked } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { UserRow } from "../../lib/wire.ts";
import { Moment, StatusDot } from "../../ui/badges.tsx";
import { confirm } from "../../ui/confirm.tsx";

interface Binding {
  provider: string;
  label: string;
  enabled: boolean;
  account: { label: string; created_at: number; last_used_at: number } | null;
}

interface Answer {
  success: boolean;
  message?: string;
  code?: string;
  data?: Binding[];
}

/** Refusals answer 200 as well. */
async function ask(path: string, method = "GET"): Promise<Binding[]> {
  const body = (await (await fetchChecked(path, { method })).json()) as Answer;
  if (!body.success) throw new ApiFailure(body.code ?? "bad_answer", 200, body.message ?? "");
  return (body.data ?? []).filter(({ account }) => account !== null);
}

export function UserBindings({ row, isReadOnly }: { row: UserRow; isReadOnly: boolean }) {
  const t = useT();
  const [bindings, setBindings] = useState<readonly Binding[]>();
  const [failure, setFailure] = useState<string>();
  const mayUndo = !isReadOnly && user.peek()?.id !== row.id;
  const path = `/api/user/${row.id}/oauth/bindings`;
  const load = () => ask(path).then(setBindings, (error: unknown) => setFailure(failureMessage(error)));
  useEffect(() => void load(), [path]);

  const undo = async ({ provider, label }: Binding) => {
    const isSure = await confirm({
      title: t("user.unbind.title", { provider: label, name: row.username }),
      text: t("user.unbind.text"),
      action: t("user.unbind.action"),
      isDanger: true,
    });
    if (!isSure) return;
    try {
      await ask(`${path}/${encodeURIComponent(provider)}`, "DELETE");
      toast({ text: t("user.unbind.done", { provider: label }) });
    } catch (error) {
      toastFailure(error);
    }
    await load();
  };

  if (failure !== undefined) return <p className="text-error">{failure}</p>;
  if (bindings === undefined) return <p className="text-muted">{t("common.loading")}</p>;
  if (bindings.length === 0) return <p className="text-muted">{t("user.noBindings")}</p>;
  return (
    <ul className="flex flex-col gap-2 text-[13px]">
      {bindings.map((binding) => (
        <li key={binding.provider} className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <span className="min-w-0 grow wrap-anywhere">
            <span className="font-medium">{binding.label}</span>{" "}
            <span className="text-muted">{binding.account?.label}</span>
          </span>
          {binding.enabled ? null : <StatusDot tone="off">{t("user.providerOff")}</StatusDot>}
          <span className="text-muted">
            {binding.account && binding.account.last_used_at > 0 ? (
              <Moment at={binding.account.last_used_at} />
            ) : (
              t("user.key.neverUsed")
            )}
          </span>
          {mayUndo ? (
            <button
              type="button"
              className="btn btn-ghost btn-xs text-error"
              aria-label={t("user.unbind.title", { provider: binding.label, name: row.username })}
              onClick={() => void undo(binding)}
            >
              {t("user.unbind.action")}
            </button>
          ) : null}
        </li>
      ))}
    </ul>
  );
}
