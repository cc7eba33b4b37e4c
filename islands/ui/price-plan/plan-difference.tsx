// The left side of a plan: what changes, by maker, in dollars from old to new; then whatever is no price of a model.
// Refuses to repeat what follows by itself: kinds that move along with input or output are counted.
import { useState } from "react";
import { SOLD_PLANS } from "../../../src/shared/price-desk.ts";
import { percentOf, tellingSteps } from "../../../src/shared/price-steps.ts";
import { compareNames } from "../../lib/format.ts";
import { language, useT } from "../../lib/i18n.ts";
import { conditionText, priceText, toolName } from "../../lib/rule-words.ts";
import type { PricePlan } from "../../lib/wire.ts";
import { entryText, isModelKey } from "./change-words.ts";
import { placeName, placeTitle, termsText } from "./sold-plan-words.ts";
import { FromTo, percentText } from "./from-to.tsx";

type Model = PricePlan["diff"][number];
type Line = Model["lines"][number];
type Change = PricePlan["changes"][number];

/** More models than these are shown step by step. */
const PAGE = 100;

const PER_TEXT: Record<Line["per"], string> = {
  mtok: "log.cost.perMillion",
  call: "log.cost.perCall",
  kcall: "log.cost.perThousand",
};

export function PlanDifference({ plan }: { plan: PricePlan }) {
  const t = useT();
  const [most, setMost] = useState(PAGE);
  const { diff, diff_count: count } = plan;
  const shown = diff.slice(0, most);
  const inDiff = new Set(diff.map(({ model }) => model));
  const others = plan.changes.filter(({ key, name }) => !isModelKey(key) || !inDiff.has(name));
  const compare = compareNames(language.value);
  const makers = Map.groupBy(shown, ({ vendor }) => vendor);
  const names = [...makers.keys()].sort((a, b) => (a === "" ? 1 : b === "" ? -1 : compare(a, b)));
  return (
    <section className="min-w-0" aria-labelledby="plan-difference">
      <h2 id="plan-difference" className="mb-2">
        {t("plan.difference", { count })}
      </h2>
      {shown.some(({ lines }) => tellingSteps(lines).more > 0) ? (
        <p className="mb-2 text-dense text-muted">{t("plan.follow")}</p>
      ) : null}
      {count === 0 ? <p className="text-muted">{t("plan.noDifference")}</p> : null}
      {names.map((maker) => (
        <div key={maker} className="mb-4">
          <h3 className="mb-1 text-xs font-semibold text-muted">
            {maker === "" ? t("plan.noMaker") : maker}
          </h3>
          <ul className="border-t border-base-300">
            {(makers.get(maker) ?? []).map((each) => (
              <ModelChange key={each.model} model={each} />
            ))}
          </ul>
        </div>
      ))}
      {count > shown.length ? (
        <p className="mb-4 text-dense text-muted">
          {t("plan.andMore", { count: count - shown.length })}{" "}
          {diff.length > shown.length ? (
            <button type="button" className="link" onClick={() => setMost(most + PAGE * 5)}>
              {t("plan.showMore")}
            </button>
          ) : null}
        </p>
      ) : null}
      {others.length === 0 ? null : <OtherChanges changes={others} />}
    </section>
  );
}

/** What became of the model as a whole, where that is more than a number. */
function markOf(lines: readonly Line[]): string | undefined {
  if (lines.length === 0) return undefined;
  if (lines.every(({ before }) => before === null)) return "new";
  if (lines.every(({ after }) => after === null)) return "removed";
  const call = lines.find(({ kind }) => kind === "per_call");
  if (!call || (call.before !== null && call.after !== null)) return undefined;
  return call.before === null ? "toCall" : "toTokens";
}

