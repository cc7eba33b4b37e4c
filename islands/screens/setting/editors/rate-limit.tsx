// The rate limit as a rule that can be read: one sentence for everybody, one for each group that has its own.
// Refuses to leave its effect to guesswork: the rule that applies to a chosen group is said in words.
import { useId, useState } from "react";
import { formatNumber } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { parseMap, writeMap } from "../../../lib/json-map.ts";
import { GroupRows, useGroupNames } from "./group-rows.tsx";
import type { GroupRow } from "./group-rows.tsx";
import type { OptionPanelProps } from "./panel-props.ts";
import { JsonBeside, newId, useRowsOf } from "./json-beside.tsx";
import { FailureLine, PanelBlock } from "./panel-block.tsx";
import { isWholeBetween, NumberHole, Sentence } from "./sentence.tsx";

const MINUTES = "ModelRequestRateLimitDurationMinutes";
const REQUESTS = "ModelRequestRateLimitCount";
const SUCCESSES = "ModelRequestRateLimitSuccessCount";
const GROUPS = "ModelRequestRateLimitGroup";
export const RATE_LIMIT_KEYS = [MINUTES, REQUESTS, SUCCESSES, GROUPS] as const;

const MOST_MINUTES = 43_200;
const MOST_REQUESTS = 1_000_000_000;

interface GroupRule extends GroupRow {
  /** As typed. */
  requests: string;
  successes: string;
}

/** What a field can show and write back. */
const isShown = (value: unknown): value is number | string =>
  typeof value === "number" || typeof value === "string";

function readRules(text: string): GroupRule[] | undefined {
  const { entries, problem } = parseMap(text);
  if (problem && problem.code !== "duplicate" && problem.code !== "emptyKey") return undefined;
  const rules: GroupRule[] = [];
  for (const { key, json } of entries) {
    const pair = JSON.parse(json) as unknown;
    if (!Array.isArray(pair) || pair.length !== 2) return undefined;
    const [requests, successes] = pair as unknown[];
    if (!isShown(requests) || !isShown(successes)) return undefined;
    rules.push({ id: newId(), group: key, requests: String(requests), successes: String(successes) });
  }
  return rules;
}

/** What is no number yet is kept as it was typed: the server names it. */
function numberJson(text: string): string {
  return isWholeBetween(text, 0, Number.MAX_SAFE_INTEGER) ? String(Number(text)) : JSON.stringify(text);
}

function writeRules(rules: readonly GroupRule[]): string {
  const named = rules.filter(({ group }) => group.trim() !== "");
  const entries = named.map(({ group, requests, successes }) => ({
    key: group.trim(),
    json: `[${numberJson(requests)}, ${numberJson(successes)}]`,
  }));
  return entries.length === 0 ? "{}" : writeMap(entries);
}

const RULES = { read: readRules, write: writeRules };

export function RateLimitPanel(panel: OptionPanelProps) {
  const t = useT();
  const groups = useGroupNames();
  const { value, onChange, failureOf } = panel;
  const groupRow = panel.rows.find(({ key }) => key === GROUPS);
  const [wrong, setWrong] = useState<ReadonlySet<string>>(new Set());
  const told = (key: string) => (isWrong: boolean) => {
    const next = new Set(wrong);
    if (isWrong) next.add(key);
    else next.delete(key);
    setWrong(next);
  };
  const hole = (key: string, min: number, max: number) => (
    <NumberHole
      option={key}
      label={t(`option.title.${key}`)}
      value={value(key)}
      onChange={(text) => onChange(key, text)}
      min={min}
      max={max}
      isInvalid={failureOf(key) !== undefined}
      onProblem={told(key)}
    />
  );
  const rule = value(GROUPS);
  return (
    <>
      <div className="setting-line">
        <p className="mb-2 font-medium">{t("editor.rate.everybody")}</p>
        <Sentence
          text={t("editor.rate.sentence")}
          holes={{
            minutes: hole(MINUTES, 0, MOST_MINUTES),
            requests: hole(REQUESTS, 0, MOST_REQUESTS),
            successes: hole(SUCCESSES, 1, MOST_REQUESTS),
          }}
        />
        <p className="mt-2 text-dense text-muted">{t("editor.rate.zero")}</p>
        {wrong.size === 0 ? null : <FailureLine text={t("editor.rate.wrong")} />}
        {[MINUTES, REQUESTS, SUCCESSES].map((key) => (
          <FailureLine key={key} text={failureOf(key)} />
        ))}
      </div>
      {groupRow ? (
        <PanelBlock row={groupRow} panel={panel}>
          {(about) => (
            <GroupRules
              text={about.value}
              onChange={about.onChange}
              describedBy={about.describedBy}
              isInvalid={about.failure !== undefined}
              groups={groups}
              minutes={value(MINUTES)}
            />
          )}
        </PanelBlock>
      ) : null}
      <TestLine
        groups={groups}
        rules={readRules(rule) ?? []}
        everybody={{ requests: value(REQUESTS), successes: value(SUCCESSES) }}
        minutes={value(MINUTES)}
      />
    </>
  );
}

