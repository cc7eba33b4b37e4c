// The codes of a batch that was just made: to copy, or to take along as a file.
import { Download } from "lucide-react";
import { useEffect, useRef } from "react";
import { csvText, downloadText } from "../../lib/csv.ts";
import { formatQuota } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";
import { dollarsText } from "../../ui/money-field.tsx";
import { batchCells, fileName } from "./row.ts";
import type { CodeBatch } from "./row.ts";

export default function CreatedCodes({ batch, onClose }: { batch: CodeBatch; onClose: () => void }) {
  const t = useT();
  const heading = useRef<HTMLHeadingElement>(null);
  // People land where the new codes are, not back at the button.
  useEffect(() => heading.current?.focus(), [batch]);
  const { keys, name, quota } = batch;
  const download = () =>
    downloadText(
      `${fileName(name)}.csv`,
      csvText(
        [t("redemption.code"), t("redemption.name"), t("redemption.csvDollars"), t("redemption.csvQuota")],
        batchCells(batch, dollarsText(quota)),
      ),
    );
  return (
    <Notice tone="success" onClose={onClose}>
      <h2 ref={heading} tabIndex={-1} className="font-semibold outline-none">
        {t("redemption.created", { count: keys.length, value: formatQuota(quota) })}
      </h2>
      <ul
        className="mt-2 flex max-h-64 flex-col overflow-auto"
        aria-label={t("redemption.newCodes")}
        tabIndex={0}
      >
        {keys.map((key) => (
          <li key={key} className="flex min-w-0 items-center gap-2">
            <code className="mono min-w-0 break-all">{key}</code>
            <CopyButton text={key} label={t("redemption.copyOne")} />
          </li>
        ))}
      </ul>
      <div className="mt-2 flex flex-wrap gap-2">
        <CopyButton text={keys.join("\n")} label={t("redemption.copyAll")} withText />
        <button type="button" className="btn btn-sm btn-default" onClick={download}>
          <Download aria-hidden size={14} />
          {t("redemption.download")}
        </button>
      </div>
    </Notice>
  );
}
