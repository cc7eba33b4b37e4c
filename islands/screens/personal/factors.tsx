// Second factors of the account: the authenticator with its backup codes, and passkeys. What asks questions opens over it.
import { useSignals } from "@preact/signals-react/runtime";
import { KeyRound, Smartphone } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { isAbort, send } from "../../lib/api.ts";
import type { AccountSecurity, FactorStatus, PasskeyRow } from "../../lib/account-security.ts";
import { nowMs, user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { lazyPart } from "../../lib/lazy-part.tsx";
import { signInFlags } from "../../lib/sign-in.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import { setQuery, useQuery } from "../../lib/url-state.ts";
import { When } from "../../ui/badges.tsx";
import { BusyButton } from "../../ui/busy-button.tsx";
import { confirm } from "../../ui/confirm.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { Card } from "./card.tsx";
import type { TotpOffer } from "./totp-setup.tsx";

const TotpSetup = lazyPart(() => import("./totp-setup.tsx"));
const BackupCodes = lazyPart(() => import("./backup-codes.tsx"));
const PasskeyDialog = lazyPart(() => import("./passkey-dialog.tsx"));

const ADMIN = 10;
/** From here on one is told that few are left. */
const FEW_CODES = 3;

type Initial = Pick<AccountSecurity, "factor" | "passkeys">;

export function FactorsCard({ initial }: { initial: Initial }) {
  const t = useT();
  useSignals();
  const query = useQuery();
  const [factor, setFactor] = useState(initial.factor);
  const [passkeys, setPasskeys] = useState(initial.passkeys);
  const place = useRef<HTMLDivElement>(null);
  const isAskedFor = query.tab === "security";
  useEffect(() => {
    if (isAskedFor) place.current?.closest("section")?.scrollIntoView({ block: "start" });
  }, [isAskedFor]);
  const hasNone = !factor.enabled && passkeys.length === 0;
  const mustEnrol = isAskedFor && hasNone && (user.value?.role ?? 0) >= ADMIN;
  const isOffered = signInFlags().passkey_login === true;
  return (
    <Card id="security" title={t("personal.factors")} note={t("personal.factorsNote")}>
      <div ref={place}>
        {mustEnrol ? <Notice tone="warning">{t("personal.mustEnrol")}</Notice> : null}
        <Authenticator
          factor={factor}
          onChange={(next) => {
            setFactor(next);
            if (isAskedFor) setQuery({ tab: undefined }, { replace: true });
          }}
        />
        {isOffered || passkeys.length > 0 ? (
          <Passkeys rows={passkeys} canAdd={isOffered} onChange={setPasskeys} />
        ) : null}
      </div>
    </Card>
  );
}

function Authenticator({
  factor,
  onChange,
}: {
  factor: FactorStatus;
  onChange: (next: FactorStatus) => void;
}) {
  const t = useT();
  useSignals();
  const [offer, setOffer] = useState<TotpOffer>();
  const [codes, setCodes] = useState<readonly string[]>();
  const [busy, setBusy] = useState("");
  const attempt = async (what: string, run: () => Promise<void>) => {
    setBusy(what);
    try {
      await run();
    } catch (error) {
      toastFailure(error, "factor");
    } finally {
      setBusy("");
    }
  };
  const begin = () =>
    attempt("setup", async () =>
      setOffer(await send<TotpOffer>("POST", "/api/user/2fa/setup", { body: {} })),
    );
  const renew = async () => {
    const yes = await confirm({
      title: t("personal.codesAsk"),
      text: t("personal.codesConsequence"),
      action: t("personal.codesRenew"),
    });
    if (!yes) return;
    await attempt("codes", async () => {
      const { backup_codes: made } = await send<{ backup_codes: string[] }>(
        "POST",
        "/api/user/2fa/backup_codes",
        {
          body: {},
        },
      );
      setCodes(made);
      onChange({ ...factor, backup_codes_left: made.length });
    });
  };
  const disable = async () => {
    const yes = await confirm({
      title: t("personal.totpOffAsk"),
      text: t("personal.totpOffText"),
      action: t("personal.totpOff"),
      isDanger: true,
    });
    if (!yes) return;
    await attempt("disable", async () => {
      await send("POST", "/api/user/2fa/disable", { body: {} });
      onChange({ enabled: false, locked_until: 0, backup_codes_left: 0, created_at: 0 });
      toast({ text: t("personal.totpOffDone") });
    });
  };
  return (
    <div className="flex flex-wrap items-start gap-x-4 gap-y-2">
      <Smartphone aria-hidden size={20} className="mt-0.5 shrink-0 text-muted" />
      <div className="min-w-48 flex-1">
        <h3 className="font-semibold">{t("personal.totp")}</h3>
        <p className="text-sm text-muted">
          {factor.enabled ? (
            <>
              {t("personal.totpSince")} <When at={factor.created_at} isAbsolute />
            </>
          ) : (
            t("personal.totpNone")
          )}
        </p>
        {factor.enabled ? (
          <p className={`text-sm ${factor.backup_codes_left <= FEW_CODES ? "text-warning" : "text-muted"}`}>
            {t("personal.codesLeft", { count: factor.backup_codes_left })}
          </p>
        ) : null}
        <Locked until={factor.locked_until} />
      </div>
      <div className="flex flex-wrap gap-2">
        {factor.enabled ? (
          <>
            <BusyButton isBusy={busy === "codes"} className="btn-default btn-sm" onPress={() => void renew()}>
              {t("personal.codesRenew")}
            </BusyButton>
            <BusyButton
              isBusy={busy === "disable"}
              className="btn-error btn-soft btn-sm"
              onPress={() => void disable()}
            >
              {t("personal.totpOff")}
            </BusyButton>
          </>
        ) : (
          <BusyButton isBusy={busy === "setup"} className="btn-default btn-sm" onPress={() => void begin()}>
            {t("personal.totpOn")}
          </BusyButton>
        )}
      </div>
      {offer === undefined ? null : (
        <TotpSetup
          offer={offer}
          onClose={() => setOffer(undefined)}
          onEnabled={(made) => {
            setOffer(undefined);
            setCodes(made);
            onChange({
              enabled: true,
              locked_until: 0,
              backup_codes_left: made.length,
              created_at: Math.floor(Date.now() / 1000),
            });
          }}
        />
      )}
      {codes === undefined ? null : <BackupCodes codes={codes} onClose={() => setCodes(undefined)} />}
    </div>
  );
}

/** Too many wrong codes: until when none counts. */
function Locked({ until }: { until: number }) {
  const t = useT();
  useSignals();
  if (until * 1000 <= nowMs.value) return null;
  return (
    <p className="text-sm text-error">
      {t("personal.totpLocked")} <When at={until} isAbsolute />
    </p>
  );
}

interface PasskeysProps {
  rows: readonly PasskeyRow[];
  canAdd: boolean;
  onChange: (rows: PasskeyRow[]) => void;
}

function Passkeys({ rows, canAdd, onChange }: PasskeysProps) {
  const t = useT();
  const [open, setOpen] = useState<"new" | PasskeyRow>();
  const refresh = async () => onChange(await send<PasskeyRow[]>("GET", "/api/user/passkey/"));
  const remove = async (row: PasskeyRow) => {
    const yes = await confirm({
      title: t("personal.passkeyRemoveAsk", { name: row.name }),
      text: t("personal.passkeyRemoveText"),
      action: t("personal.passkeyRemove"),
      isDanger: true,
    });
    if (!yes) return;
    try {
      await send("DELETE", `/api/user/passkey/${row.id}`);
      onChange(rows.filter(({ id }) => id !== row.id));
      toast({ text: t("personal.passkeyRemoved", { name: row.name }) });
    } catch (error) {
      if (!isAbort(error)) toastFailure(error, "passkey");
    }
  };
  return (
    <div className="mt-4 border-t border-base-300 pt-4">
      <div className="flex flex-wrap items-start gap-x-4 gap-y-2">
        <KeyRound aria-hidden size={20} className="mt-0.5 shrink-0 text-muted" />
        <div className="min-w-48 flex-1">
          <h3 className="font-semibold">{t("personal.passkeys")}</h3>
          <p className="text-sm text-muted">{t("personal.passkeysNote")}</p>
        </div>
        {canAdd ? (
          <button type="button" className="btn btn-default btn-sm" onClick={() => setOpen("new")}>
            {t("personal.passkeyAdd")}
          </button>
        ) : null}
      </div>
      {rows.length === 0 ? null : (
        <ul className="mt-3 divide-y divide-base-300" aria-label={t("personal.passkeys")}>
          {rows.map((row) => (
            <li key={row.id} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2">
              <div className="min-w-48 flex-1">
                <p className="break-words">{row.name}</p>
                <p className="text-xs text-muted">
                  {t("personal.passkeyMade")} <When at={row.created_at} /> · {t("personal.passkeyUsed")}{" "}
                  <When at={row.last_used_at} never={t("personal.passkeyUnused")} />
                  {row.backed_up ? ` · ${t("personal.passkeySynced")}` : null}
                </p>
              </div>
              <div className="flex gap-1">
                <button
                  type="button"
                  className="btn btn-ghost btn-sm"
                  aria-label={t("personal.passkeyRenameOf", { name: row.name })}
                  onClick={() => setOpen(row)}
                >
                  {t("personal.passkeyRename")}
                </button>
                <button
                  type="button"
                  className="btn btn-ghost btn-sm text-error"
                  aria-label={t("personal.passkeyRemoveOf", { name: row.name })}
                  onClick={() => void remove(row)}
                >
                  {t("personal.passkeyRemove")}
                </button>
              </div>
            </li>
          ))}
        </ul>
      )}
      {open === undefined ? null : (
        <PasskeyDialog
          row={open === "new" ? undefined : open}
          count={rows.length}
          onClose={() => setOpen(undefined)}
          onDone={() => {
            setOpen(undefined);
            void refresh().catch((error: unknown) => toastFailure(error, "passkey"));
          }}
        />
      )}
    </div>
  );
}
