// The rules of affinity as a list that folds: which requests each is for, and where the name of a session stands; raw JSON beside it.
// Refuses to lose what it does not draw: members that it has no field for stay as they were stored.
import { Plus, Trash2 } from "lucide-react";
import { useId, useState } from "react";
import type { ReactNode } from "react";
import { useT } from "../../../lib/i18n.ts";
import type { OptionEditorProps } from "../editor-props.ts";
import { besideOf, JsonBeside, JsonText, newId, useRowsOf } from "./json-beside.tsx";

const SOURCES = ["request_header", "gjson", "context_int", "context_string"] as const;

interface Source {
  type: string;
  key: string;
  path: string;
}

interface Rule {
  id: number;
  /** As it is stored; the fields below stand above its members. */
  stored: Record<string, unknown>;
}

function listOf(text: string): Rule[] | undefined {
  try {
    const list = JSON.parse(text.trim() === "" ? "[]" : text) as unknown;
    if (!Array.isArray(list)) return undefined;
    const isSound = list.every((each) => typeof each === "object" && each !== null && !Array.isArray(each));
    if (!isSound) return undefined;
    return (list as Record<string, unknown>[]).map((stored) => ({ id: newId(), stored }));
  } catch {
    return undefined;
  }
}

const RULES = {
  read: listOf,
  write: (rules: readonly Rule[]) =>
    JSON.stringify(
      rules.map(({ stored }) => stored),
      null,
      2,
    ),
};

const BLANK = { name: "", key_sources: [{ type: "request_header", key: "", path: "" }] };

const textOf = (value: unknown): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : "";
const wordsOf = (value: unknown): string[] => (Array.isArray(value) ? value.map(textOf) : []);
const sourcesOf = (value: unknown): Source[] =>
  Array.isArray(value)
    ? (value as Record<string, unknown>[]).map((each) => ({
        type: textOf(each?.["type"]),
        key: textOf(each?.["key"]),
        path: textOf(each?.["path"]),
      }))
    : [];

export default function AffinityRules(props: OptionEditorProps) {
  const t = useT();
  const { value, onChange, disabled, option } = props;
  const { rows, setRows } = useRowsOf(value, onChange, RULES);
  const rules = rows ?? [];
  const [opened, setOpened] = useState<number>();
  const add = () => {
    const rule = { id: newId(), stored: { ...BLANK } };
    setOpened(rule.id);
    setRows([...rules, rule]);
  };
  return (
    <JsonBeside {...besideOf(props)} label={t(`option.title.${option.key}`)} isReadable={rows !== undefined}>
      <ul className="flex flex-col gap-2" aria-label={t(`option.title.${option.key}`)}>
        {rules.map((rule, at) => (
          <li key={rule.id}>
            <RuleFields
              number={at + 1}
              stored={rule.stored}
              isOpen={rule.id === opened}
              disabled={disabled}
              onChange={(stored) =>
                setRows(rules.map((each) => (each === rule ? { ...rule, stored } : each)))
              }
              onRemove={() => setRows(rules.filter((each) => each !== rule))}
            />
          </li>
        ))}
      </ul>
      <button type="button" className="btn btn-sm btn-default mt-2" disabled={disabled} onClick={add}>
        <Plus aria-hidden size={14} />
        {t("editor.affinity.add")}
      </button>
    </JsonBeside>
  );
}

interface RuleFieldsProps {
  /** From 1. */
  number: number;
  stored: Record<string, unknown>;
  isOpen: boolean;
  disabled: boolean | undefined;
  onChange: (stored: Record<string, unknown>) => void;
  onRemove: () => void;
}

function RuleFields({ number, stored, isOpen, disabled, onChange, onRemove }: RuleFieldsProps) {
  const t = useT();
  const name = textOf(stored["name"]);
  const put = (part: Record<string, unknown>) => onChange({ ...stored, ...part });
  const words = (member: string) => (
    <Words
      label={t(`editor.affinity.${member}`)}
      words={wordsOf(stored[member])}
      disabled={disabled}
      onChange={(list) => put({ [member]: list })}
    />
  );
  const flag = (member: string, byDefault: boolean) => (
    <label className="flex items-center gap-2">
      <input
        type="checkbox"
        className="checkbox checkbox-sm"
        checked={typeof stored[member] === "boolean" ? stored[member] : byDefault}
        disabled={disabled}
        onChange={(event) => put({ [member]: event.target.checked })}
      />
      {t(`editor.affinity.${member}`)}
    </label>
  );
  return (
    <details className="rounded-box border border-base-300 p-3" open={isOpen || undefined}>
      <summary className="cursor-pointer wrap-anywhere">
        {name === "" ? t("editor.affinity.unnamed", { number }) : name}
      </summary>
      <div className="mt-3 grid gap-3">
        <Labelled label={t("editor.affinity.name")}>
          {(id) => (
            <input
              id={id}
              className="input w-full"
              autoComplete="off"
              disabled={disabled}
              value={name}
              onChange={(event) => put({ name: event.target.value })}
            />
          )}
        </Labelled>
        {words("model_regex")}
        {words("path_regex")}
        {words("user_agent_include")}
        <Sources
          sources={sourcesOf(stored["key_sources"])}
          disabled={disabled}
          onChange={(list) => put({ key_sources: list })}
        />
        <Labelled label={t("editor.affinity.value_regex")}>
          {(id) => (
            <input
              id={id}
              className="input mono w-full"
              autoComplete="off"
              spellCheck={false}
              disabled={disabled}
              value={textOf(stored["value_regex"])}
              onChange={(event) => put({ value_regex: event.target.value })}
            />
          )}
        </Labelled>
        <Labelled label={t("editor.affinity.ttl_seconds")}>
          {(id) => (
            <input
              id={id}
              className="input w-32 tabular-nums"
              inputMode="numeric"
              autoComplete="off"
              disabled={disabled}
              value={textOf(stored["ttl_seconds"])}
              onChange={(event) =>
                put({ ttl_seconds: Number(event.target.value.replaceAll(/\D/g, "")) || 0 })
              }
            />
          )}
        </Labelled>
        {flag("include_model_name", true)}
        {flag("skip_retry_on_failure", false)}
        <Template
          value={stored["param_override_template"]}
          disabled={disabled}
          onChange={(template) => put({ param_override_template: template })}
        />
        <button
          type="button"
          className="btn btn-sm btn-ghost justify-self-start"
          disabled={disabled}
          onClick={onRemove}
        >
          <Trash2 aria-hidden size={14} />
          {t("editor.affinity.remove")}
        </button>
      </div>
    </details>
  );
}

