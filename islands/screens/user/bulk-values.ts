// What is done to chosen accounts, as the form holds it and as the call takes it.
// Refuses nothing itself: it names what is missing; ranks, groups and balances are the server's to judge.
import type { UserRow } from "../../lib/wire.ts";
import type { UserFilters } from "./filters.ts";
import { quotaProblem } from "./values.ts";
import type { QuotaValues } from "./values.ts";

export type BulkAction = "credit" | "group" | "letter" | "disable" | "enable" | "flag" | "unflag";

/** Whom it is done to: rows, or all that match a filter, as many as the person saw. */
export type BulkWhom =
  { rows: readonly Pick<UserRow, "id" | "username">[] } | { filters: Partial<UserFilters>; count: number };

export const countOf = (whom: BulkWhom): number => ("rows" in whom ? whom.rows.length : whom.count);

export interface BulkValues extends QuotaValues {
  group: string;
  zhSubject: string;
  zhText: string;
  enSubject: string;
  enText: string;
}

export const NOTHING: BulkValues = {
  mode: "add",
  amount: undefined,
  reason: "",
  group: "",
  zhSubject: "",
  zhText: "",
  enSubject: "",
  enText: "",
};

type Problems = Partial<Record<keyof BulkValues & string, string>>;

/** One language is enough; a letter that was begun has both its parts. */
function letterProblems(values: BulkValues): Problems {
  const problems: Problems = {};
  const isBegun = (language: "zh" | "en") =>
    values[`${language}Subject`].trim() !== "" || values[`${language}Text`].trim() !== "";
  const languages = (["zh", "en"] as const).filter(isBegun);
  for (const language of languages.length === 0 ? (["zh"] as const) : languages) {
    if (values[`${language}Subject`].trim() === "") problems[`${language}Subject`] = "user.bulk.noSubject";
    if (values[`${language}Text`].trim() === "") problems[`${language}Text`] = "user.bulk.noText";
  }
  return problems;
}

/** Keys of what is missing, by field. */
export function bulkProblems(action: BulkAction, values: BulkValues): Problems {
  if (action === "letter") return letterProblems(values);
  if (action === "group") return values.group === "" ? { group: "user.bulk.noGroup" } : {};
  if (action !== "credit") return {};
  const amount =
    values.amount === undefined ? "user.noAmount" : quotaProblem(Number.MAX_SAFE_INTEGER / 2, values);
  return {
    ...(amount ? { amount } : {}),
    ...(values.reason.trim() === "" ? { reason: "user.noReason" } : {}),
  };
}

function partOf(action: BulkAction, values: BulkValues) {
  const { mode, amount = 0 } = values;
  if (action === "credit") return { action, amount: mode === "add" ? amount : -amount };
  if (action === "group") return { action, group: values.group };
  if (action === "flag" || action === "unflag")
    return { action: "flag" as const, flagged: action === "flag" };
  if (action !== "letter") return { action };
  const letter = (subject: string, text: string) =>
    subject.trim() === "" ? undefined : { subject: subject.trim(), text: text.trim() };
  const zh = letter(values.zhSubject, values.zhText);
  const en = letter(values.enSubject, values.enText);
  return { action, letters: { ...(zh ? { zh } : {}), ...(en ? { en } : {}) } };
}

/** What the call sends. */
export function bulkBody(action: BulkAction, values: BulkValues, whom: BulkWhom) {
  return {
    ...partOf(action, values),
    reason: values.reason.trim(),
    ...("rows" in whom
      ? { ids: whom.rows.map(({ id }) => id) }
      : { filter: whom.filters, count: whom.count }),
  };
}
