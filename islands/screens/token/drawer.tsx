// The drawer that makes and changes API keys.
// Refuses a key without a name and an expiry that is no date; the rest is the server's to refuse.
import { useState } from "react";
import { AUTO_GROUP } from "../../../src/shared/auto-group.ts";
import { status } from "../../lib/boot.ts";
import { secondsOf } from "../../lib/date-field.ts";
import { useForm } from "../../lib/form.ts";
import type { Errors } from "../../lib/form.ts";
import { limitProblems } from "../../lib/limit-values.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { TextField } from "../../ui/form.tsx";
import { BudgetPart } from "./budget-part.tsx";
import { CountPart, ExpiryPart, GroupPart, QuotaPart } from "./drawer-parts.tsx";
import { LimitsPart } from "./limits-part.tsx";
import { charactersIn } from "../../../src/shared/name-limits.ts";
import { bodyOf, nameLimit, NEW_TOKEN, valuesOf, wrongIpLine } from "./row.ts";
import type { TokenPageData, TokenValues } from "./row.ts";
import { create, update } from "./save.ts";

export interface TokenDrawerProps {
  /** undefined: a new key. */
  row: TokenRow | undefined;
  isOpen: boolean;
  onClose: () => void;
  onSaved: (created: TokenRow[]) => void;
  data: TokenPageData;
}

const limitOf = ({ count }: TokenValues, isNew: boolean) => nameLimit(isNew ? (count ?? 1) : 1);

/** What a new key begins with: the automatic choice where the site offers it first. */
const firstGroup = ({ auto }: TokenPageData) =>
  status.peek().default_use_auto_group === true && auto.length > 0 ? AUTO_GROUP : "";

/** Rules of the form; `isBadDate`: a date is typed in part. */
function validator(t: Translate, isNew: boolean, isBadDate: boolean) {
  return (values: TokenValues): Errors<TokenValues> => ({
    ...(values.name.trim() === ""
      ? { name: t("token.nameMissing") }
      : charactersIn(values.name.trim()) > limitOf(values, isNew)
        ? { name: t("token.nameLong", { max: limitOf(values, isNew) }) }
        : {}),
    ...(!values.unlimited && values.quota === undefined ? { quota: t("form.required") } : {}),
    ...(!values.unlimited && values.quota !== undefined && !Number.isInteger(values.quota)
      ? { quota: t("token.badQuota") }
      : {}),
    ...(values.maxQuota !== undefined && !Number.isInteger(values.maxQuota)
      ? { maxQuota: t("token.badQuota") }
      : {}),
    ...limitProblems(t, values),
    ...(isBadDate || secondsOf(values.expires) === undefined ? { expires: t("token.badExpiry") } : {}),
    ...(wrongIpLine(values.ips) === undefined
      ? {}
      : { ips: t("token.badIp", { line: wrongIpLine(values.ips) ?? "" }) }),
    ...(isNew && (values.count === undefined || values.count < 1 || values.count > 100)
      ? { count: t("token.badCount") }
      : {}),
  });
}

export default function TokenDrawer({ row, isOpen, onClose, onSaved, data }: TokenDrawerProps) {
  const t = useT();
  const isNew = row === undefined;
  const [isBadDate, setBadDate] = useState(false);
  const form = useForm<TokenValues>({
    initial: row ? valuesOf(row) : { ...NEW_TOKEN, group: firstGroup(data) },
    ...(row ? { awayKey: `token ${row.id}` } : { draftKey: "token" }),
    validate: validator(t, isNew, isBadDate),
  });
  const { values } = form;

  return (
    <DrawerForm
      form={form}
      isOpen={isOpen}
      isNew={isNew}
      title={row ? t("token.edit", { name: row.name }) : t("token.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={async (_, changed) => {
        if (row) await update(row, values, changed);
        onSaved(row ? [] : await create(values));
      }}
      curl={(now) => ({
        method: row ? "PUT" : "POST",
        path: "/api/token/",
        body: row ? { id: row.id, ...bodyOf(now) } : bodyOf(now),
      })}
    >
      <TextField
        form={form}
        name="name"
        label={t("token.name")}
        isRequired
        limit={limitOf(values, isNew)}
        input={{ autoFocus: true, autoComplete: "off" }}
      />
      <QuotaPart form={form} />
      <ExpiryPart form={form} onBadDate={setBadDate} />
      <GroupPart form={form} data={data} />
      <BudgetPart form={form} row={row} />
      <LimitsPart form={form} data={data} />
      {isNew ? <CountPart form={form} /> : null}
    </DrawerForm>
  );
}
