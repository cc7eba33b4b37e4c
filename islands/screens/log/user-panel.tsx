// Who is behind a row: balance, use and calls of one user, for administrators; ways on to the user's log and account.
// Refuses to guess: what the server does not show to this rank stands as its message.
import { useEffect, useState } from "react";
import { api, call, failureMessage, isAbort } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import { patchUrl } from "../../lib/url-state.ts";
import { Chip, Count, Money, StatusDot } from "../../ui/badges.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { Notice } from "../../ui/feedback.tsx";
import type { UserRow } from "../../lib/wire.ts";

const ROLES: Record<number, string> = {
  1: "common.role.user",
  10: "common.role.admin",
  100: "common.role.root",
};

export interface UserPanelProps {
  id: number;
  /** Name from the row, until the answer is there. */
  name: string;
  onClose: () => void;
  onLog: (username: string) => void;
}

export default function UserPanel({ id, name, onClose, onLog }: UserPanelProps) {
  const t = useT();
  const [facts, setFacts] = useState<UserRow>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    const controller = new AbortController();
    setFacts(undefined);
    setFailure(undefined);
    call(api.user({ id: String(id) }).get({ fetch: { signal: controller.signal } })).then(
      setFacts,
      (error: unknown) => {
        if (!isAbort(error) && !controller.signal.aborted) setFailure(failureMessage(error));
      },
    );
    return () => controller.abort();
  }, [id]);
  const username = facts?.username ?? name;
  const value = (content: React.ReactNode) =>
    facts ? (
      content
    ) : failure === undefined ? (
      <span className="skeleton inline-block h-3 w-20" aria-hidden />
    ) : (
      "–"
    );
  return (
    <Drawer isOpen width="peek" title={t("log.userPanel", { name: username })} onClose={onClose}>
      {failure === undefined ? null : <Notice tone="error">{failure}</Notice>}
      {facts || failure !== undefined ? null : (
        <span className="sr-only" role="status">
          {t("common.loading")}
        </span>
      )}
      <dl className="facts">
        <Fact label={t("log.panel.username")}>{username}</Fact>
        <Fact label="ID">{id}</Fact>
        <Fact label={t("log.panel.balance")}>{value(<Money quota={facts?.quota ?? 0} />)}</Fact>
        <Fact label={t("log.panel.used")}>{value(<Money quota={facts?.used_quota ?? 0} />)}</Fact>
        <Fact label={t("log.panel.calls")}>{value(<Count value={facts?.request_count ?? 0} />)}</Fact>
        <Fact label={t("log.group")}>{value(<Chip>{facts?.group}</Chip>)}</Fact>
        <Fact label={t("log.panel.role")}>{value(t(ROLES[facts?.role ?? 0] ?? "common.unknown"))}</Fact>
        <Fact label={t("log.panel.status")}>
          {value(
            facts?.status === 1 ? (
              <StatusDot tone="ok">{t("common.enabled")}</StatusDot>
            ) : (
              <StatusDot tone="off">{t("common.disabled")}</StatusDot>
            ),
          )}
        </Fact>
      </dl>
      <div className="mt-4 flex flex-wrap gap-2">
        <button
          type="button"
          className="btn btn-default"
          disabled={username === ""}
          onClick={() => onLog(username)}
        >
          {t("log.panel.log")}
        </button>
        {facts ? (
          <a
            className="btn btn-default"
            href={patchUrl("/user", { keyword: facts.username, edit: facts.id })}
          >
            {t("log.panel.account")}
          </a>
        ) : null}
      </div>
    </Drawer>
  );
}

function Fact({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
