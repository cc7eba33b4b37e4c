// The kind of the option that holds affinity rules: a list that is checked rule by rule when it is saved.
// Refuses two rules of one name, patterns that the server's engine does not know, and templates that are no request rules.
import { RE2JS } from "re2js";
import { readAffinityRule, MAX_AFFINITY_RULES } from "../../shared/affinity-rules.ts";
import type { AffinityRule } from "../../shared/affinity-rules.ts";
import { refuse } from "../../shared/failures.ts";
import { readRequestRules } from "../../shared/request-rules.ts";
import type { OptionKind } from "./kinds.ts";

function listOf(text: string): unknown[] {
  if (text.trim() === "") return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw refuse("option_not_json");
  }
  if (!Array.isArray(parsed) || parsed.length > MAX_AFFINITY_RULES) throw refuse("option_not_list");
  return parsed as unknown[];
}

function compiles(pattern: string): boolean {
  try {
    RE2JS.compile(pattern);
    return true;
  } catch {
    return false;
  }
}

/** The member whose pattern or template cannot be used; undefined: all can. */
function unusable(rule: AffinityRule): string | undefined {
  if (!rule.model_regex.every(compiles)) return "model_regex";
  if (!rule.path_regex.every(compiles)) return "path_regex";
  if (rule.value_regex !== "" && !compiles(rule.value_regex)) return "value_regex";
  return readRequestRules(rule.param_override_template).rules ? undefined : "param_override_template";
}

export const affinityRules: OptionKind<AffinityRule[]> = {
  parse: (text) =>
    listOf(text).map((entry, index) => {
      const { rule, problem } = readAffinityRule(entry);
      if (!rule) throw refuse("option_bad_affinity_rule", { position: index + 1, field: problem });
      return rule;
    }),
  check(text) {
    const names = new Set<string>();
    affinityRules.parse(text).forEach((rule, index) => {
      const field = names.has(rule.name) ? "name" : unusable(rule);
      if (field !== undefined) throw refuse("option_bad_affinity_rule", { position: index + 1, field });
      names.add(rule.name);
    });
  },
};
