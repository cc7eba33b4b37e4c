// The models of a channel: tokens, presets, and the upstream's own list with what is new and what is gone before it is applied.
// Refuses to take a model away unasked: what is gone is only ticked for removal by hand.
import { useEffect, useId, useState } from "react";
import { channelAddress } from "../../../src/shared/channel-address.ts";
import { api, call, failureMessage, isAbort } from "../../lib/api.ts";
import type { Form } from "../../lib/form.ts";
import { useT } from "../../lib/i18n.ts";
import { copyText } from "../../ui/copy-button.tsx";
import { announce } from "../../lib/toasts.ts";
import { Result } from "../../ui/result.tsx";
import { namesOf } from "./row.ts";
import { TokenField } from "./token-field.tsx";
import { UnpricedNote } from "./unpriced-note.tsx";
import type { ChannelValues } from "./values.ts";
import type { ChannelRow } from "../../lib/wire.ts";

const SEARCHABLE_FROM = 12;
/** Some upstreams offer thousands. */
const TICKS_AT_FIRST = 300;

export interface ModelsPartProps {
  form: Form<ChannelValues>;
  row: ChannelRow | undefined;
  /** Models that belong to the chosen type. */
  related: readonly string[];
  /** Every model that the product knows. */
  all: readonly string[];
}

/** The models that the upstream offers, fetched when somebody wants them. */
function useFetchedModels({ form, row }: Pick<ModelsPartProps, "form" | "row">) {
  const t = useT();
  const [fetched, setFetched] = useState<readonly string[]>();
  const [running, setRunning] = useState<AbortController>();
  const [failure, setFailure] = useState<string>();
  const { values } = form;
  const fetchModels = async () => {
    const key = values.key.trim();
    if (!row && key === "") {
      form.fail("key", t("channel.fetchKeyMissing"));
      form.element.current?.querySelector<HTMLElement>("[name=key]")?.focus();
      return;
    }
    const controller = new AbortController();
    const options = { fetch: { signal: controller.signal } };
    setRunning(controller);
    setFailure(undefined);
    setFetched(undefined);
    try {
      // With a typed key the request carries what stands here; without one, as it is saved.
      const names =
        row && key === ""
          ? await call(api.channel.fetch_models({ id: row.id }).get(options))
          : await call(
              api.channel.fetch_models.post(
                { base_url: channelAddress(values.type, values.baseUrl), type: values.type, key },
                options,
              ),
            );
      setFetched(names);
    } catch (error) {
      if (!isAbort(error)) setFailure(`${t("channel.fetchFailed")}: ${failureMessage(error)}`);
    } finally {
      setRunning(undefined);
    }
  };
  return { fetched, running, failure, fetchModels, drop: () => setFetched(undefined) };
}

export function ModelsPart({ form, row, related, all }: ModelsPartProps) {
  const t = useT();
  const id = useId();
  const { fetched, running, failure, fetchModels, drop } = useFetchedModels({ form, row });
  const { values, set } = form;
  const models = namesOf(values.models);
  const replace = (names: readonly string[]) => {
    set("models", names.join(","));
    announce("channel.models", { count: names.length });
  };
  const add = (names: readonly string[]) => replace([...new Set([...models, ...names])]);
  const actions = [
    { label: t("channel.fillRelated", { count: related.length }), names: related, run: () => add(related) },
    { label: t("channel.fillAll", { count: all.length }), names: all, run: () => add(all) },
    { label: t("channel.copyModels"), names: models, run: () => void copyText(models.join(",")) },
    { label: t("channel.clearModels"), names: models, run: () => replace([]) },
  ];

  return (
    <>
      <TokenField
        form={form}
        name="models"
        label={t("channel.models", { count: models.length })}
        hint={t("channel.modelsHint")}
        isRequired
        isMono
        suggestions={[...new Set([...related, ...all])]}
        placeholder={t("channel.addModel")}
        repeated={t("channel.modelsExist")}
      />
      <div className="-mt-1 mb-4 flex flex-wrap gap-2">
        <button
          type="button"
          className="btn btn-sm btn-default"
          aria-busy={running !== undefined}
          disabled={running !== undefined}
          onClick={() => void fetchModels()}
        >
          {running ? <span className="loading loading-spinner loading-xs" aria-hidden /> : null}
          {t("channel.fetchModels")}
        </button>
        {actions.map(({ label, names, run }, index) => (
          <button
            key={index}
            type="button"
            className="btn btn-sm btn-default"
            disabled={names.length === 0}
            onClick={run}
          >
            {label}
          </button>
        ))}
      </div>
      <UnpricedNote models={models} />
      {running ? <Fetching onCancel={() => running.abort()} /> : null}
      {failure ? (
        <Result labelledBy={`${id}-failure`} className="mb-4">
          <p id={`${id}-failure`} role="alert" className="wrap-anywhere text-xs text-error">
            {failure}
          </p>
        </Result>
      ) : null}
      {fetched ? (
        <FetchedModels
          key={fetched.join(",")}
          fetched={fetched}
          models={models}
          onApply={(added, removed) => {
            set("models", [...models.filter((name) => !removed.has(name)), ...added].join(","));
            drop();
            announce("channel.fetchApplied", { added: added.size, removed: removed.size });
          }}
          onClose={drop}
        />
      ) : null}
    </>
  );
}

