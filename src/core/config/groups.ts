// The sections of groups: their ratios, who may use them, and what overrides both.
import { isPriceName } from "../../shared/price-row.ts";
import { definitionOf, isOptionKey } from "../options/definitions.ts";
import type { OptionKey } from "../options/definitions.ts";
import { byName, checked, entriesOf, isRecord, noteFields, onlyFields, wrong } from "./judge.ts";
import type { Judge } from "./judge.ts";

/** The fields of a group, each an option of its own. */
const FIELDS = { ratio: "GroupRatio", usable: "UserUsableGroups", topup: "TopupGroupRatio" } as const;
const FIELD_ROWS = Object.entries(FIELDS);

/** Sections that are one option each. */
const MAP_SECTIONS: Readonly<Record<string, OptionKey>> = {
  group_overrides: "GroupGroupRatio",
  special_usable_groups: "GroupSpecialUsableGroup",
};
const AUTO = "AutoGroups";

/** The options that these sections are about, with the section of each. */
export const GROUP_OPTIONS: ReadonlyMap<string, string> = new Map([
  ...Object.values(FIELDS).map((key) => [key, "groups"] as const),
  ...Object.entries(MAP_SECTIONS).map(([section, key]) => [key, section] as const),
  [AUTO, "auto_groups"] as const,
]);

function valueOf(texts: ReadonlyMap<OptionKey, string>, key: OptionKey): unknown {
  const text = texts.get(key) ?? definitionOf(key).default;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function mapOf(texts: ReadonlyMap<OptionKey, string>, key: OptionKey): Record<string, unknown> {
  const value = valueOf(texts, key);
  return isRecord(value) ? value : {};
}

function groupsIn(texts: ReadonlyMap<OptionKey, string>): Map<string, Record<string, unknown>> {
  const groups = new Map<string, Record<string, unknown>>();
  for (const [field, key] of FIELD_ROWS) {
    for (const [name, value] of Object.entries(mapOf(texts, key)))
      groups.set(name, { ...groups.get(name), [field]: value });
  }
  return groups;
}

/** The sections as they stand; those that this release does not have are left out. */
export function shownGroups(texts: ReadonlyMap<OptionKey, string>): Record<string, unknown> {
  const sections: Record<string, unknown> = {
    groups: Object.fromEntries([...groupsIn(texts)].toSorted(byName)),
  };
  for (const [section, key] of Object.entries(MAP_SECTIONS)) {
    if (!isOptionKey(key)) continue;
    const rows = Object.entries(mapOf(texts, key)).map(([name, each]): [string, unknown] => [
      name,
      isRecord(each) ? Object.fromEntries(Object.entries(each).toSorted(byName)) : each,
    ]);
    sections[section] = Object.fromEntries(rows.toSorted(byName));
  }
  if (isOptionKey(AUTO)) sections["auto_groups"] = valueOf(texts, AUTO) ?? [];
  return sections;
}

/** Whether the option's kind takes this as one of its entries. */
function isEntry(
  judge: Judge,
  path: readonly string[],
  key: OptionKey,
  name: string,
  value: unknown,
): boolean {
  const text = JSON.stringify({ [name]: value });
  const { kind } = definitionOf(key);
  return checked(judge, path, () => (kind.parse(text), kind.check?.(text), true)) === true;
}

export function judgeGroups(judge: Judge, value: unknown): void {
  const before = groupsIn(judge.state.texts);
  const put = (name: string, after: Record<string, unknown> | undefined): void => {
    for (const [field, key] of FIELD_ROWS) judge.prices.push({ key, name, after: after?.[field] ?? null });
    noteFields(judge, { section: "groups", name }, before.get(name), after);
  };
  const named = new Set<string>();
  for (const [name, sent] of entriesOf(judge, ["groups"], value)) {
    const path = ["groups", name];
    named.add(name);
    if (!isPriceName(name)) wrong(judge, path, "config_bad_name", { name });
    else if (!isRecord(sent) || Object.keys(sent).length === 0) wrong(judge, path, "config_not_map");
    else {
      onlyFields(judge, path, sent, Object.keys(FIELDS));
      const isWhole = FIELD_ROWS.every(
        ([field, key]) =>
          sent[field] === undefined || isEntry(judge, [...path, field], key, name, sent[field]),
      );
      if (isWhole && !Bun.deepEquals(before.get(name), sent)) put(name, sent);
    }
  }
  if (!judge.prunes.has("groups")) return;
  for (const name of [...before.keys()].toSorted()) if (!named.has(name)) put(name, undefined);
}

/** A section that is one option: a map from user group to what it gets. */
export function judgeGroupMap(judge: Judge, section: string, value: unknown): void {
  const key = MAP_SECTIONS[section];
  if (key === undefined) return wrong(judge, [section], "config_not_map");
  const before = mapOf(judge.state.texts, key);
  const put = (name: string, after: unknown): void => {
    judge.prices.push({ key, name, after: after ?? null });
    const fieldsOf = (each: unknown) =>
      each === undefined ? undefined : isRecord(each) ? each : { "": each };
    noteFields(judge, { section, name }, fieldsOf(before[name]), fieldsOf(after));
  };
  const named = new Set<string>();
  for (const [name, sent] of entriesOf(judge, [section], value)) {
    named.add(name);
    if (!isPriceName(name)) wrong(judge, [section, name], "config_bad_name", { name });
    else if (isEntry(judge, [section, name], key, name, sent) && !Bun.deepEquals(before[name], sent))
      put(name, sent);
  }
  if (!judge.prunes.has(section)) return;
  for (const name of Object.keys(before).toSorted()) if (!named.has(name)) put(name, undefined);
}

/** The list is all there is: nothing stands beside it. */
export function judgeAutoGroups(judge: Judge, value: unknown): void {
  if (!Array.isArray(value)) return wrong(judge, ["auto_groups"], "config_not_list");
  const text = JSON.stringify(value);
  const { kind } = definitionOf(AUTO);
  const isTaken = checked(judge, ["auto_groups"], () => (kind.parse(text), kind.check?.(text), true));
  const before = valueOf(judge.state.texts, AUTO) ?? [];
  if (isTaken !== true || Bun.deepEquals(before, value)) return;
  judge.prices.push({ key: AUTO, name: "", after: value });
  judge.changes.push({ section: "auto_groups", name: "", field: "", action: "change", before, after: value });
}
