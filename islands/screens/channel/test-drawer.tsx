// The models of one channel, tested one by one: search, choose several, each result with time or error beside its model.
// Refuses to ask the provider for several at once: they follow each other, and can be stopped between two.
import { FlaskConical, Megaphone, Square } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { formatDuration } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { setQuery } from "../../lib/url-state.ts";
import { StatusDot } from "../../ui/badges.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { testOnce } from "./actions.ts";
import type { TestAnswer } from "./actions.ts";
import { usePricedModels } from "./priced-models.ts";
import { namesOf } from "./row.ts";
import type { ChannelRow } from "../../lib/wire.ts";

const SHOWN_AT_FIRST = 100;

type Result = "waiting" | "running" | TestAnswer;

export interface TestDrawerProps {
  row: ChannelRow;
  onClose: () => void;
}

interface TestRun {
  results: ReadonlyMap<string, Result>;
  isRunning: boolean;
  start: (models: readonly string[]) => Promise<void>;
  /** Ends the run before the next model. */
  stop: () => void;
}

/** Tests models one after another; leaving the drawer stops the run. */
function useTestRun(channelId: number): TestRun {
  const [results, setResults] = useState<ReadonlyMap<string, Result>>(new Map());
  const [isRunning, setRunning] = useState(false);
  const isStopped = useRef(false);
  const stop = () => {
    isStopped.current = true;
  };
  useEffect(() => stop, []);
  const note = (name: string, result: Result | undefined) =>
    setResults((before) => {
      const next = new Map(before);
      if (result === undefined) next.delete(name);
      else next.set(name, result);
      return next;
    });
  const start = async (names: readonly string[]) => {
    isStopped.current = false;
    setRunning(true);
    for (const name of names) note(name, "waiting");
    for (const name of names) {
      if (isStopped.current) note(name, undefined);
      else {
        note(name, "running");
        note(name, await testOnce(channelId, { model: name }));
      }
    }
    setRunning(false);
  };
  return { results, isRunning, start, stop };
}

export default function TestDrawer({ row, onClose }: TestDrawerProps) {
  const t = useT();
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isExpanded, setExpanded] = useState(false);
  const run = useTestRun(row.id);
  const { unpricedOf } = usePricedModels();

  const models = namesOf(row.models);
  const found = models.filter((name) => name.toLowerCase().includes(search.trim().toLowerCase()));
  const shown = isExpanded ? found : found.slice(0, SHOWN_AT_FIRST);
  return (
    <Drawer
      isOpen
      title={t("channel.testTitle", { name: row.name })}
      width="normal"
      onClose={onClose}
      footer={<TestFooter run={run} found={found} picked={found.filter((name) => chosen.has(name))} />}
    >
      <input
        type="search"
        className="input mb-3"
        aria-label={t("channel.testSearch")}
        placeholder={t("channel.testSearch")}
        value={search}
        onChange={(event) => setSearch(event.target.value)}
      />
      {found.length === 0 ? (
        <p className="text-muted">{t("table.noMatch")}</p>
      ) : (
        <ModelTable
          run={run}
          found={found}
          shown={shown}
          chosen={chosen}
          onChoose={setChosen}
          testModel={row.test_model}
          unpriced={new Set(unpricedOf(shown))}
        />
      )}
      {found.length > shown.length ? (
        <button
          type="button"
          className="btn btn-sm btn-ghost text-primary mt-2"
          onClick={() => setExpanded(true)}
        >
          {t("channel.showMore", { count: found.length - shown.length })}
        </button>
      ) : null}
    </Drawer>
  );
}

interface TestFooterProps {
  run: TestRun;
  found: readonly string[];
  picked: readonly string[];
}

