// The drawer that gives a key a new secret: how long the old one still works.
// Refuses to send twice; the new secret is shown where new keys are.
import { api, call } from "../../lib/api.ts";
import { useForm } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import type { TokenRow } from "../../lib/wire.ts";
import { DrawerForm } from "../../ui/drawer.tsx";
import { SelectField } from "../../ui/form.tsx";

/** Seconds by their text. */
const GRACES = [
  ["token.rotate.none", 0],
  ["token.rotate.hour", 3600],
  ["token.rotate.day", 86_400],
  ["token.rotate.week", 7 * 86_400],
  ["token.rotate.month", 30 * 86_400],
] as const;

export interface RotateDrawerProps {
  row: TokenRow;
  onClose: () => void;
  /** The key with its new secret. */
  onRotated: (row: TokenRow) => void;
}

export default function RotateDrawer({ row, onClose, onRotated }: RotateDrawerProps) {
  const t = useT();
  const form = useForm({ initial: { grace: 86_400 } });
  return (
    <DrawerForm
      form={form}
      isOpen
      isNew
      title={t("token.rotateTitle", { name: row.name })}
      saveLabel={t("token.rotateAction")}
      onClose={onClose}
      onSave={async ({ grace }) => {
        const made = await call(api.token({ id: row.id }).rotate.post({ grace_seconds: grace }));
        onRotated({ ...row, ...made });
      }}
      curl={({ grace }) => ({
        method: "POST",
        path: `/api/token/${row.id}/rotate`,
        body: { grace_seconds: grace },
      })}
    >
      <p className="mb-4 text-sm text-muted">{t("token.rotateHint")}</p>
      <SelectField
        form={form}
        name="grace"
        label={t("token.rotateGrace")}
        hint={t("token.rotateGraceHint")}
        choices={GRACES.map(([key, value]) => ({ value, label: t(key) }))}
      />
    </DrawerForm>
  );
}