/** How long the upstream has been asked; nobody can know how long it takes. */
function Fetching({ onCancel }: { onCancel: () => void }) {
  const t = useT();
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((before) => before + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <p className="mb-4 flex items-center gap-3">
      <span className="tabular-nums">{t("channel.run.fetching", { seconds })}</span>
      <button type="button" className="btn btn-sm btn-default" onClick={onCancel}>
        {t("channel.testStop")}
      </button>
    </p>
  );
}

interface FetchedProps {
  fetched: readonly string[];
  models: readonly string[];
  onApply: (added: ReadonlySet<string>, removed: ReadonlySet<string>) => void;
  onClose: () => void;
}

/** What the upstream offers beside what the channel has. New ones are ticked; those that are gone stay until ticked. */
function FetchedModels({ fetched, models, onApply, onClose }: FetchedProps) {
  const t = useT();
  const id = useId();
  const offered = new Set(fetched);
  const held = new Set(models);
  const fresh = fetched.filter((name) => !held.has(name));
  const gone = models.filter((name) => !offered.has(name));
  const [added, setAdded] = useState<ReadonlySet<string>>(new Set(fresh));
  const [removed, setRemoved] = useState<ReadonlySet<string>>(new Set());
  const [search, setSearch] = useState("");
  const kept = models.length - gone.length;
  const count = added.size + removed.size;
  return (
    <Result labelledBy={`${id}-sum`} className="mb-4 rounded-box border border-base-300 bg-base-200 p-3">
      <p id={`${id}-sum`} role="status" className="font-semibold">
        {t("channel.fetchedNew", { count: fresh.length })} {t("channel.fetchedGone", { count: gone.length })}{" "}
        <span className="text-muted font-normal">{t("channel.fetchedKept", { count: kept })}</span>
      </p>
      {fresh.length + gone.length > SEARCHABLE_FROM ? (
        <input
          type="search"
          className="input input-sm mt-2"
          aria-label={t("channel.fetchedSearch")}
          placeholder={t("channel.fetchedSearch")}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") event.preventDefault();
          }}
        />
      ) : null}
      <Ticks
        title={t("channel.fetchedAdd")}
        names={fresh}
        search={search}
        chosen={added}
        onChange={setAdded}
      />
      <Ticks
        title={t("channel.fetchedRemove")}
        names={gone}
        search={search}
        chosen={removed}
        onChange={setRemoved}
      />
      <div className="mt-3 flex flex-wrap gap-2">
        <button
          type="button"
          className="btn btn-sm btn-primary"
          disabled={count === 0}
          onClick={() => onApply(added, removed)}
        >
          {t("channel.fetchedApply", { added: added.size, removed: removed.size })}
        </button>
        <button type="button" className="btn btn-sm btn-default" onClick={onClose}>
          {t("common.cancel")}
        </button>
      </div>
    </Result>
  );
}

interface TicksProps {
  title: string;
  names: readonly string[];
  search: string;
  chosen: ReadonlySet<string>;
  onChange: (chosen: ReadonlySet<string>) => void;
}

function Ticks({ title, names, search, chosen, onChange }: TicksProps) {
  const t = useT();
  const id = useId();
  const [isExpanded, setExpanded] = useState(false);
  const found = names.filter((name) => name.toLowerCase().includes(search.trim().toLowerCase()));
  const shown = isExpanded ? found : found.slice(0, TICKS_AT_FIRST);
  if (names.length === 0) return null;
  const isAll = found.length > 0 && found.every((name) => chosen.has(name));
  const toggle = (some: readonly string[], isOn: boolean) => {
    const next = new Set(chosen);
    for (const name of some) {
      if (isOn) next.add(name);
      else next.delete(name);
    }
    onChange(next);
  };
  return (
    <div role="group" aria-labelledby={id} className="mt-3">
      <p className="flex items-center gap-3">
        <span id={id} className="text-dense font-semibold">
          {title}
        </span>
        <button
          type="button"
          className="btn btn-sm btn-ghost text-primary"
          onClick={() => toggle(found, !isAll)}
        >
          {t(isAll ? "channel.chooseNone" : "channel.chooseAll")}
        </button>
      </p>
      <ul className="tick-list">
        {shown.map((name) => (
          <li key={name}>
            <label>
              <input
                type="checkbox"
                className="checkbox"
                checked={chosen.has(name)}
                onChange={(event) => toggle([name], event.target.checked)}
              />
              <span className="mono">{name}</span>
            </label>
          </li>
        ))}
      </ul>
      {found.length > shown.length ? (
        <button type="button" className="btn btn-sm btn-ghost text-primary" onClick={() => setExpanded(true)}>
          {t("channel.showMore", { count: found.length - shown.length })}
        </button>
      ) : null}
    </div>
  );
}
