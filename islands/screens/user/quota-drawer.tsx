// The one thing administrators change most: a user's balance, with what it was and what it will be.
// Refuses amounts of nothing, changes without a reason and balances below zero.
import { api, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { toast } from "../../lib/toasts.ts";
import { QuotaFields } from "./quota-fields.tsx";
import { balanceAfter, changeProblems, NO_CHANGE, quotaBody } from "./values.ts";
import type { QuotaValues } from "./values.ts";
import type { UserRow } from "../../lib/wire.ts";

export default function QuotaDrawer({
  row,
  onClose,
  onSaved,
}: {
  row: UserRow;
  onClose: () => void;
  onSaved: () => void;
}) {
  const t = useT();
  const form = useForm<QuotaValues>({
    initial: NO_CHANGE,
    validate(values) {
      const found = changeProblems(row.quota, values);
      const problems = values.amount === undefined ? { ...found, amount: "user.noAmount" } : found;
      return Object.fromEntries(Object.entries(problems).map(([name, key]) => [name, t(key)]));
    },
  });
  const after = formatQuota(balanceAfter(row.quota, form.values));
  return (
    <DrawerForm
      form={form}
      isOpen
      isNew
      width="peek"
      title={t("user.quotaOf", { name: row.username })}
      saveLabel={t("user.quotaSave")}
      onClose={onClose}
      onSave={async (values) => {
        await call(api.user.put({ id: row.id, ...quotaBody(values) }));
        toast({ text: t("user.quotaSaved", { name: row.username, amount: after }) });
        onSaved();
      }}
      curl={(values) => ({
        method: "PUT",
        path: "/api/user/",
        body: { id: row.id, ...quotaBody(values) },
      })}
    >
      <QuotaFields form={form} before={row.quota} hasFocus />
    </DrawerForm>
  );
}
