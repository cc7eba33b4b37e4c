// Fills cost rows for the channel's models: from the shipped list, or from the prices of the instance behind the channel.
import { useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { useT } from "../../../lib/i18n.ts";
import type { CostFound } from "../../../lib/wire.ts";
import { BusyButton } from "../../../ui/busy-button.tsx";
import { costText } from "./cost-text.ts";
import { TextSource } from "./text-source.tsx";
import type { GivenText } from "./text-source.tsx";

type Source = "list" | "pricing";

export function CostFill({ channelId, onWritten }: { channelId: number; onWritten: () => void }) {
  const t = useT();
  const [source, setSource] = useState<Source>("list");
  const [given, setGiven] = useState<GivenText>({ way: "address", text: "", url: "", key: "" });
  const [group, setGroup] = useState<string>();
  const [found, setFound] = useState<CostFound>();
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const ask = async (wanted: string | undefined) => {
    if (isBusy) return;
    setBusy(true);
    setFailure("");
    try {
      const from = given.way === "address" ? { url: given.url } : { text: given.text };
      const body = {
        channel_id: channelId,
        source,
        ...(source === "list" ? {} : from),
        ...(wanted === undefined ? {} : { group: wanted }),
      };
      setFound(await call(api.cost.fill.post(body)));
      setGroup(wanted);
    } catch (error) {
      setFailure(failureMessage(error));
    }
    setBusy(false);
  };
  const write = async () => {
    if (!found || isBusy) return;
    setBusy(true);
    try {
      const rows = found.offers.map(({ model, row, group_ratio: ratio }) => ({
        model,
        row: row && { ...row },
        group_ratio: ratio,
      }));
      await call(api.cost.post({ channel_id: channelId, source, rows }));
      onWritten();
    } catch (error) {
      setFailure(failureMessage(error));
    }
    setBusy(false);
  };
  const groups = Object.keys(found?.groups ?? {});
  return (
    <div className="mb-4 rounded-box border border-base-300 p-4">
      <div className="flex flex-wrap items-end gap-x-4 gap-y-3">
        <fieldset className="flex min-h-9 items-center gap-4" aria-label={t("cost.fillFrom")}>
          {(["list", "pricing"] as const).map((each) => (
            <label key={each} className="flex cursor-pointer items-center gap-2 text-dense">
              <input
                type="radio"
                className="radio"
                name="cost-fill"
                checked={source === each}
                onChange={() => {
                  setSource(each);
                  setFound(undefined);
                }}
              />
              {t(`cost.source.${each}`)}
            </label>
          ))}
        </fieldset>
        <BusyButton isBusy={isBusy} className="btn-default" onPress={() => void ask(undefined)}>
          {t("cost.look")}
        </BusyButton>
      </div>
      {source === "pricing" ? <TextSource given={given} onGiven={setGiven} hasKey={false} /> : null}
      {failure === "" ? null : (
        <p role="alert" className="mt-2 text-dense text-error">
          {failure}
        </p>
      )}
      {found && groups.length > 0 ? (
        <label className="mt-3 flex flex-wrap items-center gap-2 text-dense">
          {t("cost.group")}
          <select
            className="select select-sm w-60"
            value={group ?? (groups.includes("default") ? "default" : groups[0])}
            onChange={(event) => void ask(event.target.value)}
          >
            {groups.map((name) => (
              <option key={name} value={name}>
                {`${name} × ${found.groups[name]}`}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      {found ? (
        <div className="mt-3" role="status">
          <ul className="max-h-64 overflow-y-auto text-dense" tabIndex={0} aria-label={t("cost.rows")}>
            {found.offers.map((offer) => (
              <li key={offer.model} className="flex flex-wrap gap-x-3 border-b border-base-300 py-1">
                <span className="mono">{offer.model}</span>
                <span className="text-muted">{costText(t, { ...offer, factor: 1 })}</span>
              </li>
            ))}
          </ul>
          {found.missing.length === 0 ? null : (
            <p className="mt-2 text-xs text-muted">
              {t("cost.missing", {
                count: found.missing.length,
                models: found.missing.slice(0, 8).join(", "),
              })}
            </p>
          )}
          {found.offers.length === 0 ? null : (
            <BusyButton isBusy={isBusy} className="btn-primary mt-3" onPress={() => void write()}>
              {t("cost.take", { count: found.offers.length })}
            </BusyButton>
          )}
        </div>
      ) : null}
    </div>
  );
}