interface GroupRulesProps {
  text: string;
  onChange: (text: string) => void;
  describedBy: string;
  isInvalid: boolean;
  groups: readonly string[];
  minutes: string;
}

function GroupRules({ text, onChange, describedBy, isInvalid, groups, minutes }: GroupRulesProps) {
  const t = useT();
  const { rows, setRows } = useRowsOf(text, onChange, RULES);
  return (
    <JsonBeside
      label={t(`option.title.${GROUPS}`)}
      value={text}
      onChange={onChange}
      isReadable={rows !== undefined}
      describedBy={describedBy}
      isInvalid={isInvalid || undefined}
    >
      <GroupRows
        rows={rows}
        setRows={setRows}
        fresh={(id) => ({ id, group: "", requests: "0", successes: "1000" })}
        groups={groups}
        words={{
          none: t("editor.rate.noGroups"),
          add: t("editor.rate.addGroup"),
          group: (row) => t("editor.rate.group", { row }),
        }}
      >
        {({ row, who, group, change }) => (
          <Sentence
            text={t("editor.rate.groupSentence", { minutes })}
            holes={{
              group,
              requests: (
                <NumberHole
                  label={t("editor.rate.requestsOf", { name: who })}
                  value={row.requests}
                  onChange={(requests) => change({ requests })}
                  min={0}
                  max={MOST_REQUESTS}
                />
              ),
              successes: (
                <NumberHole
                  label={t("editor.rate.successesOf", { name: who })}
                  value={row.successes}
                  onChange={(successes) => change({ successes })}
                  min={1}
                  max={MOST_REQUESTS}
                />
              ),
            }}
          />
        )}
      </GroupRows>
    </JsonBeside>
  );
}

interface TestLineProps {
  groups: readonly string[];
  rules: readonly GroupRule[];
  everybody: { requests: string; successes: string };
  minutes: string;
}

/** Which rule a user of a group is under, in words. */
function TestLine({ groups, rules, everybody, minutes }: TestLineProps) {
  const t = useT();
  const id = useId();
  const names = [...new Set([...groups, ...rules.map(({ group }) => group)])].filter((name) => name !== "");
  const [chosen, setChosen] = useState("");
  const group = names.includes(chosen) ? chosen : names[0];
  if (group === undefined) return null;
  const own = rules.findLast((rule) => rule.group === group);
  const { requests, successes } = own ?? everybody;
  const isValid = isWholeBetween(requests, 0, MOST_REQUESTS) && isWholeBetween(successes, 1, MOST_REQUESTS);
  const isOff = Number(minutes) === 0;
  const said = !isValid
    ? t("editor.rate.testWrong")
    : isOff
      ? t("editor.rate.testOff")
      : t(Number(requests) === 0 ? "editor.rate.testUnlimited" : "editor.rate.test", {
          minutes,
          requests: formatNumber(Number(requests)),
          successes: formatNumber(Number(successes)),
        });
  return (
    <div className="setting-line flex flex-wrap items-center gap-2">
      <label htmlFor={id}>{t("editor.rate.testGroup")}</label>
      <select
        id={id}
        className="select select-sm w-40"
        value={group}
        onChange={(event) => setChosen(event.target.value)}
      >
        {names.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      <output htmlFor={id} className="text-dense">
        {said} <span className="text-muted">{t(own ? "editor.rate.byGroup" : "editor.rate.byAll")}</span>
      </output>
    </div>
  );
}
