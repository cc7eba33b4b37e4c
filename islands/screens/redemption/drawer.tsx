// The drawer that makes a batch of redemption codes, changes an unused one, or shows what became of the others.
// Refuses values of nothing, more than a hundred codes at once, and changes of used and disabled codes.
import { useState } from "react";
import { api, call } from "../../lib/api.ts";
import { localText, secondsOf } from "../../lib/date-field.ts";
import { status } from "../../lib/boot.ts";
import { useForm } from "../../lib/form.ts";
import { formatQuota, maskSecret } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { patchUrl } from "../../lib/url-state.ts";
import { Money, StatusDot, When } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer, DrawerForm } from "../../ui/drawer.tsx";
import { charactersIn, MAX_CODE_NAME } from "../../../src/shared/name-limits.ts";
import { Field, NumberField, TextField } from "../../ui/form.tsx";
import { MoneyField } from "../../ui/money-field.tsx";
import { MAX_CODES, NEW_CODE, quotaPresets, STATUS, UNUSED, USED } from "./row.ts";
import type { CodeBatch, CodeValues } from "./row.ts";
import type { CodeRow } from "../../lib/wire.ts";

export interface CodeDrawerProps {
  /** undefined: new codes. */
  row: CodeRow | undefined;
  onClose: () => void;
  /** The new codes in clear; undefined after a change. */
  onSaved: (batch: CodeBatch | undefined) => void;
}

export default function CodeDrawer(props: CodeDrawerProps) {
  const { row, onClose } = props;
  return row && row.status !== UNUSED ? <CodeFacts row={row} onClose={onClose} /> : <CodeForm {...props} />;
}

/** A date that has passed already; the one that an old code has may stay. */
function isPast(expires: string, row: CodeRow | undefined): boolean {
  const isKept = row !== undefined && expires === localText(row.expired_time);
  const end = secondsOf(expires) ?? 0;
  return !isKept && end > 0 && end * 1000 <= Date.now();
}

function CodeForm({ row, onClose, onSaved }: CodeDrawerProps) {
  const t = useT();
  const [isBadDate, setBadDate] = useState(false);
  const form = useForm<CodeValues>({
    initial: row
      ? { name: row.name, quota: row.quota, count: 1, expires: localText(row.expired_time) }
      : NEW_CODE,
    ...(row ? { awayKey: `redemption ${row.id}` } : { draftKey: "redemption" }),
    validate: ({ name, quota, count, expires }) => ({
      ...(charactersIn(name.trim()) > MAX_CODE_NAME ? { name: t("redemption.badName") } : {}),
      ...(quota === undefined || !(quota > 0) ? { quota: t("redemption.badQuota") } : {}),
      ...(row === undefined &&
      (count === undefined || !Number.isInteger(count) || count < 1 || count > MAX_CODES)
        ? { count: t("redemption.badCount") }
        : {}),
      ...(isBadDate || isPast(expires, row) ? { expires: t("redemption.badDate") } : {}),
    }),
  });
  const quota = form.values.quota || 0;
  const count = form.values.count ?? 1;

  const expiredTime = Math.max(0, secondsOf(form.values.expires) ?? 0);
  const save = async (values: CodeValues, changed: Partial<CodeValues>) => {
    // An empty name becomes the value, as the specification says.
    const name = values.name.trim() || formatQuota(quota);
    if (row) {
      await call(
        api.redemption.put({
          id: row.id,
          name,
          quota,
          ...(changed.expires === undefined ? {} : { expired_time: expiredTime }),
        }),
      );
      onSaved(undefined);
      return;
    }
    const keys = await call(api.redemption.post({ name, quota, count, expired_time: expiredTime }));
    onSaved({ keys: keys as string[], name, quota });
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
      curl={({ name }) =>
        row
          ? {
              method: "PUT",
              path: "/api/redemption/",
              body: { id: row.id, name, quota, expired_time: expiredTime },
            }
          : {
              method: "POST",
              path: "/api/redemption/",
              body: { name: name || formatQuota(quota), quota, count, expired_time: expiredTime },
            }
      }
    >
      <TextField
        form={form}
        name="name"
        label={t("redemption.name")}
        hint={t("redemption.nameHint", { value: formatQuota(quota) })}
        limit={MAX_CODE_NAME}
        input={{ autoFocus: true, autoComplete: "off" }}
      />
      <MoneyField
        form={form}
        name="quota"
        label={t("redemption.value")}
        isRequired
        presets={quotaPresets(status.peek().quota_per_unit)}
        presetsLabel={t("redemption.presets")}
      />
      <Field form={form} name="expires" label={t("redemption.expires")} hint={t("redemption.expiresHint")}>
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            className="input"
            value={form.values.expires}
            onChange={(event) => {
              setBadDate(event.target.validity.badInput);
              form.set("expires", event.target.value);
            }}
            // A date that was typed in part reads as empty, which would mean "for ever".
            onInput={(event) => setBadDate(event.currentTarget.validity.badInput)}
          />
        )}
      </Field>
      {row ? null : (
        <NumberField
          form={form}
          name="count"
          label={t("redemption.count")}
          hint={
            count > 1 && quota > 0
              ? t("redemption.countSum", { sum: formatQuota(quota * count) })
              : t("redemption.countHint")
          }
          isRequired
          min={1}
          max={MAX_CODES}
          step={1}
        />
      )}
    </DrawerForm>
  );
}

function CodeFacts({ row, onClose }: { row: CodeRow; onClose: () => void }) {
  const t = useT();
  const [tone, key] = STATUS[row.status] ?? ["off", "common.unknown"];
  const facts: [string, React.ReactNode][] = [
    [t("redemption.statusTitle"), <StatusDot tone={tone}>{t(key)}</StatusDot>],
    [
      t("redemption.code"),
      <span className="inline-flex items-center gap-1 mono">
        {maskSecret(row.key)}
        <CopyButton text={row.key} label={t("redemption.copyOne")} />
      </span>,
    ],
    [t("redemption.value"), <Money quota={row.quota} />],
    [t("redemption.createdAt"), <When at={row.created_time} isAbsolute />],
    [t("redemption.expires"), <When at={row.expired_time} never={t("common.never")} isAbsolute />],
  ];
  if (row.status === USED)
    facts.push(
      [
        t("redemption.usedBy"),
        <a className="link" href={patchUrl("/user", { keyword: row.used_user_id, edit: row.used_user_id })}>
          {row.used_username || `#${row.used_user_id}`}
        </a>,
      ],
      [t("redemption.usedAt"), <When at={row.redeemed_time} isAbsolute />],
    );
  return (
    <Drawer isOpen width="peek" title={row.name} onClose={onClose}>
      <dl className="facts">
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <p className="mt-4 text-muted">
        {t(row.status === USED ? "redemption.usedStays" : "redemption.disabledStays")}
      </p>
      {row.status === USED && row.used_username !== "" ? (
        <p className="mt-3">
          <a className="link" href={patchUrl("/log", { username: row.used_username, type: 1 })}>
            {t("redemption.toLog")}
          </a>
        </p>
      ) : null}
    </Drawer>
  );
}
