// First step: which database was found, and what that means for the data.
import { useT } from "../../lib/i18n.ts";
import { StatusDot } from "../../ui/badges.tsx";

export function DatabaseStep({ type, version }: { type: "sqlite" | "postgres"; version: string }) {
  const t = useT();
  return (
    <>
      <StatusDot tone="ok">{t("setup.database.found")}</StatusDot>
      <dl className="facts mt-2">
        <div>
          <dt>{t("setup.database.type")}</dt>
          <dd>{t(`setup.database.${type}`)}</dd>
        </div>
        <div>
          <dt>{t("setup.database.version")}</dt>
          <dd className="tabular-nums">{version}</dd>
        </div>
      </dl>
      <p className="mt-3 max-w-[72ch] text-muted">{t(`setup.database.${type}Text`)}</p>
    </>
  );
}
