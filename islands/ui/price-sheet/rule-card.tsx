// One rule of a model's price as fields: when it acts, what the call costs then, and the sentence that this makes.
import { ArrowDown, ArrowUp, Plus, Trash2 } from "lucide-react";
import { TOKEN_KINDS, WEEK_DAYS } from "../../../src/shared/price-row.ts";
import type { PriceRow } from "../../../src/shared/price-row.ts";
import { useT } from "../../lib/i18n.ts";
import { ruleText } from "../../lib/rule-words.ts";
import { TEXT_CONDITIONS, ruleOf } from "./rule-draft.ts";
import type { PriceKind, RuleDraft, TextCondition, TimeDraft } from "./rule-draft.ts";
import { AddMenu, IconButton, RuleInput } from "./rule-input.tsx";

export interface RuleCardProps {
  draft: RuleDraft;
  /** From 1. */
  number: number;
  count: number;
  base: PriceRow;
  /** Key of the text that says what is wrong with a field, once the field was left. */
  problemOf: (field: string) => string | undefined;
  isWhole: boolean;
  onChange: (draft: RuleDraft) => void;
  /** The same, with an empty field more, which gets the focus. */
  onAdd: (draft: RuleDraft) => void;
  onLeave: (field: string) => void;
  onMove: (by: -1 | 1) => void;
  onRemove: () => void;
}

/** The week begins on Monday. */
const DAYS = [...WEEK_DAYS.slice(1), WEEK_DAYS[0]];
const ZONES = ["UTC", "Asia/Shanghai", "America/New_York", "America/Los_Angeles", "Europe/London"];
const TIERS = ["flex", "priority", "batch"];

export function RuleCard(props: RuleCardProps) {
  const { draft, number, count, base, problemOf, isWhole, onMove } = props;
  const t = useT();
  const whole = problemOf("rule");
  return (
    <li
      className="rounded-box border border-base-300 p-3"
      aria-label={t("rule.edit.rule", { number })}
      data-rule={draft.id}
    >
      <div className="flex items-start gap-2">
        <p className="min-w-0 grow wrap-anywhere" aria-live="polite">
          <b>{number}.</b>{" "}
          {isWhole ? (
            ruleText(t, ruleOf(draft), { unit: base.unit })
          ) : (
            <span className="text-muted">{t("rule.edit.unfinished")}</span>
          )}
        </p>
        <span className="flex shrink-0">
          <IconButton
            label={t("rule.edit.up", { number })}
            icon={ArrowUp}
            isDisabled={number === 1}
            onClick={() => onMove(-1)}
          />
          <IconButton
            label={t("rule.edit.down", { number })}
            icon={ArrowDown}
            isDisabled={number === count}
            onClick={() => onMove(1)}
          />
          <IconButton label={t("rule.edit.remove", { number })} icon={Trash2} onClick={props.onRemove} />
        </span>
      </div>
      <Conditions {...props} />
      <Effect {...props} />
      {whole === undefined ? null : (
        <p className="mt-2 text-xs text-error" role="alert">
          {t(whole)}
        </p>
      )}
    </li>
  );
}

const GRID = "mt-1 grid grid-cols-1 items-start gap-x-4 gap-y-2 sm:grid-cols-2";

function Conditions({ draft, base, problemOf, onChange, onAdd, onLeave }: RuleCardProps) {
  const t = useT();
  const present = TEXT_CONDITIONS.filter((name) => draft[name] !== undefined);
  const isByCall = base.call !== undefined;
  const absent = [...TEXT_CONDITIONS, "time" as const].filter(
    (name) => draft[name] === undefined && (isByCall || (name !== "size" && name !== "quality")),
  );
  const remove = (name: keyof RuleDraft) => {
    const next = { ...draft };
    delete next[name];
    onChange(next);
  };
  const hintOf = (name: TextCondition): string | undefined => {
    if (name === "over") return undefined;
    return t(name === "from" || name === "until" ? "rule.edit.moment" : "rule.edit.names");
  };
  return (
    <fieldset className="mt-3 min-w-0">
      <legend className="text-dense font-medium">{t("rule.edit.conditions")}</legend>
      <div className={GRID}>
        {present.map((name) => {
          const hint = hintOf(name);
          return (
            <RuleInput
              key={name}
              label={t(`rule.edit.${name}`)}
              value={draft[name] ?? ""}
              isNumber={name === "over"}
              problem={problemOf(name)}
              suggestions={name === "tier" ? TIERS : []}
              onChange={(text) => onChange({ ...draft, [name]: text })}
              onLeave={() => onLeave(name)}
              onRemove={() => remove(name)}
              {...(hint === undefined ? {} : { hint })}
            />
          );
        })}
      </div>
      {draft.time ? (
        <TimeFields
          time={draft.time}
          problemOf={problemOf}
          onLeave={onLeave}
          onChange={(time) => onChange({ ...draft, time })}
          onRemove={() => remove("time")}
        />
      ) : null}
      <AddMenu
        label={t("rule.edit.addCondition")}
        choices={absent.map((id) => ({ id, text: t(`rule.edit.add.${id}`) }))}
        onAdd={(id) =>
          onAdd(
            id === "time"
              ? { ...draft, time: { ranges: [{ from: "", to: "" }], days: [], tz: "UTC" } }
              : { ...draft, [id]: "" },
          )
        }
      />
    </fieldset>
  );
}

interface TimeFieldsProps {
  time: TimeDraft;
  problemOf: RuleCardProps["problemOf"];
  onLeave: RuleCardProps["onLeave"];
  onChange: (time: TimeDraft) => void;
  onRemove: () => void;
}