function TestFooter({ run, found, picked }: TestFooterProps) {
  const t = useT();
  const done = [...run.results.values()].filter((each) => typeof each === "object");
  const failed = done.filter((each) => !each.isGood).length;
  return (
    <>
      <span className="mr-auto text-muted" role="status">
        {done.length > 0
          ? t("channel.test.summary", { passed: done.length - failed, failed })
          : t("channel.testChosen", { count: picked.length })}
      </span>
      {run.isRunning ? (
        <button type="button" className="btn btn-default" onClick={run.stop}>
          <Square aria-hidden size={14} />
          {t("channel.testStop")}
        </button>
      ) : (
        <button
          type="button"
          className="btn btn-primary"
          disabled={found.length === 0}
          onClick={() => void run.start(picked.length > 0 ? picked : found)}
        >
          {picked.length > 0
            ? t("channel.testSome", { count: picked.length })
            : t("channel.testEach", { count: found.length })}
        </button>
      )}
    </>
  );
}

interface ModelTableProps {
  run: TestRun;
  /** What the search found, and what of it is shown. */
  found: readonly string[];
  shown: readonly string[];
  chosen: ReadonlySet<string>;
  onChoose: (chosen: ReadonlySet<string>) => void;
  testModel: string | null;
  /** Those that calls are refused for, whatever the test says. */
  unpriced: ReadonlySet<string>;
}

function ModelTable({ run, found, shown, chosen, onChoose, testModel, unpriced }: ModelTableProps) {
  const t = useT();
  const isAll = found.every((name) => chosen.has(name));
  return (
    <table
      className="table wrap-anywhere [&_td]:align-top [&_th]:align-top"
      aria-label={t("channel.modelsTitle")}
    >
      <thead>
        <tr>
          <th scope="col" className="w-7">
            <input
              type="checkbox"
              className="checkbox"
              aria-label={t("channel.chooseAll")}
              checked={isAll}
              onChange={() => onChoose(new Set(isAll ? [] : found))}
            />
          </th>
          <th scope="col">{t("channel.modelsTitle")}</th>
          <th scope="col" className="w-[45%]">
            {t("channel.testResult")}
          </th>
          <th scope="col" className="w-8">
            <span className="sr-only">{t("table.actions")}</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {shown.map((name) => (
          <tr key={name}>
            <td>
              <input
                type="checkbox"
                className="checkbox"
                aria-label={t("table.selectRow", { name })}
                checked={chosen.has(name)}
                onChange={() => {
                  const next = new Set(chosen);
                  if (!next.delete(name)) next.add(name);
                  onChoose(next);
                }}
              />
            </td>
            <th scope="row" className="mono">
              {name}
              {name === testModel ? (
                <span className="badge badge-ghost badge-sm ml-2">{t("channel.testModel")}</span>
              ) : null}
              {unpriced.has(name) ? (
                <span className="badge badge-warning badge-soft badge-sm ml-2">{t("price.noPrice")}</span>
              ) : null}
            </th>
            <td>
              <ResultCell result={run.results.get(name)} />
            </td>
            <td className="whitespace-nowrap">
              <button
                type="button"
                className="btn btn-ghost btn-square btn-xs max-sm:hidden"
                aria-label={t("notice.ofModel", { name })}
                title={t("notice.ofModel", { name })}
                disabled={run.isRunning}
                onClick={() => setQuery({ test: undefined, notices: "new", notice_model: name })}
              >
                <Megaphone aria-hidden size={14} />
              </button>
              <button
                type="button"
                className="btn btn-ghost btn-square btn-xs"
                aria-label={t("channel.testOne", { name })}
                title={t("channel.testOne", { name })}
                disabled={run.isRunning}
                onClick={() => void run.start([name])}
              >
                <FlaskConical aria-hidden size={14} />
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ResultCell({ result }: { result: Result | undefined }) {
  const t = useT();
  if (result === undefined) return <span className="text-muted">–</span>;
  if (typeof result === "string") return <StatusDot tone="running">{t(`channel.test.${result}`)}</StatusDot>;
  return result.isGood ? (
    <StatusDot tone="ok">{formatDuration(result.ms)}</StatusDot>
  ) : (
    <StatusDot tone="broken" reason={result.message}>
      {t("channel.test.failed")}
    </StatusDot>
  );
}
