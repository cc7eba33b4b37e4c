// The drawer that makes an account, changes one, or shows what became of a deleted one.
// Refuses short names and passwords, and balances below zero; ranks are the server's to judge.
import { Role } from "../../../src/shared/enums.ts";
import { api, call } from "../../lib/api.ts";
import { user } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { LIMIT_NAMES, limitChangesOf, limitProblems } from "../../lib/limit-values.ts";
import { useT } from "../../lib/i18n.ts";
import { StatusDot } from "../../ui/badges.tsx";
import { Drawer, DrawerForm } from "../../ui/drawer.tsx";
import { toast } from "../../lib/toasts.ts";
import { MAX_DISPLAY_NAME, MAX_REMARK, MAX_USERNAME } from "../../../src/shared/name-limits.ts";
import { Section, SelectField, SwitchField, TextAreaField, TextField } from "../../ui/form.tsx";
import { UserFacts } from "./facts.tsx";
import { UserLimitsPart } from "./limits-part.tsx";
import { QuotaFields } from "./quota-fields.tsx";
import { accountProblems, changeProblems, quotaBody, valuesOf } from "./values.ts";
import type { UserValues } from "./values.ts";
import type { UserRow } from "../../lib/wire.ts";

export interface UserDrawerProps {
  /** undefined: a new account. */
  row: UserRow | undefined;
  groups: readonly string[];
  onClose: () => void;
  onSaved: () => void;
}

export default function UserDrawer(props: UserDrawerProps) {
  const { row, onClose } = props;
  const t = useT();
  if (!row || row.DeletedAt === null) return <UserForm {...props} />;
  return (
    <Drawer
      isOpen
      title={row.username}
      aside={<StatusDot tone="off">{t("user.deleted")}</StatusDot>}
      onClose={onClose}
    >
      <UserFacts row={row} isReadOnly />
    </Drawer>
  );
}

function UserForm({ row, groups, onClose, onSaved }: UserDrawerProps) {
  const t = useT();
  const isNew = row === undefined;
  const form = useForm<UserValues>({
    initial: valuesOf(row),
    // A balance is not changed by what somebody typed before.
    secrets: ["password", "amount", "reason"],
    ...(isNew ? { draftKey: "user" } : { awayKey: `user ${row.id}` }),
    validate(values) {
      const found = { ...accountProblems(values, isNew), ...(row ? changeProblems(row.quota, values) : {}) };
      const said = Object.fromEntries(Object.entries(found).map(([name, key]) => [name, t(key)]));
      return { ...said, ...limitProblems(t, values) };
    },
  });

  const save = async (values: UserValues, changed: Partial<UserValues>) => {
    const username = values.username.trim();
    if (isNew) {
      const { password, display_name: displayName } = values;
      await call(api.user.post({ username, password, display_name: displayName.trim() || username }));
    } else {
      // Only what was changed: the balance moves on while the drawer is open.
      const { mode, amount, reason, password, remark, flagged, ...others } = changed;
      const { budget, budgetPeriod, rpm, tpm, atOnce, ...rest } = others;
      void [mode, reason, budget, budgetPeriod, rpm, tpm, atOnce];
      const isLimitChanged = Object.keys(LIMIT_NAMES).some((name) => name in changed);
      const body = {
        ...rest,
        ...(password ? { password } : {}),
        ...(amount === undefined ? {} : quotaBody(values)),
        ...(isLimitChanged ? { limits: limitChangesOf(values, changed) } : {}),
      };
      // The notes first: a refusal of them leaves the balance alone, and saving again changes it once.
      if (remark !== undefined || flagged !== undefined) {
        const notes = {
          ...(remark === undefined ? {} : { remark }),
          ...(flagged === undefined ? {} : { flagged }),
        };
        await call(api.user({ id: String(row.id) }).notes.put(notes));
      }
      if (Object.keys(body).length > 0) await call(api.user.put({ id: row.id, ...body }));
    }
    toast({ text: t(isNew ? "user.created" : "common.saved", { name: username }) });
    onSaved();
  };

  // Root alone takes an account off hold: a disputed payment may stand behind it.
  const mayLift = row?.flagged !== true || user.peek()?.role === Role.root;
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
        hint={t("user.usernameHint")}
        isRequired
        limit={MAX_USERNAME}
        input={{ autoFocus: true, autoComplete: "off", spellCheck: false }}
      />
      <TextField
        form={form}
        name="display_name"
        label={t("user.displayName")}
        hint={isNew ? t("user.displayNameHint") : undefined}
        limit={MAX_DISPLAY_NAME}
        input={{ autoComplete: "off" }}
      />
      <TextField
        form={form}
        name="password"
        label={t("user.password")}
        hint={isNew ? t("user.passwordHint") : t("user.passwordKeep")}
        isRequired={isNew}
        type="password"
        input={{ autoComplete: "new-password" }}
      />
      {row ? (
        <>
          <SelectField
            form={form}
            name="group"
            label={t("user.group")}
            choices={[...new Set([...groups, row.group])].map((name) => ({ value: name, label: name }))}
          />
          <Section title={t("user.notes")}>
            <TextAreaField
              form={form}
              name="remark"
              label={t("user.remark")}
              hint={t("user.remarkHint")}
              limit={MAX_REMARK}
              rows={2}
            />
            <SwitchField
              form={form}
              name="flagged"
              label={t("user.flag")}
              hint={t(mayLift ? "user.flagHint" : "user.flagRoot")}
              isDisabled={!mayLift}
            />
          </Section>
          <Section title={t("user.quota")}>
            <QuotaFields form={form} before={row.quota} />
          </Section>
          <UserLimitsPart form={form} row={row} />
          <UserFacts row={row} />
        </>
      ) : null}
    </DrawerForm>
  );
}
