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
import { createDesk } from "./price-desk/desk.ts";
import { FirstModels } from "./price-desk/models/first.tsx";
import type { SectionProps } from "./price-desk/section-props.ts";

/** A section that is there; one line each. */
const SECTIONS: Partial<Record<DeskSection, ComponentType<SectionProps>>> = {
  models: lazyPart<SectionProps>(() => import("./price-desk/models.tsx"), FirstModels),
  groups: lazyPart(() => import("./price-desk/groups.tsx")),
  overrides: lazyPart(() => import("./price-desk/overrides.tsx")),
  special: lazyPart(() => import("./price-desk/special.tsx")),
  auto: lazyPart(() => import("./price-desk/auto.tsx")),
};

/** Has something to show before the prices are there. */
const AT_ONCE: ReadonlySet<DeskSection> = new Set(["models"]);

const hrefOf = (section: DeskSection): string =>
  section === "models" ? "/prices" : `/prices?section=${section}`;

export default function PriceDesk() {
  useSignals();
  const t = useT();
  const { section: first, canApply } = bootData<DeskPageData>();
  const [desk] = useState(createDesk);
  const [failure, setFailure] = useState("");
  const { section: asked = first } = useQuery();
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
  return (
    <div>
      <PageHeader title={t("shell.nav.prices")} note={t(canApply ? "desk.noteHint" : "desk.applyRoot")} />
      <TabLinks
        label={t("desk.sections")}
        tabs={DESK_SECTIONS.filter((id) => SECTIONS[id]).map((id) => ({
          id,
          label: t(`desk.section.${id}`),
          href: hrefOf(id),
        }))}
        current={section}
        onOpen={(id) => setQuery({ section: id === "models" ? undefined : id })}
      />
      {failure === "" ? null : (
        <p role="alert" className="py-4 text-error">
          {failure}
        </p>
      )}
      {Section && (desk.prices.value || AT_ONCE.has(section)) ? (
        <Section desk={desk} canApply={canApply} reload={reload} />
      ) : null}
    </div>
  );
}
