// The settings: a tab for each part of the site, its groups of options as cards, a search over all of them, one save bar.
// Refuses nothing by itself: the server says what an option takes, its sentence stands at the option.
import { useSignals } from "@preact/signals-react/runtime";
import { Search } from "lucide-react";
import { useEffect, useState } from "react";
import type { SettingPageData, SettingTab } from "../../src/shared/setting-rows.ts";
import { bootData } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { setQuery, useQuery } from "../lib/url-state.ts";
import { whenIdle } from "../lib/when-idle.ts";
import { PageHeader, TabLinks } from "../ui/page-header.tsx";
import type { OptionRow } from "./setting/editor-props.ts";
import { GroupCard } from "./setting/group.tsx";
import { fetchEditors } from "./setting/late-editors.ts";
import { groupName } from "./setting/names.ts";
import { followMark } from "./setting/reveal.ts";
import { SaveBar } from "./setting/save-bar.tsx";
import { createSettings } from "./setting/state.ts";
import type { Settings } from "./setting/state.ts";

const TABS: readonly SettingTab[] = ["operation", "ratelimit", "models", "payment", "system", "other"];

/** Rows by their group, in the order of the rows. */
function groupsOf(rows: readonly OptionRow[]): [string, OptionRow[]][] {
  return [...Map.groupBy(rows, ({ group }) => group)];
}

type Find = (rows: readonly OptionRow[], question: string) => OptionRow[];

/** What the question finds in all tabs; undefined while nothing is asked, "loading" until all tabs are there. */
function useHits(question: string, settings: Settings): readonly OptionRow[] | "loading" | undefined {
  useSignals();
  const [find, setFind] = useState<Find>();
  const isAsked = question !== "";
  useEffect(() => {
    if (!isAsked) return;
    void settings.loadAll();
    import("../lib/setting-words.ts").then(
      (words) => setFind(() => words.findSettings),
      (error: unknown) => console.error(error),
    );
  }, [isAsked]);
  if (!isAsked) return undefined;
  return find && settings.isWhole.value ? find([...settings.rows.value.values()], question) : "loading";
}

export default function SettingScreen() {
  useSignals();
  const t = useT();
  const data = bootData<SettingPageData>();
  const [settings] = useState(() => createSettings(data));
  const { tab: asked, q: question = "" } = useQuery();
  const tab = TABS.find((each) => each === asked) ?? "operation";
  const setQuestion = (text: string) => setQuery({ q: text }, { replace: true });
  const hits = useHits(question.trim(), settings);
  const isHere = tab === data.tab || settings.isWhole.value;

  useEffect(() => whenIdle(() => void fetchEditors()), []);
  useEffect(() => {
    if (!isHere) void settings.loadAll();
  }, [isHere]);
  useEffect(() => (isHere ? followMark(settings) : undefined), [isHere]);

  const rows = [...settings.rows.value.values()].filter((row) => row.tab === tab);
  const shown = hits === undefined ? (isHere ? rows : "loading") : hits;
  return (
    <div className="max-w-5xl">
      <PageHeader
        title={t("shell.nav.settings")}
        note={t("setting.purpose")}
        action={
          <label className="input w-72 max-sm:w-[calc(100vw-1.5rem)]">
            <Search aria-hidden size={16} className="text-muted" />
            <input
              type="search"
              className="grow"
              aria-label={t("setting.search")}
              placeholder={t("setting.searchHint")}
              value={question}
              onChange={(event) => setQuestion(event.target.value)}
              onKeyDown={(event) => {
                if (event.key !== "Escape" || question === "") return;
                event.stopPropagation();
                setQuestion("");
              }}
            />
          </label>
        }
      />
      <TabLinks
        label={t("setting.tabs")}
        tabs={TABS.map((id) => ({
          id,
          label: t(`option.tab.${id}`),
          href: id === "operation" ? "/setting" : `/setting?tab=${id}`,
        }))}
        current={hits === undefined ? tab : ""}
        onOpen={(id) => {
          setQuery({ tab: id === "operation" ? undefined : id, q: undefined });
        }}
      />
      <p className="sr-only" role="status">
        {Array.isArray(hits) ? t("setting.found", { count: hits.length }) : ""}
      </p>
      <div className="mt-4 gap-8 lg:grid lg:grid-cols-[10rem_minmax(0,1fr)]">
        {shown === "loading" || hits !== undefined ? null : <GroupIndex rows={shown} />}
        <div className="flex min-w-0 flex-col gap-4 lg:col-start-2">
          {shown === "loading" ? (
            <Waiting />
          ) : hits === undefined ? (
            groupsOf(shown).map(([id, own]) => <GroupCard key={id} id={id} rows={own} settings={settings} />)
          ) : (
            <Hits rows={shown} settings={settings} />
          )}
        </div>
      </div>
      <SaveBar settings={settings} />
    </div>
  );
}

function Waiting() {
  const t = useT();
  return (
    <>
      <p className="sr-only" role="status">
        {t("common.loading")}
      </p>
      {[0, 1].map((each) => (
        <div key={each} className="skeleton h-64 rounded-box" aria-hidden />
      ))}
    </>
  );
}

/** The groups beside them, where there is room for both. */
function GroupIndex({ rows }: { rows: readonly OptionRow[] }) {
  const t = useT();
  return (
    <nav className="max-lg:hidden" aria-label={t("setting.sections")}>
      <ul className="sticky top-16 flex flex-col border-l border-base-300">
        {groupsOf(rows).map(([id]) => (
          <li key={id}>
            <a
              className="block px-3 py-1 text-[13px] text-muted hover:text-base-content hover:underline"
              href={`#group-${id}`}
            >
              {groupName(id)}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** What a question has found, by tab and group, the best group first. */
function Hits({ rows, settings }: { rows: readonly OptionRow[]; settings: Settings }) {
  const t = useT();
  if (rows.length === 0) {
    return (
      <p className="rounded-box border border-base-300 p-8 text-center text-muted">{t("setting.nothing")}</p>
    );
  }
  return (
    <>
      {groupsOf(rows).map(([id, own]) => (
        <GroupCard
          key={id}
          id={id}
          rows={own}
          settings={settings}
          tabName={t(`option.tab.${own[0]?.tab ?? "operation"}`)}
        />
      ))}
    </>
  );
}
