// Where the account is signed in: this device first, each other one with its way out, and all of them at once.
// Refuses to sign out this device here: that is what signing out is for.
import { useRef, useState } from "react";
import { MonitorSmartphone } from "lucide-react";
import { api, call } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { When } from "../../ui/badges.tsx";
import { confirm } from "../../ui/confirm.tsx";
import { Card } from "./card.tsx";

export interface Device {
  id: string;
  current: boolean;
  device: string;
  ip: string;
  method: string;
  provider: string;
  created_at: number;
  last_seen_at: number;
}

/** `initial`: as the page brought them. */
export function DevicesCard({ initial }: { initial: readonly Device[] }) {
  const t = useT();
  const [devices, setDevices] = useState(initial);
  const [isBusy, setBusy] = useState(false);
  const list = useRef<HTMLUListElement>(null);
  const load = async () => {
    try {
      setDevices((await call(api.user.sessions.get())) as Device[]);
    } catch (error) {
      toastFailure(error, "devices");
    }
  };
  const act = async (run: () => Promise<unknown>, text: string) => {
    setBusy(true);
    try {
      await run();
      toast({ text });
    } catch (error) {
      toastFailure(error, "devices");
    } finally {
      setBusy(false);
    }
    await load();
    // What was pressed is gone with its device.
    if (document.activeElement === document.body) list.current?.focus();
  };
  const nameOf = ({ device }: Device) => device || t("personal.deviceUnknown");
  const signOut = (row: Device) =>
    act(
      () => call(api.user.sessions({ id: row.id }).delete()),
      t("personal.deviceOut", { name: nameOf(row) }),
    );
  const signOutOthers = async () => {
    const yes = await confirm({
      title: t("personal.devicesAsk"),
      text: t("personal.devicesConsequence"),
      action: t("personal.devicesOut"),
      isDanger: true,
    });
    if (yes) await act(() => call(api.user.sessions["revoke-others"].post()), t("personal.devicesDone"));
  };
  const others = devices.filter(({ current }) => !current);
  return (
    <Card id="devices" title={t("personal.devices")} note={t("personal.devicesNote")}>
      <ul className="divide-y divide-base-300" ref={list} tabIndex={-1}>
        {devices.map((row) => (
          <li key={row.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
            <div className="min-w-0 grow">
              <p className="break-words">
                {nameOf(row)}
                {row.current ? (
                  <span className="ml-2 text-sm font-semibold text-success">{t("personal.deviceThis")}</span>
                ) : null}
              </p>
              <p className="text-sm text-muted">
                <span className="mono break-all">{row.ip}</span>
                {" · "}
                {t("personal.deviceSeen")} <When at={row.last_seen_at} />
              </p>
            </div>
            {row.current ? null : (
              <button
                type="button"
                className="btn btn-sm btn-default"
                disabled={isBusy}
                aria-label={t("personal.deviceSignOutOf", { name: nameOf(row) })}
                onClick={() => void signOut(row)}
              >
                {t("personal.deviceSignOut")}
              </button>
            )}
          </li>
        ))}
      </ul>
      {others.length > 0 ? (
        <button
          type="button"
          className="btn btn-default mt-3"
          disabled={isBusy}
          onClick={() => void signOutOthers()}
        >
          <MonitorSmartphone aria-hidden size={16} />
          {t("personal.devicesOut")}
        </button>
      ) : null}
    </Card>
  );
}
