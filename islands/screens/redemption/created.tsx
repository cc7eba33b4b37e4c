// The codes of a batch that was just made: to copy, or to take along as a file.
// Refuses nothing; the list keeps them readable for administrators.
import { Download } from "lucide-react";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Notice } from "../../ui/feedback.tsx";

export function CreatedCodes({
  keys,
  name,
  onClose,
}: {
  keys: readonly string[];
  name: string;
  onClose: () => void;
}) {
  const t = useT();
  const text = keys.join("\n");
  const download = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([`${text}\n`], { type: "text/plain" }));
    link.download = `${name.replace(/[^\p{L}\p{N}._-]+/gu, "_")}.txt`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return (
    <Notice tone="success" onClose={onClose}>
      <h2 className="font-semibold">{t("redemption.created", { count: keys.length })}</h2>
      <ul className="mt-2 flex flex-col gap-1 max-h-64 overflow-auto">
        {keys.map((key) => (
          <li key={key} className="flex items-center gap-2 min-w-0">
            <code className="mono break-all">{key}</code>
            <CopyButton text={key} label={t("redemption.copyOne")} />
          </li>
        ))}
      </ul>
      <div className="mt-2 flex flex-wrap gap-2">
        <CopyButton text={text} label={t("redemption.copyAll")} withText />
        <button type="button" className="btn btn-sm btn-default" onClick={download}>
          <Download aria-hidden size={14} />
          {t("redemption.download")}
        </button>
      </div>
    </Notice>
  );
}