function TimeFields({ time, problemOf, onLeave, onChange, onRemove }: TimeFieldsProps) {
  const t = useT();
  const { ranges, days, tz } = time;
  const setRange = (index: number, change: Partial<TimeDraft["ranges"][number]>) =>
    onChange({ ...time, ranges: ranges.map((each, at) => (at === index ? { ...each, ...change } : each)) });
  const none = problemOf("time");
  return (
    <div className="mt-2 rounded-field bg-base-200 p-3">
      <div className="flex items-center gap-2">
        <span className="grow text-dense">{t("rule.edit.add.time")}</span>
        <IconButton
          label={t("rule.edit.removeField", { name: t("rule.edit.add.time") })}
          onClick={onRemove}
        />
      </div>
      {ranges.map(({ from, to }, index) => (
        <div
          key={index}
          className="mt-1 flex items-start gap-2"
          role="group"
          aria-label={t("rule.edit.hours")}
        >
          <div className="grid min-w-0 grow grid-cols-2 gap-2">
            <RuleInput
              label={t("rule.edit.hoursFrom")}
              value={from}
              problem={problemOf(`hours.${index}`)}
              onChange={(text) => setRange(index, { from: text })}
              onLeave={() => undefined}
            />
            <RuleInput
              label={t("rule.edit.hoursTo")}
              value={to}
              onChange={(text) => setRange(index, { to: text })}
              onLeave={() => onLeave(`hours.${index}`)}
            />
          </div>
          <span className="mt-5">
            <IconButton
              label={t("rule.edit.removeHours")}
              onClick={() => onChange({ ...time, ranges: ranges.filter((_, at) => at !== index) })}
            />
          </span>
        </div>
      ))}
      <button
        type="button"
        className="btn btn-ghost btn-sm mt-1 -ml-3 text-primary"
        onClick={() => onChange({ ...time, ranges: [...ranges, { from: "", to: "" }] })}
      >
        <Plus aria-hidden size={14} />
        {t("rule.edit.addHours")}
      </button>
      <fieldset className="mt-2 min-w-0">
        <legend className="text-xs text-muted">
          {t("rule.edit.days")} · {t("rule.edit.daysHint")}
        </legend>
        <div className="mt-1 flex flex-wrap gap-x-4 gap-y-1">
          {DAYS.map((day) => (
            <label key={day} className="inline-flex items-center gap-1.5 text-dense">
              <input
                type="checkbox"
                className="checkbox checkbox-sm"
                checked={days.includes(day)}
                onChange={(event) =>
                  onChange({
                    ...time,
                    days: DAYS.filter((each) => (each === day ? event.target.checked : days.includes(each))),
                  })
                }
              />
              {t(`rule.day.${day}`)}
            </label>
          ))}
        </div>
      </fieldset>
      {none === undefined ? null : (
        <p className="mt-1 text-xs text-error" role="alert">
          {t(none)}
        </p>
      )}
      <div className="mt-2 sm:max-w-60">
        <RuleInput
          label={t("rule.edit.zone")}
          value={tz}
          problem={problemOf("tz")}
          suggestions={ZONES}
          onChange={(text) => onChange({ ...time, tz: text })}
          onLeave={() => onLeave("tz")}
        />
      </div>
    </div>
  );
}

function Effect({ draft, base, problemOf, onChange, onAdd, onLeave }: RuleCardProps) {
  const t = useT();
  const kinds: readonly PriceKind[] = base.call === undefined ? TOKEN_KINDS : ["call"];
  // What was set once for the other kind of price is shown too: it would not go away otherwise.
  const present = [...TOKEN_KINDS, "call" as const].filter((kind) => draft.prices[kind] !== undefined);
  const absent = kinds.filter((kind) => draft.prices[kind] === undefined);
  const nameOf = (kind: PriceKind): string =>
    kind === "call" ? t("rule.edit.price.call") : t(`rule.kind.${kind}`);
  const choices = [
    ...absent.map((id) => ({ id: id as string, text: nameOf(id) })),
    ...(draft.times === undefined ? [{ id: "times", text: t("rule.edit.times") }] : []),
  ];
  const setPrices = (prices: RuleDraft["prices"]) => onChange({ ...draft, prices });
  return (
    <fieldset className="mt-3 min-w-0">
      <legend className="text-dense font-medium">{t("rule.edit.effect")}</legend>
      <div className={GRID}>
        {present.map((kind) => (
          <RuleInput
            key={kind}
            label={kind === "call" ? nameOf(kind) : `${nameOf(kind)} / 1M`}
            value={draft.prices[kind] ?? ""}
            prefix="$"
            isNumber
            problem={problemOf(`set.${kind}`)}
            onChange={(text) => setPrices({ ...draft.prices, [kind]: text })}
            onLeave={() => onLeave(`set.${kind}`)}
            onRemove={() => {
              const prices = { ...draft.prices };
              delete prices[kind];
              setPrices(prices);
            }}
          />
        ))}
        {draft.times === undefined ? null : (
          <RuleInput
            label={t("rule.edit.times")}
            value={draft.times}
            prefix="×"
            isNumber
            hint={t("rule.edit.timesHint")}
            problem={problemOf("times")}
            onChange={(times) => onChange({ ...draft, times })}
            onLeave={() => onLeave("times")}
            onRemove={() => {
              const next = { ...draft };
              delete next.times;
              onChange(next);
            }}
          />
        )}
      </div>
      <AddMenu
        label={t("rule.edit.addPrice")}
        choices={choices}
        onAdd={(id) =>
          onAdd(
            id === "times" ? { ...draft, times: "" } : { ...draft, prices: { ...draft.prices, [id]: "" } },
          )
        }
      />
    </fieldset>
  );
}
