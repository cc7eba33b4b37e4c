// What can be told to be wrong with a value before it is sent, in the sentences of the server; the rest is the server's to say.
import type { OptionRow } from "../../../src/shared/setting-rows.ts";
import { isTimeZone } from "../../../src/shared/local-time.ts";
import { t } from "../../lib/i18n.ts";
import { parseMap } from "../../lib/json-map.ts";

function numberProblem(
  { min = 0, max = 0, isWhole, isOptional }: OptionRow,
  text: string,
): string | undefined {
  if (isOptional === true && text.trim() === "") return undefined;
  const value = text.trim() === "" ? Number.NaN : Number(text);
  const isRight = isWhole ? Number.isInteger(value) : Number.isFinite(value);
  if (isRight && value >= min && value <= max) return undefined;
  return isWhole ? t("failure.option_not_int", { min, max }) : t("failure.option_not_number", { min, max });
}

function jsonProblem({ key, kind }: OptionRow, text: string): string | undefined {
  if (text.trim() === "") return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return t(key === "TopupGroupRatio" ? "setting.problem.topupRatio" : "failure.option_not_json");
  }
  const isList = Array.isArray(parsed);
  if (kind === "json_list") return isList ? undefined : t("failure.option_not_list");
  if (isList || typeof parsed !== "object" || parsed === null) return t("failure.option_not_map");
  // Of two entries of one name the server would see the last one only.
  const { problem } = parseMap(text, "json");
  if (problem?.code !== "duplicate") return undefined;
  return t("form.map.duplicate", { line: problem.line, key: problem.key ?? "" });
}

const isWebAddress = (text: string) => /^https?:\/\//.test(text) && URL.canParse(text);

/** `serverAddress`, once all is saved: payments come back to it. */
export function problemOf(option: OptionRow, text: string, serverAddress?: string): string | undefined {
  if (option.group === "payment" && serverAddress === "") return t("setting.problem.serverAddress");
  if (option.key === "oidc.well_known" && text !== "" && !/^https?:\/\//.test(text))
    return t("setting.problem.wellKnown");
  switch (option.kind) {
    case "number":
      return numberProblem(option, text);
    case "url":
      return text === "" || isWebAddress(text) ? undefined : t("failure.option_not_url");
    case "time_zone":
      return isTimeZone(text) ? undefined : t("failure.option_not_time_zone");
    case "number_map":
    case "text_map":
    case "json_map":
    case "json_list":
      return jsonProblem(option, text);
    default:
      return undefined;
  }
}
