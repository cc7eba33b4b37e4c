// The profile: who one is, password and system token, bindings, models, notices, prices, invitations, the way out.
// Refuses to show a system token twice and to delete an account without its name being typed.
import { useSignals } from "@preact/signals-react/runtime";
import { KeyRound, Trash2 } from "lucide-react";
import { useState } from "react";
import { api, call } from "../lib/api.ts";
import { bootData, user } from "../lib/boot.ts";
import { useForm } from "../lib/form.ts";
import { formatNumber, formatQuota } from "../lib/format.ts";
import { useT } from "../lib/i18n.ts";
import { Chip } from "../ui/badges.tsx";
import { confirm } from "../ui/confirm.tsx";
import { copyText, CopyButton } from "../ui/copy-button.tsx";
import { Notice, toast, toastFailure } from "../ui/feedback.tsx";
import { TextField } from "../ui/form.tsx";
import { PageHeader } from "../ui/page-header.tsx";
import { NoticeSettings } from "./personal/notices.tsx";
import { Card, SaveRow } from "./personal/card.tsx";
import { InvitationCard } from "../ui/invitation-card.tsx";
import type { Invitation } from "../ui/invitation-card.tsx";

interface Self {
  id: number;
  username: string;
  display_name: string;
  role: number;
  group: string;
  email: string;
  quota: number;
  used_quota: number;
  request_count: number;
  github_id: string;
  oidc_id: string;
  wechat_id: string;
  telegram_id: string;
  linux_do_id: string;
  setting: string;
}

interface PersonalData {
  self: Self;
  invitation: Invitation;
  models: string[];
  hasSecret: boolean;
}

const BINDINGS = ["email", "wechat_id", "github_id", "oidc_id", "telegram_id", "linux_do_id"] as const;
const ADMIN = 10;
const ROOT = 100;
/** Models shown before the list is unfolded. */
const FEW_MODELS = 10;

export default function Personal() {
  useSignals();
  const t = useT();
  const { self, invitation, models, hasSecret } = bootData<PersonalData>();
  const balance = user.value?.quota ?? self.quota;
  const moved = (quota: number) => {
    if (user.value) user.value = { ...user.value, quota: user.value.quota + quota };
  };
  return (
    <>
      <PageHeader title={t("shell.nav.profile")} note={t("personal.purpose")} />
      <div className="flex flex-col gap-4 max-w-3xl">
        <Card id="identity" title={t("personal.identity")}>
          <dl className="facts">
            <div>
              <dt>{t("personal.username")}</dt>
              <dd>{self.username}</dd>
            </div>
            <div>
              <dt>{t("personal.id")}</dt>
              <dd className="mono">{self.id}</dd>
            </div>
            <div>
              <dt>{t("personal.role")}</dt>
              <dd>{t(self.role >= ADMIN ? "common.role.admin" : "common.role.user")}</dd>
            </div>
            <div>
              <dt>{t("personal.group")}</dt>
              <dd>
                <Chip>{self.group}</Chip>
              </dd>
            </div>
            <div>
              <dt>{t("personal.balance")}</dt>
              <dd>{formatQuota(balance)}</dd>
            </div>
            <div>
              <dt>{t("personal.used")}</dt>
              <dd>{formatQuota(self.used_quota)}</dd>
            </div>
            <div>
              <dt>{t("personal.requests")}</dt>
              <dd>{formatNumber(self.request_count)}</dd>
            </div>
          </dl>
        </Card>
        <AccountCard self={self} />
        <TokenCard />
        <Card id="bindings" title={t("personal.bindings")}>
          <dl className="facts">
            {BINDINGS.map((name) => (
              <div key={name}>
                <dt>{t(`personal.binding.${name}`)}</dt>
                <dd>
                  {self[name] === "" ? (
                    <span className="text-muted">{t("personal.unbound")}</span>
                  ) : (
                    <Chip>{self[name]}</Chip>
                  )}
                </dd>
              </div>
            ))}
          </dl>
        </Card>
        <NoticeSettings setting={self.setting} hasSecret={hasSecret} />
        <ModelsCard models={models} />
        <InvitationCard invitation={invitation} onMoved={moved} />
        {self.role < ROOT ? <DangerCard username={self.username} /> : null}
      </div>
    </>
  );
}

interface AccountValues extends Record<string, unknown> {
  display_name: string;
  original_password: string;
  password: string;
  again: string;
}

