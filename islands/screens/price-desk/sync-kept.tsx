// Sources of prices that the site keeps: what the chosen one is, and the form that keeps the one at hand.
// Refuses to switch anything on by itself: prices come by themselves only where root says so.
import { useSignals } from "@preact/signals-react/runtime";
import { useId, useState } from "react";
import { SYNC_ADDRESSES } from "../../../src/shared/price-sync.ts";
import type { SyncSource } from "../../../src/shared/price-sync.ts";
import { api, call, failureMessage } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import type { KeptPriceSource } from "../../lib/wire.ts";
import { prefixesOf } from "./sync-state.ts";
import type { SyncState } from "./sync-state.ts";

/** Writes the whole list; what the server refuses is thrown. */
async function store(state: SyncState, list: readonly KeptPriceSource[]): Promise<void> {
  await call(api.option.put({ key: "PriceSources", value: JSON.stringify(list) }));
  state.kept.value = list;
}

const addressOf = ({ source, url }: KeptPriceSource): string =>
  url === "" ? (SYNC_ADDRESSES[source as SyncSource] ?? "") : url;

export function KeptSource({ state, kept }: { state: SyncState; kept: KeptPriceSource }) {
  useSignals();
  const t = useT();
  const { name, source, strip, auto, limit } = kept;
  const remove = async () => {
    try {
      await store(
        state,
        state.kept.peek().filter((each) => each.name !== name),
      );
      state.keptName.value = "";
    } catch (error) {
      state.failure.value = failureMessage(error);
    }
  };
  const parts = [t(`sync.from.${source.replace(".", "-")}`), addressOf(kept), strip.join(" ")];
  return (
    <p className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-xs text-muted">
      <span className="wrap-anywhere">{parts.filter((part) => part !== "").join(" · ")}</span>
      <span>{auto ? t("sync.keptAuto", { limit }) : t("sync.keptManual")}</span>
      <button type="button" className="btn btn-xs btn-ghost" onClick={() => void remove()}>
        {t("sync.keptRemove")}
      </button>
    </p>
  );
}

const USUAL_LIMIT = 10;
const MAX_LIMIT = 100;

/** Keeps the source that was just compared with. */
export function KeepForm({ state }: { state: SyncState }) {
  useSignals();
  const t = useT();
  const id = useId();
  const [name, setName] = useState("");
  const [isAuto, setAuto] = useState(false);
  const [limit, setLimit] = useState(USUAL_LIMIT);
  const [failure, setFailure] = useState("");
  const keep = async () => {
    const fresh: KeptPriceSource = {
      name: name.trim(),
      source: state.source.peek(),
      url: state.source.peek() === "shipped" ? "" : state.url.peek().trim(),
      strip: prefixesOf(state.strip.peek()),
      auto: isAuto,
      limit,
    };
    try {
      await store(state, [...state.kept.peek(), fresh]);
      state.keptName.value = fresh.name;
    } catch (error) {
      setFailure(failureMessage(error));
    }
  };
  return (
    <details className="mb-3 text-dense">
      <summary className="cursor-pointer text-muted">{t("sync.keep")}</summary>
      <div className="mt-2 flex flex-wrap items-end gap-x-4 gap-y-2">
        <div className="max-sm:w-full">
          <label className="mb-0.5 block font-semibold" htmlFor={`${id}-name`}>
            {t("sync.keepName")}
          </label>
          <input
            id={`${id}-name`}
            className="input w-72 max-sm:w-full"
            maxLength={64}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </div>
        <label className="flex min-h-9 cursor-pointer items-center gap-2">
          <input
            type="checkbox"
            className="toggle"
            role="switch"
            checked={isAuto}
            onChange={(event) => setAuto(event.target.checked)}
          />
          {t("sync.keepAuto")}
        </label>
        {isAuto ? (
          <div>
            <label className="mb-0.5 block font-semibold" htmlFor={`${id}-limit`}>
              {t("sync.keepLimit")}
            </label>
            <input
              id={`${id}-limit`}
              type="number"
              className="input w-28 tabular-nums"
              min={1}
              max={MAX_LIMIT}
              value={limit}
              onChange={(event) => setLimit(Number(event.target.value))}
            />
          </div>
        ) : null}
        <button type="button" className="btn btn-default" onClick={() => void keep()}>
          {t("sync.keepSave")}
        </button>
      </div>
      <p className="mt-1 max-w-[60ch] text-xs text-muted">{t("sync.keepHint")}</p>
      {failure === "" ? null : (
        <p role="alert" className="mt-1 text-error">
          {failure}
        </p>
      )}
    </details>
  );
}
