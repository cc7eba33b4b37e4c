// The profile: who one is, password and system token, second factors, bindings, models, notices, prices, invitations, the way out.
// Refuses to delete an account without its name being typed.
import { useSignals } from "@preact/signals-react/runtime";
import { Download, Eraser, Trash2 } from "lucide-react";
import { useRef, useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData, user } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import { useT } from "../lib/i18n.ts";
import { Chip, Count, Money } from "../ui/badges.tsx";
import { BusyButton } from "../ui/busy-button.tsx";
import { CopyButton } from "../ui/copy-button.tsx";
import { toast, toastFailure } from "../lib/toasts.ts";
import { TextField } from "../ui/form.tsx";
import { InvitationCard } from "../ui/invitation-card.tsx";
import type { Invitation } from "../ui/invitation-card.tsx";
import { LimitsInForce } from "../ui/limits-in-force.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { BindingsCard } from "./personal/bindings.tsx";
import { Card, SaveRow, Sections } from "./personal/card.tsx";
import { FactorsCard } from "./personal/factors.tsx";
import { DevicesCard } from "./personal/devices.tsx";
import type { Device } from "./personal/devices.tsx";
import { ModelsCard } from "./personal/models.tsx";
import { NoticesCard, PricesCard, settingOf } from "./personal/notices.tsx";
import { PasswordCard, ShortcutsSwitch, TokenCard } from "./personal/security.tsx";
import type { AccountSecurity } from "../lib/account-security.ts";
import type { OwnLimits, Self } from "../lib/wire.ts";

export interface PersonalData {
  self: Self;
  invitation: Invitation;
  /** The first ones; `modelCount` are there in all. */
  models: string[];
  modelCount: number;
  isExpanded: boolean;
  hasSecret: boolean;
  /** Below it one is warned, by one's own word or by the site's; 0: never. */
  threshold: number;
  hasPassword: boolean;
  hasAccessToken: boolean;
  security: AccountSecurity;
  devices: readonly Device[];
  /** null: nothing limits the account. */
  limits: OwnLimits | null;
}

const ADMIN = 10;
const ROOT = 100;
const MAX_DISPLAY_NAME = 20;

export default function Personal() {
  useSignals();
  const t = useT();
  const data = bootData<PersonalData>();
  const { self, invitation } = data;
  const setting = settingOf(self.setting);
  const [email, setEmail] = useState(self.email);
  const accepts = useRef(setting["accept_unset_model_ratio_model"] === true);
  const moved = (quota: number) => {
    if (user.value) user.value = { ...user.value, quota: user.value.quota + quota };
  };
  const sections = [
    ["identity", "personal.identity"],
    ...(data.limits ? [["limits", "personal.limits"] as const] : []),
    ["password", "personal.password"],
    ["token", "personal.token"],
    ["security", "personal.factors"],
    ["devices", "personal.devices"],
    ["bindings", "personal.bindings"],
    ["notices", "personal.notices"],
    ["prices", "personal.prices"],
    ["models", "personal.models"],
    ["invitation", "topup.invitation"],
    ["shortcuts", "personal.keyboard"],
    ["data", "personal.data"],
    ...(self.role < ROOT ? [["danger", "personal.danger"] as const] : []),
  ] as const;
  return (
    <>
      <PageHeader title={t("shell.nav.profile")} note={t("personal.purpose")} />
      <div className="gap-8 xl:grid xl:grid-cols-[minmax(0,48rem)_11rem]">
        <Sections sections={sections.map(([id, key]) => ({ id, title: t(key) }))} />
        <div className="flex min-w-0 max-w-3xl flex-col gap-4 xl:order-first">
          <IdentityCard self={self} />
          {data.limits ? (
            <Card id="limits" title={t("personal.limits")} note={t("personal.limitsNote")}>
              <LimitsInForce limits={data.limits} />
            </Card>
          ) : null}
          <PasswordCard hasPassword={data.hasPassword} />
          <TokenCard hasToken={data.hasAccessToken} />
          <FactorsCard initial={data.security} />
          <DevicesCard initial={data.devices} />
          <BindingsCard email={email} initial={data.security.bindings} onEmail={setEmail} />
          <NoticesCard
            setting={setting}
            hasSecret={data.hasSecret}
            thresholdInForce={data.threshold}
            email={email}
            acceptsUnpriced={() => accepts.current}
          />
          <PricesCard
            initial={accepts.current}
            onChange={(next) => {
              accepts.current = next;
            }}
          />
          <ModelsCard models={data.models} count={data.modelCount} isExpanded={data.isExpanded} />
          <InvitationCard invitation={invitation} onMoved={moved} />
          <ShortcutsSwitch />
          <DataCard />
          {self.role < ROOT ? <DangerCard username={self.username} /> : null}
        </div>
      </div>
    </>
  );
}

