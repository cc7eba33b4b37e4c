// Which release runs here, which one is out, and a way to look now.
// Refuses to hide why nothing is known: switched off, no address, no answer.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import type { ResponseData } from "../../../lib/api.ts";
import { nowMs, status } from "../../../lib/boot.ts";
import { formatDateTime, formatWhen } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { toastFailure } from "../../../lib/toasts.ts";
import type { OptionPanelProps } from "./panel-props.ts";
import { PanelBlock } from "./panel-block.tsx";

type Version = ResponseData<typeof api.option.version.get>;

function newestText(t: ReturnType<typeof useT>, version: Version): string {
  if (version.problem !== undefined) return t(`editor.version.problem.${version.problem}`);
  if (version.newest === "") return t("editor.version.looking");
  return t(version.isNewer ? "editor.version.newer" : "editor.version.upToDate", { version: version.newest });
}

const ADDRESS = "site.version_check_url";
export const VERSION_KEYS = [ADDRESS] as const;

export function VersionPanel(panel: OptionPanelProps) {
  const row = panel.rows.find(({ key }) => key === ADDRESS);
  return (
    <>
      <VersionCard />
      {row ? (
        <PanelBlock row={row} panel={panel}>
          {(about) => (
            <input
              className="input"
              type="url"
              aria-labelledby={about.labelledBy}
              aria-describedby={about.describedBy}
              aria-invalid={about.failure === undefined ? undefined : true}
              placeholder="https://"
              autoComplete="off"
              spellCheck={false}
              value={about.value}
              onChange={(event) => about.onChange(event.target.value)}
            />
          )}
        </PanelBlock>
      ) : null}
    </>
  );
}

function VersionCard() {
  const t = useT();
  const [version, setVersion] = useState<Version>();
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    call(api.option.version.get())
      .then(setVersion)
      .catch((error: unknown) => setFailure(failureMessage(error)));
  }, []);
  const look = async () => {
    setBusy(true);
    try {
      setVersion(await call(api.option.version.post()));
      setFailure(undefined);
    } catch (error) {
      toastFailure(error);
    }
    setBusy(false);
  };
  const startMs = (status.value.start_time ?? 0) * 1000;
  const isAskable = version?.problem !== "off" && version?.problem !== "no_address";
  return (
    <div className="setting-line">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-6 gap-y-1">
        <dt className="text-muted">{t("editor.version.current")}</dt>
        <dd className="mono">{version?.current ?? status.value.version}</dd>
        <dt className="text-muted">{t("editor.version.newest")}</dt>
        <dd aria-live="polite" className="wrap-anywhere">
          {failure ??
            (version ? newestText(t, version) : <span className="skeleton inline-block h-4 w-24" />)}
          {version?.url && version.isNewer ? (
            <>
              {" "}
              <a className="link" href={version.url} target="_blank" rel="noreferrer">
                {t("editor.version.notes")}
              </a>
            </>
          ) : null}
        </dd>
        {version && version.checkedAt > 0 ? (
          <>
            <dt className="text-muted">{t("editor.version.checked")}</dt>
            <dd title={formatDateTime(version.checkedAt * 1000)}>
              {formatWhen(version.checkedAt * 1000, nowMs.value)}
            </dd>
          </>
        ) : null}
        {startMs > 0 ? (
          <>
            <dt className="text-muted">{t("editor.version.started")}</dt>
            <dd>{formatDateTime(startMs)}</dd>
          </>
        ) : null}
      </dl>
      <button
        type="button"
        className="btn btn-default btn-sm mt-3"
        disabled={isBusy || !isAskable}
        aria-busy={isBusy}
        onClick={() => void look()}
      >
        {t("editor.version.look")}
      </button>
    </div>
  );
}
