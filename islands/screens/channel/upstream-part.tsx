// What the upstream's own list of models proposes for a channel: models to add, models that are gone, and who decides. Refuses to
// change the channel by looking.
import { useSignals } from "@preact/signals-react/runtime";
import { useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { timeZone } from "../../lib/boot.ts";
import type { Form } from "../../lib/form.ts";
import { formatDateTime } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { ModelProposal } from "../../lib/wire.ts";
import { Section } from "../../ui/form.tsx";
import type { ChannelValues } from "./values.ts";

const CHECK = "upstream_model_update_check_enabled";
const AUTO = "upstream_model_update_auto_sync_enabled";

/** The text of the settings as an object; undefined while it is none. */
function settingsOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = text.trim() === "" ? {} : JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

export default function UpstreamPart({ form, id }: { form: Form<ChannelValues>; id: number }) {
  const t = useT();
  useSignals();
  const [found, setFound] = useState<ModelProposal>();
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const settings = settingsOf(form.values.otherGates);
  const take = (asked: Promise<ModelProposal>): void => {
    setBusy(true);
    setFailure(undefined);
    asked.then(setFound, (error: unknown) => setFailure(failureMessage(error))).finally(() => setBusy(false));
  };
  const decide = (change: { add_models?: string[]; remove_models?: string[]; ignore_models?: string[] }) =>
    take(call(api.channel.upstream_updates.apply.post({ id, ...change })));
  const toggle = (name: string, isOn: boolean) =>
    form.set("otherGates", JSON.stringify({ ...settings, [name]: isOn }));
  return (
    <Section title={t("channel.upstream.title")}>
      {[CHECK, AUTO].map((name) => (
        <label key={name} className="mb-2 flex items-start gap-2">
          <input
            type="checkbox"
            className="checkbox mt-0.5"
            checked={settings?.[name] === true}
            disabled={settings === undefined}
            onChange={(event) => toggle(name, event.target.checked)}
          />
          <span>{t(`channel.upstream.${name === CHECK ? "check" : "auto"}`)}</span>
        </label>
      ))}
      <p className="mb-2 flex flex-wrap items-center gap-2 text-xs text-muted">
        <button
          type="button"
          className="btn btn-sm btn-default"
          disabled={isBusy}
          onClick={() => take(call(api.channel.upstream_updates.detect.post({ id })))}
        >
          {t("channel.upstream.look")}
        </button>
        {found && found.last_check_time > 0
          ? t("channel.upstream.lookedAt", {
              time: formatDateTime(found.last_check_time * 1000, timeZone.value).slice(5, 16),
            })
          : null}
        {found?.can_undo ? (
          <button
            type="button"
            className="btn btn-sm btn-ghost text-primary ml-auto"
            disabled={isBusy}
            onClick={() => take(call(api.channel.upstream_updates.undo.post({ id })))}
          >
            {t("channel.upstream.undo")}
          </button>
        ) : null}
      </p>
      {failure || found?.problem ? (
        <p role="alert" className="mb-2 text-xs text-error">
          {failure || found?.problem}
        </p>
      ) : null}
      {found && found.add_models.length + found.remove_models.length === 0 ? (
        <p role="status" className="mb-4 text-xs text-muted">
          {t("channel.upstream.same")}
        </p>
      ) : null}
      <Names
        title={t("channel.upstream.new")}
        names={found?.add_models ?? []}
        action={t("channel.upstream.add")}
        isBusy={isBusy}
        onTake={(names) => decide({ add_models: names })}
        onIgnore={(names) => decide({ ignore_models: names })}
      />
      <Names
        title={t("channel.upstream.gone")}
        names={found?.remove_models ?? []}
        action={t("channel.upstream.remove")}
        isBusy={isBusy}
        onTake={(names) => decide({ remove_models: names })}
        onIgnore={(names) => decide({ ignore_models: names })}
      />
    </Section>
  );
}

interface NamesProps {
  title: string;
  names: readonly string[];
  action: string;
  isBusy: boolean;
  onTake: (names: string[]) => void;
  onIgnore: (names: string[]) => void;
}

const SHOWN = 50;

function Names({ title, names, action, isBusy, onTake, onIgnore }: NamesProps) {
  const t = useT();
  if (names.length === 0) return null;
  return (
    <div className="mb-4 rounded-box border border-base-300 bg-base-200 p-3">
      <p className="mb-1 flex items-center gap-2">
        <span className="text-dense font-semibold">
          {title} · {names.length}
        </span>
        <button
          type="button"
          className="btn btn-sm btn-ghost text-primary ml-auto"
          disabled={isBusy}
          onClick={() => onTake([...names])}
        >
          {t("channel.upstream.all", { action })}
        </button>
      </p>
      <ul>
        {names.slice(0, SHOWN).map((name) => (
          <li key={name} className="flex min-h-7 flex-wrap items-baseline gap-x-2">
            <code className="min-w-0 wrap-anywhere">{name}</code>
            <span className="ml-auto flex gap-1">
              <button
                type="button"
                className="btn btn-xs btn-ghost text-primary"
                aria-label={`${action}: ${name}`}
                disabled={isBusy}
                onClick={() => onTake([name])}
              >
                {action}
              </button>
              <button
                type="button"
                className="btn btn-xs btn-ghost"
                aria-label={`${t("channel.upstream.ignore")}: ${name}`}
                disabled={isBusy}
                onClick={() => onIgnore([name])}
              >
                {t("channel.upstream.ignore")}
              </button>
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
