// The models of one channel, tested one by one: search, choose several, each result with time or error beside its model.
// Refuses to ask the provider for several at once: they follow each other, and can be stopped between two.
import { FlaskConical, Square } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { formatDuration } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { StatusDot } from "../../ui/badges.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { testOnce } from "./actions.ts";
import type { TestAnswer } from "./actions.ts";
import type { ChannelRow } from "./row.ts";
import { namesOf } from "./row.ts";

const SHOWN_AT_FIRST = 100;

type Result = "waiting" | "running" | TestAnswer;

export interface TestDrawerProps {
  row: ChannelRow;
  onClose: () => void;
}

export default function TestDrawer({ row, onClose }: TestDrawerProps) {
  const t = useT();
  const [search, setSearch] = useState("");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [results, setResults] = useState<ReadonlyMap<string, Result>>(new Map());
  const [isRunning, setRunning] = useState(false);
  const [isWhole, setWhole] = useState(false);
  const isStopped = useRef(false);
  useEffect(
    () => () => {
      isStopped.current = true;
    },
    [],
  );

  const models = namesOf(row.models);
  const found = models.filter((name) => name.toLowerCase().includes(search.trim().toLowerCase()));
  const shown = isWhole ? found : found.slice(0, SHOWN_AT_FIRST);
  const picked = found.filter((name) => chosen.has(name));
  const isAll = found.length > 0 && picked.length === found.length;
  const note = (name: string, result: Result | undefined) =>
    setResults((before) => {
      const next = new Map(before);
      if (result === undefined) next.delete(name);
      else next.set(name, result);
      return next;
    });

  const run = async (names: readonly string[]) => {
    isStopped.current = false;
    setRunning(true);
    for (const name of names) note(name, "waiting");
    for (const name of names) {
      if (isStopped.current) note(name, undefined);
      else {
        note(name, "running");
        note(name, await testOnce(row.id, name));
      }
    }
    setRunning(false);
  };

  const done = [...results.values()].filter((each) => typeof each === "object");
  const failed = done.filter((each) => !each.isGood).length;
  return (
    <Drawer
      isOpen
      title={t("channel.testTitle", { name: row.name })}
      width="normal"
      onClose={onClose}
      footer={
        <>
          <span className="mr-auto text-muted" role="status">
            {done.length > 0
              ? t("channel.test.summary", { passed: done.length - failed, failed })
              : t("channel.testChosen", { count: picked.length })}
          </span>
          {isRunning ? (
            <button
              type="button"
              className="btn btn-default"
              onClick={() => {
                isStopped.current = true;
              }}
            >
              <Square aria-hidden size={14} />
              {t("channel.testStop")}
            </button>
          ) : (
            <button
              type="button"
              className="btn btn-primary"
              disabled={found.length === 0}
              onClick={() => void run(picked.length > 0 ? picked : found)}
            >
              {picked.length > 0
                ? t("channel.testSome", { count: picked.length })
                : t("channel.testEach", { count: found.length })}
            </button>
          )}
        </>
      }
    >
      <input
        type="search"
        className="input mb-3"
        aria-label={t("channel.testSearch")}
        placeholder={t("channel.testSearch")}
        value={search}
        onChange={(event) => setSearch(event.target.value)}
      />
      {found.length === 0 ? <p className="text-muted">{t("table.noMatch")}</p> : null}
      {found.length > 0 ? (
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
                  onChange={() => setChosen(new Set(isAll ? [] : found))}
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
                      setChosen(next);
                    }}
                  />
                </td>
                <th scope="row" className="mono">
                  {name}
                  {name === row.test_model ? (
                    <span className="badge badge-ghost badge-sm ml-2">{t("channel.testModel")}</span>
                  ) : null}
                </th>
                <td>
                  <ResultCell result={results.get(name)} />
                </td>
                <td>
                  <button
                    type="button"
                    className="btn btn-ghost btn-square btn-xs"
                    aria-label={t("channel.testOne", { name })}
                    title={t("channel.testOne", { name })}
                    disabled={isRunning}
                    onClick={() => void run([name])}
                  >
                    <FlaskConical aria-hidden size={14} />
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {found.length > shown.length ? (
        <button
          type="button"
          className="btn btn-sm btn-ghost text-primary mt-2"
          onClick={() => setWhole(true)}
        >
          {t("channel.showMore", { count: found.length - shown.length })}
        </button>
      ) : null}
    </Drawer>
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
