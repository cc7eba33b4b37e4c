// A channel's request rules as sentences in their order: added, changed, moved and removed without JSON, which stands beside.
// Refuses to lose what it cannot show: a text that is no set of rules stays as it was typed.
import { ArrowDown, ArrowUp, GripVertical, Pencil, Plus, X } from "lucide-react";
import { useId, useRef, useState } from "react";
import { readRequestRules } from "../../../../src/shared/request-rules.ts";
import type { Form } from "../../../lib/form.ts";
import { useT } from "../../../lib/i18n.ts";
import { announce } from "../../../lib/toasts.ts";
import { Field } from "../../../ui/form.tsx";
import type { ChannelValues } from "../values.ts";
import { RuleForm } from "./rule-form.tsx";
import { fieldWords, operationWords, rulesIn, rulesText } from "./words.ts";
import type { RuleTexts, Stored } from "./words.ts";

interface RowProps {
  words: string;
  /** Why the server would not take it. */
  isWrong: boolean;
  onEdit: () => void;
  onRemove: () => void;
  /** undefined: its place means nothing. */
  onMove?: (to: "up" | "down") => void;
  onDragStart?: () => void;
  onDrop?: () => void;
}

function RuleRow({ words, isWrong, onEdit, onRemove, onMove, onDragStart, onDrop }: RowProps) {
  const t = useT();
  return (
    <li
      className="flex items-center gap-1 border-b border-base-300 py-1 last:border-0"
      draggable={onDragStart !== undefined}
      onDragStart={onDragStart}
      onDragOver={(event) => onDrop && event.preventDefault()}
      onDrop={onDrop}
    >
      {onDragStart ? (
        <GripVertical aria-hidden size={14} className="shrink-0 cursor-grab text-muted" />
      ) : null}
      <span className={`min-w-0 grow wrap-anywhere text-dense ${isWrong ? "text-error" : ""}`}>{words}</span>
      {onMove ? (
        <>
          <button
            type="button"
            className="btn btn-ghost btn-xs btn-square"
            aria-label={t("channel.rule.up", { rule: words })}
            title={t("channel.rule.upShort")}
            onClick={() => onMove("up")}
          >
            <ArrowUp aria-hidden size={14} />
          </button>
          <button
            type="button"
            className="btn btn-ghost btn-xs btn-square"
            aria-label={t("channel.rule.down", { rule: words })}
            title={t("channel.rule.downShort")}
            onClick={() => onMove("down")}
          >
            <ArrowDown aria-hidden size={14} />
          </button>
        </>
      ) : null}
      <button
        type="button"
        className="btn btn-ghost btn-xs btn-square"
        aria-label={t("channel.rule.edit", { rule: words })}
        title={t("channel.rule.editShort")}
        onClick={onEdit}
      >
        <Pencil aria-hidden size={14} />
      </button>
      <button
        type="button"
        className="btn btn-ghost btn-xs btn-square"
        aria-label={t("channel.rule.remove", { rule: words })}
        title={t("channel.rule.removeShort")}
        onClick={onRemove}
      >
        <X aria-hidden size={14} />
      </button>
    </li>
  );
}

/** Which row is open in the form: a member by its name, an operation by its place, or a new one. */
type Open = { field: string } | { index: number } | "new" | undefined;

/** A member that is set, as the operation that it equals. */
const asOperation = (name: string, value: unknown): Stored => ({ mode: "set", path: name, value });

