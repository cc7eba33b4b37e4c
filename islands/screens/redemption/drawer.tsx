// The drawer that makes a batch of redemption codes, or changes an unused one.
// Refuses values of nothing and more than a hundred codes at once.
import { api, call } from "../../lib/api.ts";
import { status } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { formatDollars, formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { NumberField, TextField } from "../../ui/form.tsx";
import { MAX_CODES, NEW_CODE, QUOTA_PRESETS } from "./row.ts";
import type { CodeRow, CodeValues } from "./row.ts";

export interface CodeDrawerProps {
  /** undefined: new codes. */
  row: CodeRow | undefined;
  onClose: () => void;
  /** The new codes in clear; none after a change. */
  onSaved: (keys: string[], name: string) => void;
}

export default function CodeDrawer({ row, onClose, onSaved }: CodeDrawerProps) {
  const t = useT();
  const perUnit = status.peek().quota_per_unit || 500_000;
  const form = useForm<CodeValues>({
    initial: row ? { name: row.name, quota: row.quota, count: 1 } : NEW_CODE,
    ...(row ? {} : { draftKey: "redemption" }),
    validate: ({ quota, count }) => ({
      ...(quota === undefined || quota <= 0 ? { quota: t("redemption.badQuota") } : {}),
      ...(row === undefined && (count === undefined || count < 1 || count > MAX_CODES)
        ? { count: t("redemption.badCount") }
        : {}),
    }),
  });
  const { values, set } = form;
  const quota = values.quota ?? 0;

  const save = async () => {
    // An empty name becomes the value, as the specification says.
    const name = values.name.trim() || formatQuota(quota);
    if (row) {
      await call(api.redemption.put({ id: row.id, name, quota }));
      onSaved([], name);
      return;
    }
    const keys = await call(api.redemption.post({ name, quota, count: values.count ?? 1 }));
    onSaved(keys as string[], name);
  };

  return (
    <DrawerForm
      form={form}
      isOpen
      isNew={row === undefined}
      title={row ? t("redemption.edit", { name: row.name }) : t("redemption.new")}
      saveLabel={row ? t("common.save") : t("common.create")}
      onClose={onClose}
      onSave={save}
    >
      <TextField
        form={form}
        name="name"
        label={t("redemption.name")}
        hint={t("redemption.nameHint", { value: formatQuota(quota) })}
        input={{ maxLength: 20, autoFocus: true, autoComplete: "off" }}
      />
      <NumberField
        form={form}
        name="quota"
        label={t("redemption.quota")}
        min={1}
        step={1}
        hint={`= ${formatDollars(quota / perUnit)}`}
      />
      <div className="flex flex-wrap gap-2 -mt-2 mb-4" role="group" aria-label={t("redemption.presets")}>
        {QUOTA_PRESETS.map((dollars) => (
          <button
            key={dollars}
            type="button"
            className="btn btn-sm btn-default"
            onClick={() => set("quota", dollars * perUnit)}
          >
            ${dollars}
          </button>
        ))}
      </div>
      {row ? null : (
        <NumberField
          form={form}
          name="count"
          label={t("redemption.count")}
          hint={t("redemption.countHint")}
          min={1}
          max={MAX_CODES}
          step={1}
        />
      )}
    </DrawerForm>
  );
}
