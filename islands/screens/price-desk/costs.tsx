// What upstreams charge: the cost rows of one channel, the bills that were read in for it, and how far both are apart.
// Refuses to write for administrators below root, who read it all.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../lib/api.ts";
import { useT } from "../../lib/i18n.ts";
import { numberOf, setQuery, useQuery } from "../../lib/url-state.ts";
import type { ChannelRow } from "../../lib/wire.ts";
import { Empty, FailureNotice } from "../../ui/feedback.tsx";
import type { SectionProps } from "../../ui/price-sheet/section-props.ts";
import { CostBills } from "./costs/bills.tsx";
import { CostDrift } from "./costs/drift.tsx";
import { CostRows } from "./costs/rows.tsx";

const MOST_CHANNELS = 1000;

type Known = Pick<ChannelRow, "id" | "name">;

function useChannels() {
  const [channels, setChannels] = useState<readonly Known[]>();
  const [failure, setFailure] = useState<string>();
  const load = async () => {
    try {
      const query = { page_size: String(MOST_CHANNELS) };
      const found = await call(api.channel.get({ query }));
      setChannels(found.map(({ id, name }) => ({ id, name })));
      setFailure(undefined);
    } catch (error) {
      setFailure(failureMessage(error));
    }
  };
  useEffect(() => void load(), []);
  return { channels, failure, load };
}

export default function CostsSection({ canApply }: SectionProps) {
  const t = useT();
  const query = useQuery();
  const { channels, failure, load } = useChannels();
  const asked = numberOf(query.channel, 0, 1);
  /** Raised by every write: what depends on it is read anew. */
  const [version, setVersion] = useState(0);
  if (failure !== undefined) return <FailureNotice text={failure} onRetry={load} />;
  if (!channels) return <div className="skeleton mt-4 h-64 rounded-box" aria-hidden />;
  const channel = channels.find(({ id }) => id === asked) ?? channels[0];
  if (!channel) return <Empty title={t("cost.noChannel")} text={t("cost.noChannelText")} />;
  const changed = () => setVersion((value) => value + 1);
  const shared = { channelId: channel.id, canWrite: canApply, version, onChanged: changed };
  return (
    <div className="mt-4">
      <div className="mb-4 flex flex-wrap items-end gap-x-4 gap-y-2">
        <label className="max-sm:w-full">
          <span className="mb-0.5 block text-dense font-semibold">{t("cost.channel")}</span>
          <select
            className="select w-72 max-sm:w-full"
            value={channel.id}
            onChange={(event) => setQuery({ channel: event.target.value })}
          >
            {channels.map(({ id, name }) => (
              <option key={id} value={id}>
                {`${name} (#${id})`}
              </option>
            ))}
          </select>
        </label>
        <p className="max-w-prose text-xs text-muted">{t("cost.about")}</p>
      </div>
      <CostRows key={`rows ${channel.id}`} {...shared} />
      <CostBills key={`bills ${channel.id}`} {...shared} />
      <CostDrift key={`drift ${channel.id}`} {...shared} />
    </div>
  );
}