function RuleList({ rules, onChange }: { rules: RuleTexts; onChange: (rules: RuleTexts) => void }) {
  const t = useT();
  const [open, setOpen] = useState<Open>();
  const [dragged, setDragged] = useState<number>();
  const { fields, operations } = rules;
  const addButton = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setOpen(undefined);
    setTimeout(() => addButton.current?.focus());
  };
  const change = (next: RuleTexts): void => {
    onChange(next);
    close();
  };
  const withoutField = (name: string): Stored => {
    const { [name]: _, ...rest } = fields;
    return rest;
  };
  const take = (operation: Stored): void => {
    if (open === "new" || open === undefined) change({ fields, operations: [...operations, operation] });
    else if ("index" in open) change({ fields, operations: operations.with(open.index, operation) });
    // A member acts before all operations: changed by hand it becomes the first of them.
    else change({ fields: withoutField(open.field), operations: [operation, ...operations] });
  };
  const moveTo = (from: number, to: number): void => {
    const moved = operations[from];
    if (!moved || to < 0 || to >= operations.length || from === to) return;
    onChange({ fields, operations: operations.toSpliced(from, 1).toSpliced(to, 0, moved) });
    announce("channel.rule.moved", { place: to + 1 });
  };
  const form = (operation: Stored | undefined) => (
    <RuleForm operation={operation} onDone={take} onCancel={close} />
  );
  return (
    <div className="grid gap-2">
      {Object.keys(fields).length + operations.length > 0 ? (
        <ol>
          {Object.entries(fields).map(([name, value]) =>
            typeof open === "object" && "field" in open && open.field === name ? (
              <li key={`field ${name}`} className="py-2">
                {form(asOperation(name, value))}
              </li>
            ) : (
              <RuleRow
                key={`field ${name}`}
                words={fieldWords(name, value)}
                isWrong={false}
                onEdit={() => setOpen({ field: name })}
                onRemove={() => change({ fields: withoutField(name), operations })}
              />
            ),
          )}
          {operations.map((operation, index) =>
            typeof open === "object" && "index" in open && open.index === index ? (
              // oxlint-disable-next-line react/no-array-index-key
              <li key={index} className="py-2">
                {form(operation)}
              </li>
            ) : (
              <RuleRow
                // oxlint-disable-next-line react/no-array-index-key
                key={index}
                words={operationWords(operation)}
                isWrong={readRequestRules({ operations: [operation] }).problem !== undefined}
                onEdit={() => setOpen({ index })}
                onRemove={() => change({ fields, operations: operations.toSpliced(index, 1) })}
                onMove={(to) => moveTo(index, to === "up" ? index - 1 : index + 1)}
                onDragStart={() => setDragged(index)}
                onDrop={() => dragged !== undefined && moveTo(dragged, index)}
              />
            ),
          )}
        </ol>
      ) : (
        <p className="text-dense text-muted">{t("channel.rule.none")}</p>
      )}
      {open === "new" ? (
        form(undefined)
      ) : (
        <div>
          <button
            ref={addButton}
            type="button"
            className="btn btn-sm btn-default"
            onClick={() => setOpen("new")}
          >
            <Plus aria-hidden size={14} />
            {t("channel.rule.add")}
          </button>
        </div>
      )}
    </div>
  );
}

export function RulesField({ form }: { form: Form<ChannelValues> }) {
  const t = useT();
  const id = useId();
  const [isText, setText] = useState(false);
  const value = form.values.paramOverride;
  const rules = rulesIn(value);
  const showsText = isText || !rules;
  const change = (text: string): void => form.set("paramOverride", text);
  return (
    <Field
      form={form}
      name="paramOverride"
      label={t("channel.paramOverride")}
      hint={t("channel.paramOverrideHint")}
      isGroup
    >
      {(control) => (
        <div
          className="map-editor"
          role="group"
          aria-label={t("channel.paramOverride")}
          aria-describedby={control["aria-describedby"]}
        >
          <div className="join mb-2" role="tablist" aria-label={t("channel.paramOverride")}>
            {(["list", "text"] as const).map((tab) => {
              const isOn = (tab === "text") === showsText;
              return (
                <button
                  key={tab}
                  type="button"
                  role="tab"
                  className="btn btn-sm btn-default join-item"
                  id={`${id}-${tab}`}
                  aria-selected={isOn}
                  aria-controls={`${id}-panel`}
                  tabIndex={isOn ? 0 : -1}
                  // Sentences cannot show a text that is no set of rules.
                  disabled={tab === "list" && !rules}
                  onClick={() => setText(tab === "text")}
                  onKeyDown={(event) => {
                    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
                    event.preventDefault();
                    const other = document.getElementById(`${id}-${tab === "list" ? "text" : "list"}`);
                    other?.click();
                    other?.focus();
                  }}
                >
                  {t(`channel.rule.tab.${tab}`)}
                </button>
              );
            })}
          </div>
          <div id={`${id}-panel`} role="tabpanel" aria-labelledby={`${id}-${showsText ? "text" : "list"}`}>
            {rules && !showsText ? (
              <RuleList rules={rules} onChange={(next) => change(rulesText(next))} />
            ) : (
              <textarea
                className="textarea mono"
                rows={Math.min(18, Math.max(4, value.split("\n").length + 1))}
                spellCheck={false}
                aria-label={t("channel.rule.json")}
                aria-invalid={control["aria-invalid"]}
                value={value}
                placeholder={'{\n  "temperature": 0,\n  "operations": []\n}'}
                onChange={(event) => change(event.target.value)}
                onBlur={control.onBlur}
              />
            )}
          </div>
        </div>
      )}
    </Field>
  );
}