function Labelled({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div>
      <label className="mb-1 block text-dense" htmlFor={id}>
        {label}
      </label>
      {children(id)}
    </div>
  );
}

interface WordsProps {
  label: string;
  words: readonly string[];
  disabled: boolean | undefined;
  onChange: (words: string[]) => void;
}

/** A word each line; what is being typed stays as it is typed. */
function Words({ label, words, disabled, onChange }: WordsProps) {
  const stored = words.join("\n");
  const [typed, setTyped] = useState({ text: stored, of: stored });
  return (
    <Labelled label={label}>
      {(id) => (
        <textarea
          id={id}
          className="textarea mono min-h-10 w-full"
          rows={Math.min(6, Math.max(1, words.length))}
          spellCheck={false}
          disabled={disabled}
          value={typed.of === stored ? typed.text : stored}
          onChange={(event) => {
            const list = event.target.value.split("\n").map((line) => line.trim());
            const next = list.filter((line) => line !== "");
            setTyped({ text: event.target.value, of: next.join("\n") });
            onChange(next);
          }}
        />
      )}
    </Labelled>
  );
}

interface SourcesProps {
  sources: readonly Source[];
  disabled: boolean | undefined;
  onChange: (sources: Source[]) => void;
}

function Sources({ sources, disabled, onChange }: SourcesProps) {
  const t = useT();
  const change = (at: number, part: Partial<Source>) =>
    onChange(sources.map((each, index) => (index === at ? { ...each, ...part } : each)));
  return (
    <fieldset>
      <legend className="mb-1 text-dense">{t("editor.affinity.sources")}</legend>
      <ol className="flex flex-col gap-2">
        {sources.map((source, at) => (
          <li key={at} className="flex flex-wrap items-center gap-2">
            <select
              className="select w-auto max-sm:w-full"
              aria-label={t("editor.affinity.sourceType", { number: at + 1 })}
              disabled={disabled}
              value={source.type}
              onChange={(event) => change(at, { type: event.target.value, key: "", path: "" })}
            >
              {SOURCES.map((type) => (
                <option key={type} value={type}>
                  {t(`editor.affinity.source.${type}`)}
                </option>
              ))}
            </select>
            <input
              className="input mono min-w-0 flex-1"
              aria-label={t("editor.affinity.sourceName", { number: at + 1 })}
              placeholder={
                source.type === "gjson"
                  ? "metadata.user_id"
                  : source.type === "request_header"
                    ? "x-session-id"
                    : "token_id"
              }
              autoComplete="off"
              spellCheck={false}
              disabled={disabled}
              value={source.type === "gjson" ? source.path : source.key}
              onChange={(event) =>
                change(
                  at,
                  source.type === "gjson" ? { path: event.target.value } : { key: event.target.value },
                )
              }
            />
            <button
              type="button"
              className="btn btn-ghost btn-square btn-sm"
              aria-label={t("editor.affinity.removeSource", { number: at + 1 })}
              disabled={disabled}
              onClick={() => onChange(sources.filter((_, index) => index !== at))}
            >
              <Trash2 aria-hidden size={16} />
            </button>
          </li>
        ))}
      </ol>
      <button
        type="button"
        className="btn btn-sm btn-ghost mt-1"
        disabled={disabled}
        onClick={() => onChange([...sources, { type: "request_header", key: "", path: "" }])}
      >
        <Plus aria-hidden size={14} />
        {t("editor.affinity.addSource")}
      </button>
    </fieldset>
  );
}

interface TemplateProps {
  value: unknown;
  disabled: boolean | undefined;
  onChange: (template: unknown) => void;
}

/** Request rules as JSON, as in a channel's; what cannot be read yet changes nothing. */
function Template({ value, disabled, onChange }: TemplateProps) {
  const t = useT();
  const stored = JSON.stringify(value ?? {});
  const [text, setText] = useState({ typed: stored, of: stored });
  return (
    <div>
      <p className="mb-1 text-dense">{t("editor.affinity.template")}</p>
      <JsonText
        label={t("editor.affinity.template")}
        value={text.of === stored ? text.typed : stored}
        disabled={disabled}
        onChange={(typed) => {
          let next: unknown;
          try {
            next = JSON.parse(typed.trim() === "" ? "{}" : typed) as unknown;
          } catch {
            setText({ typed, of: stored });
            return;
          }
          setText({ typed, of: JSON.stringify(next) });
          onChange(next);
        }}
      />
    </div>
  );
}
