// A key's name and caps, opened in the place of its row; saved at once, by itself.
// Refuses what is no whole number from 0 on.
import { useEffect, useRef, useState } from "react";
import { useT } from "../../../lib/i18n.ts";
import type { ChannelKeyState } from "../../../lib/wire.ts";
import { BusyButton } from "../../../ui/busy-button.tsx";
import { Labelled } from "../labelled.tsx";
import type { KeyAction } from "./use-keys.ts";

const MAX_LABEL = 64;
const MAX_CAP = 2_000_000_000;
const CAPS = [
  ["max_concurrency", "form.limits.atOnce"],
  ["rpm_limit", "form.limits.rpm"],
  ["tpm_limit", "form.limits.tpm"],
] as const;

const textOf = (cap: number): string => (cap > 0 ? String(cap) : "");
/** NaN: it is none. */
const capOf = (text: string): number => (/^\d*$/.test(text.trim()) ? Number(text) : Number.NaN);

export interface KeyFormProps {
  keyState: ChannelKeyState;
  name: string;
  isBusy: boolean;
  onSave: (edit: KeyAction) => void;
  onCancel: () => void;
}

export function KeyForm({ keyState, name, isBusy, onSave, onCancel }: KeyFormProps) {
  const t = useT();
  const [label, setLabel] = useState(keyState.label);
  const [caps, setCaps] = useState(() => ({
    max_concurrency: textOf(keyState.max_concurrency),
    rpm_limit: textOf(keyState.rpm_limit),
    tpm_limit: textOf(keyState.tpm_limit),
  }));
  const first = useRef<HTMLInputElement>(null);
  // What opened it is gone.
  useEffect(() => first.current?.focus(), []);
  const isWrong = (text: string): boolean => !(capOf(text) <= MAX_CAP);
  const isAnyWrong = Object.values(caps).some(isWrong);
  const save = () => {
    if (isAnyWrong || isBusy) return;
    onSave({
      action: "edit_key",
      key_id: keyState.key_id,
      label: label.trim(),
      max_concurrency: capOf(caps.max_concurrency),
      rpm_limit: capOf(caps.rpm_limit),
      tpm_limit: capOf(caps.tpm_limit),
    });
  };
  return (
    <div
      className="grid gap-3 rounded-box border border-base-300 bg-base-200 p-3"
      role="group"
      aria-label={t("channel.keys.editName", { name })}
      onKeyDown={(event) => {
        const isEnter = event.key === "Enter" && event.target instanceof HTMLInputElement;
        if (!isEnter && event.key !== "Escape") return;
        // Neither the drawer's form nor the drawer is meant.
        event.preventDefault();
        event.stopPropagation();
        if (isEnter) save();
        else onCancel();
      }}
    >
      <Labelled label={t("channel.keys.label")}>
        {(id) => (
          <input
            id={id}
            ref={first}
            className="input"
            maxLength={MAX_LABEL}
            autoComplete="off"
            value={label}
            onChange={(event) => setLabel(event.target.value)}
          />
        )}
      </Labelled>
      <div className="grid gap-2 sm:grid-cols-3">
        {CAPS.map(([field, text]) => (
          <Labelled key={field} label={t(text)}>
            {(id) => (
              <input
                id={id}
                className="input tabular-nums"
                inputMode="numeric"
                autoComplete="off"
                aria-invalid={isWrong(caps[field]) || undefined}
                value={caps[field]}
                onChange={(event) => setCaps({ ...caps, [field]: event.target.value })}
              />
            )}
          </Labelled>
        ))}
      </div>
      <p
        className={`text-xs ${isAnyWrong ? "text-error" : "text-muted"}`}
        role={isAnyWrong ? "alert" : undefined}
      >
        {t(isAnyWrong ? "form.limits.badNumber" : "channel.keys.capHint")}
      </p>
      <div className="flex gap-2">
        <BusyButton className="btn-sm btn-primary" isBusy={isBusy} onPress={save}>
          {t("common.save")}
        </BusyButton>
        <button type="button" className="btn btn-sm btn-ghost" onClick={onCancel}>
          {t("common.cancel")}
        </button>
      </div>
    </div>
  );
}
