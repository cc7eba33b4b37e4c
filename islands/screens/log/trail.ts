// The audit trail as a file of the server's: fetched when somebody asks for it.
import { downloadFile } from "../../lib/download.ts";
import { t } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";

/** What administrators change, what accounts do, sign-ins. */
const AUDIT_TYPES = "3,4,7";

/** `query`: whose rows, and of which time. */
export async function exportTrail(query: Record<string, string>): Promise<void> {
  const asked = new URLSearchParams({ ...query, type: AUDIT_TYPES });
  try {
    await downloadFile(`/api/log/export?${asked.toString()}`, "log.csv");
    toast({ key: "export", text: t("log.trail.exported") });
  } catch (error) {
    toastFailure(error, "export");
  }
}
