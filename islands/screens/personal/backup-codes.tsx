// The ten backup codes, once: to copy or to keep as a file.
// Refuses to shut by Escape or by a press beside it: they are not shown again.
import { Download } from "lucide-react";
import { status, user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Modal } from "../../ui/modal.tsx";

export default function BackupCodes({ codes, onClose }: { codes: readonly string[]; onClose: () => void }) {
  const t = useT();
  const text = codes.join("\n");
  const save = () => {
    const heading = t("personal.codesFile", {
      site: status.peek().system_name ?? "",
      name: user.peek()?.username ?? "",
    });
    const url = URL.createObjectURL(new Blob([`${heading}\n\n${text}\n`], { type: "text/plain" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = "backup-codes.txt";
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <Modal title={t("personal.codesTitle")} onClose={onClose} isHeld>
      <p className="text-muted">{t("personal.codesText")}</p>
      <ul
        className="mono my-4 grid grid-cols-2 gap-x-6 gap-y-1 rounded-box border border-base-300 px-4 py-3 select-all"
        aria-label={t("personal.codesTitle")}
      >
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <div className="flex flex-wrap justify-end gap-2">
        <CopyButton text={text} label={t("personal.codesCopy")} withText />
        <button type="button" className="btn btn-default btn-sm" onClick={save}>
          <Download aria-hidden size={14} />
          {t("personal.codesSave")}
        </button>
        <button type="button" className="btn btn-primary btn-sm" data-autofocus onClick={onClose}>
          {t("personal.codesKept")}
        </button>
      </div>
    </Modal>
  );
}
