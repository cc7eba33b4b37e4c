// The price desk: sheets over prices, groups and who sees them, what is planned with them, and what was done before.
// Refuses to change anything by itself: sheets collect changes, a plan shows what they do, and root applies it.
import { useSignals } from "@preact/signals-react/runtime";
import { useEffect, useState } from "react";
import type { ComponentType } from "react";
import { DESK_SECTIONS } from "../../src/shared/price-desk.ts";
import type { DeskPageData, DeskSection } from "../../src/shared/price-desk.ts";
import { api, call, failureMessage } from "../lib/api.ts";
import { bootData } from "../lib/boot.ts";
import { useT } from "../lib/i18n.ts";
import { lazyPart } from "../lib/lazy-part.tsx";
import { setQuery, useQuery } from "../lib/url-state.ts";
import { PageHeader, TabLinks } from "../ui/page-header.tsx";
import type { DeskBarProps } from "./price-desk/bar.tsx";
import { createDesk } from "../ui/price-sheet/desk.ts";
import { FirstModels } from "../ui/price-sheet/models/first.tsx";
import { useKeptFocus } from "./price-desk/keep-focus.ts";
import type { SectionProps } from "../ui/price-sheet/section-props.ts";

/** A section that is there; one line each. */
const SECTIONS: Partial<Record<DeskSection, ComponentType<SectionProps>>> = {
  models: lazyPart<SectionProps>(() => import("../ui/price-sheet/models.tsx"), FirstModels),
  sync: lazyPart(() => import("./price-desk/sync.tsx")),
  costs: lazyPart<SectionProps>(() => import("./price-desk/costs.tsx")),
  plan: lazyPart(() => import("./price-desk/plan.tsx")),
  drafts: lazyPart(() => import("./price-desk/drafts.tsx")),
  history: lazyPart(() => import("./price-desk/history.tsx")),
  groups: lazyPart(() => import("./price-desk/groups.tsx")),
  overrides: lazyPart(() => import("./price-desk/overrides.tsx")),
  special: lazyPart(() => import("./price-desk/special.tsx")),
  auto: lazyPart(() => import("./price-desk/auto.tsx")),
};

const DeskBar = lazyPart<DeskBarProps>(() => import("./price-desk/bar.tsx"));

/** Has something to show before the prices are there. */
const AT_ONCE: ReadonlySet<DeskSection> = new Set(["models"]);

/** Sheets have the way back and forth beside what they show. */
const WITH_STEPS: ReadonlySet<DeskSection> = new Set(["models", "groups", "overrides", "special", "auto"]);

const hrefOf = (section: DeskSection): string =>
  section === "models" ? "/prices" : `/prices?section=${section}`;

export default function PriceDesk() {
  useSignals();
  const t = useT();
  const { section: first, canApply } = bootData<DeskPageData>();
  const [desk] = useState(createDesk);
  const [failure, setFailure] = useState("");
  const query = useQuery();
  const { section: asked = first } = query;
  // What an address says of one section means nothing to another.
  const none = Object.fromEntries(Object.keys(query).map((name) => [name, undefined]));
  const section: DeskSection =
    asked === "plan" ? "plan" : (DESK_SECTIONS.find((each) => each === asked) ?? "models");
  const reload = async () => {
    try {
      desk.open(await call(api.price.desk.get()));
      setFailure("");
    } catch (error) {
      setFailure(failureMessage(error));
    }
  };
  useEffect(() => void reload(), []);
  const Section = SECTIONS[section];
  const count = desk.changes.value.length;
  // There is a plan where something is to be planned.
  const tabs = DESK_SECTIONS.flatMap((id): DeskSection[] =>
    id === "drafts" && (count > 0 || section === "plan") ? ["plan", id] : [id],
  );
  const around = useKeptFocus(section);
  return (
    <div>
      <PageHeader title={t("shell.nav.prices")} note={t(canApply ? "desk.noteHint" : "desk.applyRoot")} />
      <TabLinks
        label={t("desk.sections")}
        tabs={tabs.map((id) => ({
          id,
          label: id === "plan" && count > 0 ? t("desk.section.planOf", { count }) : t(`desk.section.${id}`),
          href: hrefOf(id),
        }))}
        current={section}
        onOpen={(id) => setQuery({ ...none, section: id === "models" ? undefined : id })}
      />
      {failure === "" ? null : (
        <p role="alert" className="py-4 text-error">
          {failure}
        </p>
      )}
      <div ref={around} tabIndex={-1} className="outline-0">
        {Section && (desk.prices.value || AT_ONCE.has(section)) ? (
          <Section desk={desk} canApply={canApply} reload={reload} />
        ) : null}
      </div>
      <DeskBar desk={desk} isHidden={section === "plan"} hasSteps={!WITH_STEPS.has(section)} />
    </div>
  );
}
