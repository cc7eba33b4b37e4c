// The rules of one model's price as fields: conditions and prices by rule, hosted tools, sentences, and an example call.
// Refuses to hand out what is wrong: as long as a field has a problem, whoever listens hears of no rules.
import { Plus } from "lucide-react";
import { useEffect, useId, useMemo, useRef, useState } from "react";
import { MAX_RULES } from "../../../src/shared/price-row.ts";
import type { PriceRow, PriceRules } from "../../../src/shared/price-row.ts";
import { useT } from "../../lib/i18n.ts";
import { Notice } from "../feedback.tsx";
import { RuleCard } from "./rule-card.tsx";
import { draftOfRules, freshRule, inOrder, isInOrder, problemsOf, rulesOf } from "./rule-draft.ts";
import type { Condition, RuleDraft, RulesDraft } from "./rule-draft.ts";
import { RuleExample } from "./rule-example.tsx";
import { RuleTools } from "./rule-tools.tsx";

export interface RulesEditorProps {
  model: string;
  /** What option PriceRules has for the model; read once, when the editor opens. */
  rules: PriceRules;
  /** The list price in dollars: per token, or `call` per piece. */
  base: PriceRow;
  /** Every change: the rules, or undefined while something is wrong with them. */
  onChange: (rules: PriceRules | undefined) => void;
  /** Saving was tried: everything that is wrong is said. */
  isTold?: boolean;
  nowMs: number;
}

/** What is typed, and every way in which it changes. */
function useRulesDraft({ rules: given, base, onChange, isTold = false }: RulesEditorProps) {
  const [draft, setDraft] = useState(() => draftOfRules(given));
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const problems = useMemo(() => problemsOf(draft), [draft]);
  const rules = useMemo(() => rulesOf(draft), [draft]);
  const change = (next: Partial<RulesDraft>) => {
    const whole = { ...draft, ...next };
    setDraft(whole);
    onChange(rulesOf(whole));
  };
  const leave = (field: string) => setLeft(new Set(left).add(field));
  const problemOf = (field: string) => (isTold || left.has(field) ? problems.get(field) : undefined);
  const section = useRef<HTMLElement>(null);
  // A new object each time: the same rule may get a second field.
  const [grown, setGrown] = useState<{ id: number }>();
  useEffect(() => {
    if (!grown) return;
    const fields =
      section.current?.querySelectorAll<HTMLInputElement>(`[data-rule="${grown.id}"] input`) ?? [];
    [...fields].find(({ value }) => value === "")?.focus();
  }, [grown]);
  const setRules = (next: readonly RuleDraft[]) => change({ rules: next });
  const add = (condition: Condition) => {
    change({
      rules: inOrder([...draft.rules, freshRule(condition, base, draft.nextId)]),
      nextId: draft.nextId + 1,
    });
    setGrown({ id: draft.nextId });
  };
  const remove = (ruleId: number) => {
    setRules(draft.rules.filter((old) => old.id !== ruleId));
    section.current?.querySelector<HTMLElement>("[data-add] button")?.focus();
  };
  const put = (next: RuleDraft) => setRules(draft.rules.map((old) => (old.id === next.id ? next : old)));
  const move = (index: number, by: -1 | 1) => {
    const next = [...draft.rules];
    const [one, other] = [next[index], next[index + by]];
    if (!one || !other) return;
    next[index] = other;
    next[index + by] = one;
    setRules(next);
  };
  const addTool = () =>
    change({
      tools: [...draft.tools, { id: draft.nextId, name: "", price: "" }],
      nextId: draft.nextId + 1,
    });
  return {
    section,
    draft,
    problems,
    rules,
    change,
    leave,
    problemOf,
    setRules,
    add,
    remove,
    put,
    move,
    addTool,
    setGrown,
  };
}

export default function RulesEditor(props: RulesEditorProps) {
  const { model, base, nowMs } = props;
  const t = useT();
  const id = useId();
  const editor = useRulesDraft(props);
  const { section, draft, problems, rules, change, leave, problemOf, setRules, put, setGrown } = editor;
  return (
    <section ref={section} className="grid min-w-0 gap-4" aria-labelledby={`${id}-title`}>
      <div>
        <h2 id={`${id}-title`} className="wrap-anywhere">
          {t("rule.edit.title", { model })}
        </h2>
        <p className="text-muted">{t(draft.rules.length === 0 ? "rule.edit.none" : "rule.edit.text")}</p>
      </div>
      {isInOrder(draft.rules) ? null : (
        <Notice
          tone="warning"
          action={
            <button
              type="button"
              className="btn btn-default btn-sm"
              onClick={() => setRules(inOrder(draft.rules))}
            >
              {t("rule.edit.putInOrder")}
            </button>
          }
        >
          <p>{t("rule.edit.outOfOrder")}</p>
        </Notice>
      )}
      {draft.rules.length === 0 ? null : (
        <ol className="grid gap-3">
          {draft.rules.map((each, index) => (
            <RuleCard
              key={each.id}
              draft={each}
              number={index + 1}
              count={draft.rules.length}
              base={base}
              isWhole={![...problems.keys()].some((field) => field.startsWith(`${each.id}.`))}
              problemOf={(field) => problemOf(`${each.id}.${field}`)}
              onChange={(next) => put(next)}
              onAdd={(next) => {
                put(next);
                setGrown({ id: next.id });
              }}
              onLeave={(field) => leave(`${each.id}.${field}`)}
              onMove={(by) => editor.move(index, by)}
              onRemove={() => editor.remove(each.id)}
            />
          ))}
        </ol>
      )}
      <AddRule base={base} isFull={draft.rules.length >= MAX_RULES} onAdd={editor.add} />
      <RuleTools
        tools={draft.tools}
        problemOf={problemOf}
        onLeave={leave}
        onChange={(tools) => change({ tools })}
        onAdd={editor.addTool}
      />
      <RuleExample base={base} rules={rules} nowMs={nowMs} />
    </section>
  );
}

const BY_TOKEN: readonly Condition[] = ["over", "time", "tier"];
const BY_CALL: readonly Condition[] = ["size", "quality", "time", "tier"];

interface AddRuleProps {
  base: PriceRow;
  isFull: boolean;
  onAdd: (condition: Condition) => void;
}

function AddRule({ base, isFull, onAdd }: AddRuleProps) {
  const t = useT();
  const conditions = base.call === undefined ? BY_TOKEN : BY_CALL;
  if (isFull) return <p className="text-dense text-muted">{t("rule.edit.most", { count: MAX_RULES })}</p>;
  return (
    <div
      className="flex flex-wrap items-center gap-2"
      role="group"
      data-add=""
      aria-label={t("rule.edit.add")}
    >
      <span className="text-dense text-muted">{t("rule.edit.add")}</span>
      {conditions.map((condition) => (
        <button
          key={condition}
          type="button"
          className="btn btn-default btn-sm"
          onClick={() => onAdd(condition)}
        >
          <Plus aria-hidden size={14} />
          {t(`rule.edit.add.${condition}`)}
        </button>
      ))}
    </div>
  );
}