function AccountCard({ self }: { self: Self }) {
  const t = useT();
  const initial: AccountValues = {
    display_name: self.display_name,
    original_password: "",
    password: "",
    again: "",
  };
  const form = useForm<AccountValues>({
    initial,
    secrets: ["original_password", "password", "again"],
    validate: (values) => ({
      ...(values.original_password === "" ? { original_password: t("personal.oldPasswordMissing") } : {}),
      ...(values.password !== "" && values.password.length < 8
        ? { password: t("personal.badPassword") }
        : {}),
      ...(values.password !== values.again ? { again: t("personal.passwordsDiffer") } : {}),
    }),
  });
  const { values } = form;
  const save = async () => {
    try {
      const isSaved = await form.submit(async () => {
        await call(
          api.user.self.put({
            display_name: values.display_name.trim(),
            original_password: values.original_password,
            ...(values.password === "" ? {} : { password: values.password }),
          }),
        );
      });
      if (!isSaved) return;
      if (user.peek()) user.value = { ...user.peek()!, display_name: values.display_name.trim() };
      form.reset({ ...initial, display_name: values.display_name.trim() });
      toast({ text: t("common.saved") });
    } catch (error) {
      toastFailure(error);
    }
  };
  return (
    <Card id="account" title={t("personal.account")} note={t("personal.accountNote")}>
      <form
        ref={form.element}
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
          input={{ maxLength: 20, autoComplete: "nickname" }}
        />
        <TextField
          form={form}
          name="original_password"
          label={t("personal.oldPassword")}
          hint={t("personal.oldPasswordHint")}
          isRequired
          type="password"
          input={{ autoComplete: "current-password" }}
        />
        <div className="field-row">
          <TextField
            form={form}
            name="password"
            label={t("personal.newPassword")}
            hint={t("personal.newPasswordHint")}
            type="password"
            input={{ autoComplete: "new-password", maxLength: 72 }}
          />
          <TextField
            form={form}
            name="again"
            label={t("personal.newPasswordAgain")}
            type="password"
            input={{ autoComplete: "new-password", maxLength: 72 }}
          />
        </div>
        <SaveRow isBusy={form.isBusy} isDirty={form.isDirty} />
      </form>
    </Card>
  );
}

function TokenCard() {
  const t = useT();
  const [token, setToken] = useState("");
  const renew = async () => {
    const yes = await confirm({
      title: t("personal.tokenAsk"),
      text: t("personal.tokenConsequence"),
      action: t("personal.tokenMake"),
    });
    if (!yes) return;
    try {
      setToken((await call(api.user.token.get())) as string);
    } catch (error) {
      toastFailure(error);
    }
  };
  return (
    <Card id="token" title={t("personal.token")} note={t("personal.tokenNote")}>
      {token === "" ? null : (
        <Notice tone="success" onClose={() => setToken("")}>
          <p>{t("personal.tokenOnce")}</p>
          <p className="flex items-center gap-2 mt-1">
            <code className="mono break-all">{token}</code>
            <CopyButton text={token} label={t("personal.tokenCopy")} />
          </p>
        </Notice>
      )}
      <button type="button" className="btn btn-default" onClick={() => void renew()}>
        <KeyRound aria-hidden size={16} />
        {t("personal.tokenMake")}
      </button>
    </Card>
  );
}

function ModelsCard({ models }: { models: readonly string[] }) {
  const t = useT();
  const [term, setTerm] = useState("");
  const [isOpen, setOpen] = useState(false);
  const found = models.filter((name) => name.toLowerCase().includes(term.trim().toLowerCase()));
  const shown = isOpen || term.trim() !== "" ? found.slice(0, 500) : found.slice(0, FEW_MODELS);
  return (
    <Card id="models" title={t("personal.models")} note={t("personal.modelsNote", { count: models.length })}>
      {models.length > FEW_MODELS ? (
        <input
          className="input mb-3"
          type="search"
          aria-label={t("personal.modelsSearch")}
          placeholder={t("personal.modelsSearch")}
          value={term}
          onChange={(event) => setTerm(event.target.value)}
        />
      ) : null}
      {found.length === 0 ? <p className="text-muted">{t("personal.noModels")}</p> : null}
      <ul className="chips">
        {shown.map((name) => (
          <li key={name}>
            <button
              type="button"
              className="chip"
              title={t("personal.copyModel", { name })}
              onClick={() => void copyText(name)}
            >
              {name}
            </button>
          </li>
        ))}
      </ul>
      {term.trim() === "" && found.length > FEW_MODELS ? (
        <button
          type="button"
          className="btn btn-sm btn-ghost mt-2"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? t("personal.fewModels") : t("personal.allModels", { count: found.length })}
        </button>
      ) : null}
    </Card>
  );
}

function DangerCard({ username }: { username: string }) {
  const t = useT();
  const remove = async () => {
    const yes = await confirm({
      title: t("personal.deleteAsk"),
      text: t("personal.deleteText"),
      action: t("personal.delete"),
      isDanger: true,
      typed: username,
    });
    if (!yes) return;
    try {
      await call(api.user.self.delete());
      window.location.assign("/login");
    } catch (error) {
      toastFailure(error);
    }
  };
  return (
    <Card id="danger" title={t("personal.danger")} note={t("personal.deleteText")}>
      <button type="button" className="btn btn-error btn-soft" onClick={() => void remove()}>
        <Trash2 aria-hidden size={16} />
        {t("personal.delete")}
      </button>
    </Card>
  );
}
