// One request rule: what it does, where, with what, and when; fields follow what is chosen.
// Refuses to take what the server would refuse: a half rule stays in its form.
import { Plus, X } from "lucide-react";
import { useEffect, useId, useRef, useState } from "react";
import {
  MATCH_MODES,
  MODE_PARTS,
  readRequestRules,
  RULE_MODES,
} from "../../../../src/shared/request-rules.ts";
import type { MatchMode, RuleMode } from "../../../../src/shared/request-rules.ts";
import { useT } from "../../../lib/i18n.ts";
import { Labelled } from "../labelled.tsx";
import { draftOf, NEW_CONDITION, operationOf } from "./words.ts";
import type { ConditionDraft, OperationDraft, Stored } from "./words.ts";

const CONTEXT_PATHS = [
  "model",
  "original_model",
  "upstream_model",
  "user_id",
  "user_group",
  "token_group",
  "using_group",
  "request_path",
  "request_headers.user-agent",
  "is_retry",
  "retry_index",
  "last_error.status_code",
  "is_channel_test",
];
const BODY_PATHS = [
  "temperature",
  "top_p",
  "max_tokens",
  "stream_options",
  "reasoning_effort",
  "messages.-1.content",
  "tools.*.strict",
  "metadata",
];
const HEADER_NAMES = ["anthropic-beta", "user-agent", "x-request-id", "openai-beta"];
const KEEPING: ReadonlySet<RuleMode> = new Set([
  "set",
  "append",
  "prepend",
  "copy",
  "move",
  "set_header",
  "copy_header",
  "move_header",
  "pass_headers",
]);
const EMPTY_TO: ReadonlySet<RuleMode> = new Set(["replace", "regex_replace"]);

/** Which inputs a mode has. */
function partsOf(mode: RuleMode) {
  const parts = MODE_PARTS[mode];
  const has = (...names: string[]): boolean => parts.some((part) => names.includes(part));
  return {
    path: has("path") || mode === "prune_objects",
    from: has("from", "pattern", "sync"),
    to: has("to", "sync") || EMPTY_TO.has(mode),
    value: has("value", "text", "names", "error"),
  };
}

function TextInput(props: {
  label: string;
  value: string;
  onChange: (text: string) => void;
  suggestions?: readonly string[];
}) {
  const list = useId();
  return (
    <Labelled label={props.label}>
      {(id) => (
        <>
          <input
            id={id}
            className="input mono"
            spellCheck={false}
            autoComplete="off"
            list={props.suggestions ? list : undefined}
            value={props.value}
            onChange={(event) => props.onChange(event.target.value)}
          />
          {props.suggestions ? (
            <datalist id={list}>
              {props.suggestions.map((each) => (
                <option key={each} value={each} />
              ))}
            </datalist>
          ) : null}
        </>
      )}
    </Labelled>
  );
}

function Check({
  label,
  isOn,
  onChange,
}: {
  label: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}) {
  return (
    <label className="flex min-h-8 cursor-pointer items-center gap-2 text-dense">
      <input
        type="checkbox"
        className="checkbox checkbox-sm"
        checked={isOn}
        onChange={(event) => onChange(event.target.checked)}
      />
      {label}
    </label>
  );
}

function ConditionRow(props: {
  condition: ConditionDraft;
  onChange: (changes: Partial<ConditionDraft>) => void;
  onRemove: () => void;
}) {
  const t = useT();
  const { condition, onChange } = props;
  return (
    <fieldset
      className="grid gap-2 rounded-box border border-base-300 p-2"
      aria-label={t("channel.rule.condition")}
    >
      <div className="grid gap-2 sm:grid-cols-3">
        <TextInput
          label={t("channel.rule.field")}
          value={condition.path}
          suggestions={CONTEXT_PATHS}
          onChange={(path) => onChange({ path })}
        />
        <Labelled label={t("channel.rule.match")}>
          {(id) => (
            <select
              id={id}
              className="select"
              value={condition.mode}
              onChange={(event) => onChange({ mode: event.target.value as MatchMode })}
            >
              {MATCH_MODES.map((mode) => (
                <option key={mode} value={mode}>
                  {t(`channel.rule.match.${mode}`)}
                </option>
              ))}
            </select>
          )}
        </Labelled>
        <TextInput
          label={t("channel.rule.value")}
          value={condition.value}
          onChange={(value) => onChange({ value })}
        />
      </div>
      <div className="flex flex-wrap items-center gap-x-4">
        <Check
          label={t("channel.rule.invert")}
          isOn={condition.invert}
          onChange={(invert) => onChange({ invert })}
        />
        <Check
          label={t("channel.rule.passMissing")}
          isOn={condition.passMissing}
          onChange={(passMissing) => onChange({ passMissing })}
        />
        <button
          type="button"
          className="btn btn-ghost btn-sm btn-square ml-auto"
          aria-label={t("channel.rule.removeCondition")}
          title={t("channel.rule.removeCondition")}
          onClick={props.onRemove}
        >
          <X aria-hidden size={14} />
        </button>
      </div>
    </fieldset>
  );
}

