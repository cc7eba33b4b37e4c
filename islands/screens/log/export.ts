// The log as files of the server's, fetched when somebody asks for one: the rows of the filter, and the audit trail.
import { downloadFile } from "../../lib/download.ts";
import { t } from "../../lib/i18n.ts";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { LogParameters } from "./use-logs.ts";

/** What administrators change, what accounts do, sign-ins. */
const AUDIT_TYPES = "3,4,7";

async function take(path: string, query: Record<string, string>, doneKey: string): Promise<void> {
  toast({ key: "export", text: t("log.export.started") });
  try {
    await downloadFile(`${path}?${new URLSearchParams(query).toString()}`, "log.csv");
    toast({ key: "export", text: t(doneKey) });
  } catch (error) {
    toastFailure(error, "export");
  }
}

/** Every row that the list would show, page after page. */
export const exportLog = (isAdmin: boolean, query: LogParameters) =>
  take(isAdmin ? "/api/log/export" : "/api/log/self/export", { ...query }, "log.export.done");

/** `query`: whose rows, and of which time. */
export const exportTrail = (query: Record<string, string>) =>
  take("/api/log/export", { ...query, type: AUDIT_TYPES }, "log.trail.exported");
