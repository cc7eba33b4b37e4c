// First step: which database was found, what that means for the data, and the way in for a site that moves.
import { useT } from "../../lib/i18n.ts";
import { StatusDot } from "../../ui/badges.tsx";

export interface DatabaseStepProps {
  type: "sqlite" | "postgres";
  version: string;
  onMoveIn: () => void;
}

export function DatabaseStep({ type, version, onMoveIn }: DatabaseStepProps) {
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
      <p className="mt-4 flex flex-wrap items-center gap-x-3 gap-y-2 border-t border-base-300 pt-4">
        {t("setup.move.ask")}
        <button type="button" className="btn btn-sm btn-default" onClick={onMoveIn}>
          {t("setup.move.open")}
        </button>
      </p>
    </>
  );
}