function ModelChange({ model: { model, lines, entries, calls } }: { model: Model }) {
  const t = useT();
  const { told } = tellingSteps(lines);
  const mark = markOf(lines);
  return (
    <li className="border-b border-base-300 px-3 py-2">
      <p className="flex flex-wrap items-center gap-x-2">
        <span className="mono min-w-0 font-medium wrap-anywhere">{model}</span>
        {mark === undefined ? null : (
          <span className="badge badge-sm badge-ghost">{t(`plan.mark.${mark}`)}</span>
        )}
        {mark === "removed" && calls > 0 ? (
          <span className="text-xs text-muted">{t("plan.weekCalls", { count: calls })}</span>
        ) : null}
      </p>
      <dl className="mt-0.5 text-dense tabular-nums">
        {told.map((line) => (
          <Step key={line.kind} line={line} />
        ))}
        {entries.map((entry) => (
          <EntryStep key={`${entry.kind} ${entry.tool} ${JSON.stringify(entry.when)}`} entry={entry} />
        ))}
      </dl>
    </li>
  );
}

function Step({ line: { kind, per, before, after } }: { line: Line }) {
  const t = useT();
  const percent = percentOf(before, after);
  const text = (dollars: number | null) => (dollars === null ? t("plan.none") : priceText(dollars));
  return (
    <div className="flex flex-wrap items-baseline gap-x-2">
      <dt className="grow text-muted">{t(`log.line.${kind}`)}</dt>
      <dd className="ml-auto text-right">
        <FromTo
          before={text(before)}
          after={after === null ? text(after) : t(PER_TEXT[per], { price: text(after) })}
        />
        <span className="ml-2 inline-block text-xs text-muted">
          {percent === undefined ? "" : percentText(percent)}
        </span>
      </dd>
    </div>
  );
}

/** A tier, a time or a tool; its condition stands before its kind. */
function EntryStep({ entry: { when, kind, tool, before, after } }: { entry: Model["entries"][number] }) {
  const t = useT();
  const percent = percentOf(before, after);
  const name =
    kind === "tool" ? toolName(t, tool) : kind === "call" ? t("log.line.per_call") : t(`rule.kind.${kind}`);
  const per = PER_TEXT[kind === "tool" ? "kcall" : kind === "call" ? "call" : "mtok"];
  return (
    <div className="flex flex-wrap items-baseline gap-x-2">
      <dt className="grow text-muted">
        {when === null ? name : t("plan.entry", { when: conditionText(t, when), name })}
      </dt>
      <dd className="ml-auto text-right">
        <FromTo before={priceText(before)} after={t(per, { price: priceText(after) })} />
        <span className="ml-2 inline-block text-xs text-muted">
          {percent === undefined ? "" : percentText(percent)}
        </span>
      </dd>
    </div>
  );
}

/** A plan on sale: what becomes of its terms; one that is new or goes is told whole. */
function PlanTerms({ change }: { change: Change }) {
  const t = useT();
  const text = termsText(t, change);
  if (change.before === null) return <FromTo before={t("plan.none")} after={text} />;
  return change.after === null ? <FromTo before={text} after={t("plan.none")} /> : text;
}

function OtherChanges({ changes }: { changes: readonly Change[] }) {
  const t = useT();
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? changes : changes.slice(0, PAGE);
  return (
    <>
      <h3 className="mb-1 text-xs font-semibold text-muted">{t("plan.others")}</h3>
      {[...Map.groupBy(shown, ({ key }) => key)].map(([key, own]) => (
        <div key={key} className="mb-3 rounded-box border border-base-300 px-3 py-2">
          <p className="font-medium">{placeTitle(t, key)}</p>
          <dl className="text-dense">
            {own.map((change) => (
              <div key={change.name} className="flex flex-wrap items-baseline gap-x-2">
                <dt className="mono grow text-muted wrap-anywhere">{placeName(change)}</dt>
                <dd className="ml-auto min-w-0 text-right wrap-anywhere">
                  {key === SOLD_PLANS ? (
                    <PlanTerms change={change} />
                  ) : (
                    <FromTo
                      before={entryText(t, key, change.before)}
                      after={entryText(t, key, change.after)}
                    />
                  )}
                </dd>
              </div>
            ))}
          </dl>
        </div>
      ))}
      {changes.length > shown.length ? (
        <button type="button" className="link" onClick={() => setWhole(true)}>
          {t("plan.more", { count: changes.length - shown.length })}
        </button>
      ) : null}
    </>
  );
}
