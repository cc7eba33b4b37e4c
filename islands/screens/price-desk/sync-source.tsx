// The question of a comparison: which source, by address or as a text, and which beginnings names lose.
// Refuses to offer administrators an address: only root makes the server fetch.
import { useSignals } from "@preact/signals-react/runtime";
import { useId, useRef } from "react";
import type { FormEvent } from "react";
import { SYNC_SOURCES } from "../../../src/shared/price-sync.ts";
import type { SyncSource } from "../../../src/shared/price-sync.ts";
import { useT } from "../../lib/i18n.ts";
import { KeptSource } from "./sync-kept.tsx";
import type { SyncState } from "./sync-state.ts";

/** Before the names of kept sources, so that none of them is taken for a kind. */
const KEPT = "kept:";

interface FormProps {
  state: SyncState;
  canFetch: boolean;
}

export function SyncSourceForm({ state, canFetch }: FormProps) {
  useSignals();
  const t = useT();
  const id = useId();
  const { source, way, failure, isBusy } = state;
  const chosen = state.kept.value.find(({ name }) => name === state.keptName.value);
  /** Nothing more is to be asked. */
  const isShipped = source.value === "shipped" || chosen !== undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void state.compare();
  };
  return (
    <form onSubmit={submit} noValidate>
      <div className="flex flex-wrap items-end gap-x-4 gap-y-3">
        <div className="max-sm:w-full">
          <label className="mb-0.5 block text-dense font-semibold" htmlFor={`${id}-source`}>
            {t("sync.source")}
          </label>
          <select
            id={`${id}-source`}
            className="select w-72 max-sm:w-full"
            value={chosen ? KEPT + chosen.name : source.value}
            onChange={(event) => {
              const { value } = event.target;
              if (value.startsWith(KEPT)) state.keptName.value = value.slice(KEPT.length);
              else state.chooseSource(value as SyncSource);
            }}
          >
            {state.kept.value.length === 0 ? null : (
              <optgroup label={t("sync.kept")}>
                {state.kept.value.map(({ name }) => (
                  <option key={name} value={KEPT + name}>
                    {name}
                  </option>
                ))}
              </optgroup>
            )}
            {SYNC_SOURCES.map((each) => (
              <option key={each} value={each}>
                {t(`sync.from.${each.replace(".", "-")}`)}
              </option>
            ))}
          </select>
        </div>
        {isShipped || !canFetch ? null : (
          <fieldset className="flex min-h-9 items-center gap-4" aria-label={t("sync.way")}>
            {waysOf(state).map((each) => (
              <label key={each} className="flex cursor-pointer items-center gap-2 text-dense">
                <input
                  type="radio"
                  className="radio"
                  name={`${id}-way`}
                  checked={way.value === each}
                  onChange={() => (way.value = each)}
                />
                {t(`sync.by.${each}`)}
              </label>
            ))}
          </fieldset>
        )}
        {isShipped ? <CompareButton isBusy={isBusy.value} /> : null}
      </div>
      {chosen ? (
        <KeptSource state={state} kept={chosen} />
      ) : (
        <p className="mt-1 text-xs text-muted">{t(`sync.about.${source.value.replace(".", "-")}`)}</p>
      )}
      {isShipped ? null : (
        <div className="mt-3 flex flex-wrap items-start gap-x-4 gap-y-3">
          {way.value === "address" && canFetch ? (
            <AddressField state={state} id={id} />
          ) : way.value === "channel" ? (
            <ChannelField state={state} id={id} />
          ) : (
            <TextField state={state} id={id} />
          )}
          <div className="w-72 max-sm:w-full">
            <label className="mb-0.5 block text-dense font-semibold" htmlFor={`${id}-strip`}>
              {t("sync.strip")}
            </label>
            <input
              id={`${id}-strip`}
              className="input mono w-full"
              aria-describedby={`${id}-strip-hint`}
              placeholder="openai/, anthropic/"
              autoComplete="off"
              spellCheck={false}
              value={state.strip.value}
              onChange={(event) => (state.strip.value = event.target.value)}
            />
            <p id={`${id}-strip-hint`} className="mt-1 text-xs text-muted">
              {t("sync.stripHint")}
            </p>
          </div>
          <div className="self-center">
            <CompareButton isBusy={isBusy.value} />
          </div>
        </div>
      )}
      {failure.value === "" ? null : (
        <p role="alert" className="mt-2 text-dense text-error">
          {failure.value}
        </p>
      )}
    </form>
  );
}

