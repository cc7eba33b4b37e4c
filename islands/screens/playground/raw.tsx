// The events of an answer as they came over the network, with the moment of each.
import { formatDuration, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Drawer } from "../../ui/drawer.tsx";
import { rawEventsOf } from "./raw-events.ts";

/** More rows than these make a page slow; copying takes all of them. */
const MOST_SHOWN = 1000;

export default function RawDrawer({ id, onClose }: { id: string; onClose: () => void }) {
  const t = useT();
  const events = rawEventsOf(id);
  const shown = events.slice(0, MOST_SHOWN);
  const hidden = events.length - shown.length;
  return (
    <Drawer isOpen width="wide" title={t("playground.rawTitle")} onClose={onClose}>
      <div className="mb-2 flex items-center gap-2">
        <p className="text-muted">
          {t("playground.rawCount", { count: events.length, number: formatNumber(events.length) })}
        </p>
        <span className="ml-auto">
          <CopyButton
            text={() => events.map(({ data }) => data).join("\n\n")}
            label={t("common.copy")}
            withText
          />
        </span>
      </div>
      <ol
        className="overflow-x-auto rounded-box border border-base-300 bg-base-200 p-3 font-mono text-xs leading-5"
        tabIndex={0}
        aria-label={t("playground.rawTitle")}
      >
        {shown.map(({ data, ms }, index) => (
          <li key={index} className="flex gap-3">
            <span className="w-16 flex-none text-right text-muted tabular-nums">{formatDuration(ms)}</span>
            <code className="min-w-0 break-all whitespace-pre-wrap">{data}</code>
          </li>
        ))}
      </ol>
      {hidden > 0 ? (
        <p className="mt-2 text-muted">
          {t("playground.rawCut", { count: hidden, number: formatNumber(hidden) })}
        </p>
      ) : null}
    </Drawer>
  );
}