interface NameValues extends Record<string, unknown> {
  display_name: string;
}

function IdentityCard({ self }: { self: Self }) {
  useSignals();
  const t = useT();
  const form = useForm<NameValues>({
    initial: { display_name: self.display_name },
    validate: ({ display_name: name }) =>
      name.trim() === ""
        ? { display_name: t("form.required") }
        : Array.from(name.trim()).length > MAX_DISPLAY_NAME
          ? { display_name: t("personal.longDisplayName") }
          : {},
  });
  const save = async () => {
    try {
      const isSaved = await form.submit(async ({ display_name: name }) => {
        await call(api.user.self.put({ display_name: name.trim() }));
        if (user.peek()) user.value = { ...user.peek()!, display_name: name.trim() };
      });
      if (isSaved) toast({ text: t("common.saved") });
    } catch (error) {
      toastFailure(error, "name");
    }
  };
  const facts: [string, React.ReactNode][] = [
    [t("personal.username"), self.username],
    [
      t("personal.id"),
      <span className="inline-flex items-center gap-1">
        <span className="mono">{self.id}</span>
        <CopyButton text={String(self.id)} label={t("personal.copyId")} />
      </span>,
    ],
    [t("personal.role"), t(self.role >= ADMIN ? "personal.rank.admin" : "personal.rank.user")],
    [t("personal.group"), <Chip>{self.group}</Chip>],
    [t("personal.balance"), <Money quota={user.value?.quota ?? self.quota} />],
    [t("personal.used"), <Money quota={self.used_quota} />],
    [t("personal.requests"), <Count value={self.request_count} />],
  ];
  return (
    <Card id="identity" title={t("personal.identity")}>
      <dl className="facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <form
        ref={form.element}
        className="mt-4"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <TextField
          form={form}
          name="display_name"
          label={t("personal.displayName")}
          hint={t("personal.displayNameHint")}
          input={{ autoComplete: "nickname" }}
        />
        <SaveRow isBusy={form.isBusy} isDirty={form.isDirty} />
      </form>
    </Card>
  );
}

function DataCard() {
  const t = useT();
  const [isBusy, setBusy] = useState(false);
  const load = async () => {
    setBusy(true);
    try {
      const { downloadFile } = await import("../lib/download.ts");
      await downloadFile("/api/user/self/export", "my-data.json");
      toast({ key: "data", text: t("personal.dataDone") });
    } catch (error) {
      toastFailure(error, "data");
    } finally {
      setBusy(false);
    }
  };
  return (
    <Card id="data" title={t("personal.data")} note={t("personal.dataNote")}>
      <BusyButton isBusy={isBusy} className="btn-default" onPress={() => void load()}>
        <Download aria-hidden size={16} />
        {t("personal.dataExport")}
      </BusyButton>
    </Card>
  );
}

function DangerCard({ username }: { username: string }) {
  const t = useT();
  const remove = async (what: "delete" | "erase") => {
    const { leave } = await import("./personal/leaving.ts");
    await leave(what, username);
  };
  return (
    <Card id="danger" title={t("personal.danger")} note={t("personal.deleteNote")}>
      <p className="mb-3 text-sm text-muted">{t("personal.eraseNote")}</p>
      <div className="flex flex-wrap gap-2">
        <button type="button" className="btn btn-error btn-soft" onClick={() => void remove("delete")}>
          <Trash2 aria-hidden size={16} />
          {t("personal.delete")}
        </button>
        <button type="button" className="btn btn-error btn-soft" onClick={() => void remove("erase")}>
          <Eraser aria-hidden size={16} />
          {t("personal.erase")}
        </button>
      </div>
    </Card>
  );
}
