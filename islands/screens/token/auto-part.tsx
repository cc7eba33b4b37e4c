// The order in which an automatic key tries groups: the site's, or the key's own, pressed together name by name.
import { AUTO_GROUP, autoGroupsOf, MOST_AUTO_GROUPS } from "../../../src/shared/auto-group.ts";
import { shortText } from "../../../src/shared/short-text.ts";
import { useT } from "../../lib/i18n.ts";
import type { GroupMap } from "../../lib/wire.ts";
import { Field } from "../../ui/form.tsx";
import type { TokenForm } from "./drawer-parts.tsx";

/** Longer names are cut. */
const MOST_LABEL = 40;

export interface AutoPartProps {
  form: TokenForm;
  groups: GroupMap;
  /** The site's order, as far as it is the user's. */
  site: readonly string[];
}

export function AutoPart({ form, groups, site }: AutoPartProps) {
  const t = useT();
  const chosen = autoGroupsOf(form.values.autoGroups);
  const shown = (name: string) => {
    const ratio = Object.hasOwn(groups, name) ? groups[name]?.ratio : undefined;
    return shortText(name, MOST_LABEL) + (ratio === undefined ? "" : ` ${ratio}×`);
  };
  const inOrder = (names: readonly string[]) => names.map(shown).join(" → ");
  // Each keeps its place when it is pressed; those that are chosen stay in sight, also where they may not be used any more.
  const offered = [...new Set([...Object.keys(groups), ...chosen])].filter((name) => name !== AUTO_GROUP);
  const order =
    chosen.length > 0
      ? t("token.autoGroupsOwn", { groups: inOrder(chosen) })
      : site.length > 0
        ? t("token.autoGroupsSite", { groups: inOrder(site) })
        : t("token.autoGroupsNone");
  return (
    <Field
      form={form}
      name="autoGroups"
      label={t("token.autoGroups")}
      hint={t("token.autoGroupsHint", { max: MOST_AUTO_GROUPS })}
      isGroup
    >
      {({ "aria-describedby": describedBy }) => (
        <div role="group" aria-label={t("token.autoGroups")} aria-describedby={describedBy}>
          <div className="flex flex-wrap gap-2 max-h-40 overflow-auto">
            {offered.map((name) => {
              const at = chosen.indexOf(name);
              return (
                <button
                  key={name}
                  type="button"
                  className="btn btn-sm btn-default"
                  aria-pressed={at !== -1}
                  disabled={at === -1 && chosen.length >= MOST_AUTO_GROUPS}
                  onClick={() =>
                    form.set(
                      "autoGroups",
                      (at === -1 ? [...chosen, name] : chosen.filter((each) => each !== name)).join(","),
                    )
                  }
                >
                  {at === -1 ? null : <span className="tabular-nums">{at + 1}.</span>}
                  {shown(name)}
                </button>
              );
            })}
          </div>
          <p className="mt-2 text-dense wrap-anywhere" role="status">
            {order}
          </p>
        </div>
      )}
    </Field>
  );
}