/** Another site is also asked by the channel that leads there: its address and its way out are known. */
function waysOf({ source, channels }: SyncState) {
  return source.value === "instance" && channels.value.length > 0
    ? (["address", "channel", "text"] as const)
    : (["address", "text"] as const);
}

function ChannelField({ state, id }: PartProps) {
  useSignals();
  const t = useT();
  return (
    <div className="w-72 grow max-sm:w-full">
      <label className="mb-0.5 block text-dense font-semibold" htmlFor={`${id}-channel`}>
        {t("sync.channel")}
      </label>
      <select
        id={`${id}-channel`}
        className="select w-full"
        aria-describedby={`${id}-channel-hint`}
        value={state.channelId.value ?? ""}
        onChange={(event) =>
          (state.channelId.value = event.target.value === "" ? undefined : Number(event.target.value))
        }
      >
        <option value="">{t("sync.channelChoose")}</option>
        {state.channels.value.map(({ id: channelId, name }) => (
          <option key={channelId} value={channelId}>
            {`${name} (#${channelId})`}
          </option>
        ))}
      </select>
      <p id={`${id}-channel-hint`} className="mt-1 text-xs text-muted">
        {t("sync.channelHint")}
      </p>
    </div>
  );
}

function CompareButton({ isBusy }: { isBusy: boolean }) {
  const t = useT();
  return (
    // Not disabled: that would take the focus from whoever pressed it by keyboard.
    <button type="submit" className="btn btn-primary" aria-disabled={isBusy} aria-busy={isBusy}>
      {isBusy ? <span className="loading loading-xs" aria-hidden /> : null}
      {t("sync.compare")}
    </button>
  );
}

interface PartProps {
  state: SyncState;
  id: string;
}

function AddressField({ state, id }: PartProps) {
  useSignals();
  const t = useT();
  return (
    <div className="w-72 grow max-sm:w-full">
      <label className="mb-0.5 block text-dense font-semibold" htmlFor={`${id}-url`}>
        {t("sync.address")}
      </label>
      <input
        id={`${id}-url`}
        type="url"
        className="input mono w-full"
        aria-describedby={`${id}-url-hint`}
        placeholder="https://"
        autoComplete="off"
        spellCheck={false}
        value={state.url.value}
        onChange={(event) => (state.url.value = event.target.value)}
      />
      <p id={`${id}-url-hint`} className="mt-1 text-xs text-muted">
        {t("sync.addressHint")}
      </p>
    </div>
  );
}

/** A text is pasted or comes from a file; a file of megabytes is named, not shown. */
function TextField({ state, id }: PartProps) {
  useSignals();
  const t = useT();
  const file = useRef<HTMLInputElement>(null);
  const { text, fileName } = state;
  return (
    <div className="w-72 grow max-sm:w-full">
      <div className="mb-0.5 flex min-h-6 items-center gap-3">
        <label
          className="text-dense font-semibold"
          {...(fileName.value === "" ? { htmlFor: `${id}-text` } : {})}
        >
          {t("sync.text")}
        </label>
        <input
          ref={file}
          type="file"
          hidden
          accept=".json,application/json,text/plain"
          aria-label={t("sync.file")}
          onChange={(event) => {
            const [chosen] = event.target.files ?? [];
            if (chosen) void state.readFile(chosen);
            // The same file may be chosen again after it has changed.
            event.target.value = "";
          }}
        />
        <button
          type="button"
          className="btn btn-xs btn-default ml-auto"
          onClick={() => file.current?.click()}
        >
          {t("sync.file")}
        </button>
      </div>
      {fileName.value === "" ? (
        <textarea
          id={`${id}-text`}
          className="textarea mono h-24 w-full"
          spellCheck={false}
          placeholder='{"data": …}'
          value={text.value}
          onChange={(event) => (text.value = event.target.value)}
        />
      ) : (
        <p className="flex min-h-9 items-center gap-3 rounded-field border border-base-300 px-3 text-dense">
          <span className="mono min-w-0 truncate">{fileName.value}</span>
          <button
            type="button"
            className="btn btn-xs btn-ghost ml-auto"
            onClick={() => {
              fileName.value = "";
              text.value = "";
            }}
          >
            {t("sync.fileRemove")}
          </button>
        </p>
      )}
    </div>
  );
}