function Conditions({
  draft,
  set,
}: {
  draft: OperationDraft;
  set: (changes: Partial<OperationDraft>) => void;
}) {
  const t = useT();
  const { conditions } = draft;
  return (
    <div className="grid gap-2">
      {conditions.length > 1 ? (
        <Labelled label={t("channel.rule.logic")}>
          {(id) => (
            <select
              id={id}
              className="select"
              value={draft.logic}
              onChange={(event) => set({ logic: event.target.value === "AND" ? "AND" : "OR" })}
            >
              <option value="AND">{t("channel.rule.logic.AND")}</option>
              <option value="OR">{t("channel.rule.logic.OR")}</option>
            </select>
          )}
        </Labelled>
      ) : null}
      {conditions.map((condition, index) => (
        <ConditionRow
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          condition={condition}
          onChange={(changes) => set({ conditions: conditions.with(index, { ...condition, ...changes }) })}
          onRemove={() => set({ conditions: conditions.toSpliced(index, 1) })}
        />
      ))}
      <div>
        <button
          type="button"
          className="btn btn-ghost btn-sm"
          onClick={() => set({ conditions: [...conditions, NEW_CONDITION] })}
        >
          <Plus aria-hidden size={14} />
          {t("channel.rule.addCondition")}
        </button>
      </div>
    </div>
  );
}

export interface RuleFormProps {
  /** undefined: a new one. */
  operation: Stored | undefined;
  onDone: (operation: Stored) => void;
  onCancel: () => void;
}

export function RuleForm({ operation, onDone, onCancel }: RuleFormProps) {
  const t = useT();
  const [draft, setDraft] = useState<OperationDraft>(() =>
    operation ? draftOf(operation) : { ...draftOf(undefined), logic: "AND" },
  );
  const [isTried, setTried] = useState(false);
  const first = useRef<HTMLSelectElement>(null);
  // What opened it is gone.
  useEffect(() => first.current?.focus(), []);
  const set = (changes: Partial<OperationDraft>): void => setDraft((before) => ({ ...before, ...changes }));
  const { mode } = draft;
  const shows = partsOf(mode);
  const isHeader = mode.endsWith("_header") || mode === "pass_headers";
  const names = isHeader ? HEADER_NAMES : BODY_PATHS;
  const made = operationOf(draft, shows);
  const { problem } = readRequestRules({ operations: [made] });
  const finish = (): void => {
    setTried(true);
    if (!problem) onDone(made);
  };
  return (
    <div
      className="grid gap-3 rounded-box border border-base-300 bg-base-200 p-3"
      role="group"
      aria-label={t("channel.rule.form")}
    >
      <Labelled label={t("channel.rule.mode")}>
        {(id) => (
          <select
            id={id}
            ref={first}
            className="select"
            value={mode}
            onChange={(event) =>
              set({ mode: RULE_MODES.find((each) => each === event.target.value) ?? "set" })
            }
          >
            {RULE_MODES.map((each) => (
              <option key={each} value={each}>
                {t(`channel.rule.mode.${each}`)}
              </option>
            ))}
          </select>
        )}
      </Labelled>
      <div className="grid gap-2 sm:grid-cols-2">
        {shows.path ? (
          <TextInput
            label={t(isHeader ? "channel.rule.header" : "channel.rule.path")}
            value={draft.path}
            suggestions={names}
            onChange={(path) => set({ path })}
          />
        ) : null}
        {shows.from ? (
          <TextInput
            label={t(mode === "regex_replace" ? "channel.rule.pattern" : "channel.rule.from")}
            value={draft.from}
            onChange={(from) => set({ from })}
          />
        ) : null}
        {shows.to ? (
          <TextInput
            label={t(EMPTY_TO.has(mode) ? "channel.rule.replacement" : "channel.rule.to")}
            value={draft.to}
            onChange={(to) => set({ to })}
          />
        ) : null}
        {shows.value ? (
          <TextInput
            label={t(mode === "return_error" ? "channel.rule.message" : "channel.rule.value")}
            value={draft.value}
            onChange={(value) => set({ value })}
          />
        ) : null}
        {mode === "return_error" ? (
          <>
            <TextInput
              label={t("channel.rule.status")}
              value={draft.status}
              suggestions={["400", "403", "429", "503"]}
              onChange={(status) => set({ status })}
            />
            <TextInput label={t("channel.rule.code")} value={draft.code} onChange={(code) => set({ code })} />
          </>
        ) : null}
      </div>
      {mode === "sync_fields" ? <p className="text-xs text-muted">{t("channel.rule.syncHint")}</p> : null}
      {mode === "return_error" ? (
        <Check
          label={t("channel.rule.skipRetry")}
          isOn={draft.skipRetry}
          onChange={(skipRetry) => set({ skipRetry })}
        />
      ) : null}
      {KEEPING.has(mode) ? (
        <Check
          label={t("channel.rule.keepOrigin")}
          isOn={draft.keepOrigin}
          onChange={(keepOrigin) => set({ keepOrigin })}
        />
      ) : null}
      <Conditions draft={draft} set={set} />
      {isTried && problem ? (
        <p className="text-xs text-error" role="alert">
          {t(`channel.rule.problem.${problem.code}`, problem.params)}
        </p>
      ) : null}
      <div className="flex gap-2">
        <button type="button" className="btn btn-sm btn-default" onClick={finish}>
          {t("channel.rule.take")}
        </button>
        <button type="button" className="btn btn-sm btn-ghost" onClick={onCancel}>
          {t("common.cancel")}
        </button>
      </div>
    </div>
  );
}
