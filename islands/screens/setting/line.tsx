// One option on the screen: name, explanation, control, its default, and what was wrong with what was typed.
// Refuses to hide that something differs from its default: a mark says so, with the way back beside it.
import { useSignals } from "@preact/signals-react/runtime";
import { RotateCcw } from "lucide-react";
import type { ReactNode } from "react";
import { t, useT } from "../../lib/i18n.ts";
import { lazyPart, useIsAlive } from "../../lib/lazy-part.tsx";
import { PlainControl, PLAIN_KINDS, worthOf } from "./control.tsx";
import type { OptionRow } from "./editor-props.ts";
import type { LateControlProps } from "./late-control.tsx";
import { editors } from "./late-editors.ts";
import { helpOf, shownValue, titleOf } from "./names.ts";
import type { Settings } from "./state.ts";

const LateControl = lazyPart<LateControlProps>(
  () => import("./late-control.tsx"),
  () => <div className="skeleton h-9" aria-hidden />,
);

/** The option's own editor, else the control of its kind. */
function Control({ isTyped, onRevert, ...props }: LateControlProps) {
  useSignals();
  const { key, kind, secret } = props.option;
  const Editor = editors.value?.editorOf(key);
  if (Editor) return <Editor {...props} />;
  if (PLAIN_KINDS.has(kind) && !secret) return <PlainControl {...props} />;
  return <LateControl {...props} isTyped={isTyped} onRevert={onRevert} />;
}

/** Longer ones are no help beside a field. */
const LONGEST_DEFAULT = 40;
/** Kinds whose default says something in one line. */
const TOLD_DEFAULTS = new Set(["number", "choice", "text", "url", "time_zone"]);

/** Kinds that need the whole width below their name. */
const WIDE_KINDS = new Set(["long_text", "lines", "csv", "text_map", "number_map", "json_map", "json_list"]);

export interface LineProps {
  option: OptionRow;
  settings: Settings;
}

export function OptionLine(props: LineProps) {
  return props.option.kind === "switch" ? <SwitchLine {...props} /> : <ValueLine {...props} />;
}

/** The name of an option with the marks of what is special about its value. */
function Head({ option, settings }: LineProps) {
  const isTyped = settings.drafts.value.has(option.key);
  return (
    <>
      {titleOf(option)}
      {isTyped ? (
        <span className="badge badge-soft badge-primary badge-sm ml-2">{t("setting.unsaved")}</span>
      ) : option.changed && !option.secret ? (
        <span className="badge badge-ghost badge-sm ml-2">{t("setting.changed")}</span>
      ) : null}
    </>
  );
}

function Failure({ id, text }: { id: string; text: string | undefined }) {
  return text === undefined ? null : (
    <p id={id} className="mt-1 text-xs text-error" role="alert">
      {text}
    </p>
  );
}

/** A button that goes back to what the site came with. */
function ResetButton({ option, onReset }: { option: OptionRow; onReset: () => void }) {
  const label = t("setting.resetNamed", { name: titleOf(option) });
  return (
    <button
      type="button"
      className="btn btn-ghost btn-xs -mx-2 text-xs font-medium"
      aria-label={label}
      title={label}
      onClick={onReset}
    >
      <RotateCcw aria-hidden size={12} />
      {t("setting.reset")}
    </button>
  );
}

/** The address that the browser has reached the site by. */
function UseAddress({ value, onUse }: { value: string; onUse: (address: string) => void }) {
  const isAlive = useIsAlive();
  const address = isAlive ? location.origin : "";
  return address === "" || address === value ? null : (
    <button
      type="button"
      className="btn btn-ghost btn-xs -ml-2 h-auto text-xs font-medium text-left break-all"
      onClick={() => onUse(address)}
    >
      {t("setting.useAddress", { address })}
    </button>
  );
}

function Frame({ option, children }: { option: OptionRow; children: ReactNode }) {
  return (
    <div id={option.key} data-option={option.key} className="setting-line">
      {children}
    </div>
  );
}

function SwitchLine({ option, settings }: LineProps) {
  useSignals();
  useT();
  const { key } = option;
  const failure = settings.failures.value.get(key);
  const isOn = option.value === "true";
  return (
    <Frame option={option}>
      <div className="flex items-start justify-between gap-4">
        <div className="min-w-0">
          <label className="block cursor-pointer font-medium" htmlFor={`${key}-control`} id={`${key}-name`}>
            <Head option={option} settings={settings} />
          </label>
          <p className="setting-help" id={`${key}-help`}>
            {helpOf(option)}
          </p>
          <Failure id={`${key}-failure`} text={failure} />
        </div>
        <input
          id={`${key}-control`}
          type="checkbox"
          role="switch"
          className="toggle mt-0.5 flex-none"
          checked={isOn}
          aria-labelledby={`${key}-name`}
          aria-describedby={failure === undefined ? `${key}-help` : `${key}-failure`}
          onChange={() => void settings.flip(key, !isOn)}
        />
      </div>
    </Frame>
  );
}

function ValueLine({ option, settings }: LineProps) {
  useSignals();
  useT();
  const { key, kind } = option;
  // Read for the subscription: value() does not subscribe.
  void settings.drafts.value;
  const value = settings.value(key);
  const failure = settings.failures.value.get(key);
  const isWide = editors.value?.editorOf(key) !== undefined || WIDE_KINDS.has(kind);
  const isDefault = option.secret || value === option.default;
  const hasShortDefault =
    TOLD_DEFAULTS.has(kind) &&
    !option.secret &&
    option.default !== "" &&
    option.default.length <= LONGEST_DEFAULT;
  const worth = worthOf(option, value);
  return (
    <Frame option={option}>
      <div className={isWide ? "" : "setting-columns"}>
        <div className="min-w-0">
          <p className="font-medium" id={`${key}-name`}>
            <Head option={option} settings={settings} />
          </p>
          <p className="setting-help" id={`${key}-help`}>
            {helpOf(option)}
          </p>
        </div>
        <div
          className={isWide ? "mt-2 min-w-0" : "min-w-0 max-sm:mt-2"}
          onBlur={(event) => {
            if (!event.currentTarget.contains(event.relatedTarget)) settings.leave(key);
          }}
        >
          {option.isLong ? (
            <div className="skeleton h-24" aria-hidden />
          ) : (
            <Control
              option={option}
              value={value}
              onChange={(text) => settings.set(key, text)}
              failure={failure}
              labelledBy={`${key}-name`}
              describedBy={failure === undefined ? `${key}-help` : `${key}-failure`}
              isTyped={settings.drafts.value.has(key)}
              onRevert={() => settings.revert(key)}
            />
          )}
          <Failure id={`${key}-failure`} text={failure} />
          {worth !== undefined || hasShortDefault || !isDefault || key === "ServerAddress" ? (
            <p className="mt-1 flex min-h-6 flex-wrap items-center gap-x-2 text-xs text-muted">
              {worth === undefined ? null : <span>{worth}</span>}
              {hasShortDefault ? (
                <span>{t("setting.default", { value: shownValue(option, option.default) })}</span>
              ) : null}
              {key === "ServerAddress" ? (
                <UseAddress value={value} onUse={(text) => settings.set(key, text)} />
              ) : null}
              {isDefault || option.isLong ? null : (
                <ResetButton option={option} onReset={() => settings.set(key, option.default)} />
              )}
            </p>
          ) : null}
        </div>
      </div>
    </Frame>
  );
}
