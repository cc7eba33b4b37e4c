// The drawer that makes an account, or changes one: names, password, group, and the balance by a change that is shown
// before it happens. Refuses short names and passwords; ranks are the server's to judge.
import { useState } from "react";
import { api, call } from "../../lib/api.ts";
import { status } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { formatNumber, formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { Chip } from "../../ui/badges.tsx";
import { DrawerForm } from "../../ui/drawer.tsx";
import { Field, Section, SelectField, TextField } from "../../ui/form.tsx";
import { valuesOf } from "./row.ts";
import type { UserRow, UserValues } from "./row.ts";

const BINDINGS = ["email", "github_id", "oidc_id", "wechat_id", "telegram_id", "linux_do_id"] as const;
const MODES = ["add", "take", "set"] as const;
type Mode = (typeof MODES)[number];

export interface UserDrawerProps {
  /** undefined: a new account. */
  row: UserRow | undefined;
  groups: readonly string[];
  onClose: () => void;
  onSaved: () => void;
}

export default function UserDrawer({ row, groups, onClose, onSaved }: UserDrawerProps) {
  const t = useT();
  const isNew = row === undefined;
  const form = useForm<UserValues>({
    initial: valuesOf(row),
    secrets: ["password"],
    ...(isNew ? { draftKey: "user" } : {}),
    validate: ({ username, password }) => ({
      ...(username.trim() === "" ? { username: t("form.required") } : {}),
      ...((isNew && password === "") || (password !== "" && password.length < 8)
        ? { password: t("user.badPassword") }
        : {}),
    }),
  });
  const { values, set } = form;

  const save = async (_: UserValues, changed: Partial<UserValues>) => {
    const { username, password, display_name: displayName } = values;
    if (isNew) {
      await call(
        api.user.post({ username: username.trim(), password, display_name: displayName || username.trim() }),
      );
    } else {
      // Only what was changed: the balance moves on while the drawer is open.
      const { quota, password: secret, ...rest } = changed;
      await call(
        api.user.put({
          id: row.id,
          ...rest,
          ...(secret ? { password: secret } : {}),
          ...(quota === undefined ? {} : { quota }),
        }),
      );
    }
    onSaved();
  };

  return (
    <DrawerForm
      form={form}
      isOpen
      isNew={isNew}
      title={row ? t("user.edit", { name: row.username }) : t("user.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={save}
    >
      <TextField
        form={form}
        name="username"
        label={t("user.username")}
        isRequired
        input={{ maxLength: 12, autoFocus: true, autoComplete: "off" }}
      />
      <TextField
        form={form}
        name="display_name"
        label={t("user.displayName")}
        input={{ maxLength: 20, autoComplete: "off" }}
      />
      <TextField
        form={form}
        name="password"
        label={t("user.password")}
        hint={isNew ? t("user.passwordHint") : t("user.passwordKeep")}
        isRequired={isNew}
        type="password"
        input={{ maxLength: 72, autoComplete: "new-password" }}
      />
      {row ? (
        <>
          <SelectField
            form={form}
            name="group"
            label={t("user.group")}
            choices={[...new Set([...groups, row.group])].map((name) => ({ value: name, label: name }))}
          />
          <QuotaChange
            row={row}
            value={values.quota ?? row.quota}
            onChange={(quota) => set("quota", quota)}
            form={form}
          />
          <Section title={t("user.about")} isFolded>
            <dl className="facts">
              <div>
                <dt>{t("user.used")}</dt>
                <dd>{formatQuota(row.used_quota)}</dd>
              </div>
              <div>
                <dt>{t("user.requests")}</dt>
                <dd>{formatNumber(row.request_count)}</dd>
              </div>
              <div>
                <dt>{t("user.invited")}</dt>
                <dd>
                  {t("user.invitedBy", { count: row.aff_count, amount: formatQuota(row.aff_history_quota) })}
                </dd>
              </div>
              {BINDINGS.map((name) => (
                <div key={name}>
                  <dt>{t(`user.binding.${name}`)}</dt>
                  <dd>
                    {row[name] === "" ? (
                      <span className="text-muted">{t("user.unbound")}</span>
                    ) : (
                      <Chip>{row[name]}</Chip>
                    )}
                  </dd>
                </div>
              ))}
            </dl>
            <p className="mt-3">
              <a className="link" href={`/log?username=${encodeURIComponent(row.username)}`}>
                {t("user.toLog")}
              </a>
            </p>
          </Section>
        </>
      ) : null}
    </DrawerForm>
  );
}

/** The balance is changed by an amount, and what it will be stands there before it is. */
function QuotaChange({
  row,
  value,
  onChange,
  form,
}: {
  row: UserRow;
  value: number;
  onChange: (quota: number) => void;
  form: ReturnType<typeof useForm<UserValues>>;
}) {
  const t = useT();
  const perUnit = status.peek().quota_per_unit || 500_000;
  const [mode, setMode] = useState<Mode>("add");
  const [text, setText] = useState("");
  const apply = (nextMode: Mode, nextText: string) => {
    setMode(nextMode);
    setText(nextText);
    const amount = Math.round(Number(nextText) * perUnit);
    if (nextText.trim() === "" || !Number.isFinite(amount)) return onChange(row.quota);
    const result = nextMode === "set" ? amount : row.quota + (nextMode === "add" ? amount : -amount);
    onChange(result);
  };
  return (
    <>
      <Field
        form={form}
        name="quota"
        label={t("user.quota")}
        hint={t("user.quotaChange", { before: formatQuota(row.quota), after: formatQuota(value) })}
      >
        {(control) => (
          <div className="join w-full">
            <select
              className="select join-item max-w-40"
              aria-label={t("user.quotaMode")}
              value={mode}
              onChange={(event) => apply(event.target.value as Mode, text)}
            >
              {MODES.map((each) => (
                <option key={each} value={each}>
                  {t(`user.mode.${each}`)}
                </option>
              ))}
            </select>
            <input
              {...control}
              className="input join-item"
              inputMode="decimal"
              placeholder="0.00"
              value={text}
              onChange={(event) => apply(mode, event.target.value)}
            />
            <span className="join-item self-center px-3 text-muted">$</span>
          </div>
        )}
      </Field>
    </>
  );
}
