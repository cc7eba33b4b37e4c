// What stands in the place of a conversation where no model can be called.
import { user } from "../../lib/boot.ts";
import { useT } from "../../lib/i18n.ts";
import { Empty } from "../../ui/feedback.tsx";

const ADMIN_ROLE = 10;
export default function NoModels() {
  const t = useT();
  const isAdmin = (user.peek()?.role ?? 0) >= ADMIN_ROLE;
  return (
    <Empty
      title={t("playground.noModels")}
      text={t(isAdmin ? "playground.noModelsAdmin" : "playground.noModelsText")}
      action={
        isAdmin ? (
          <a className="btn btn-sm btn-primary" href="/channel?new=1">
            {t("playground.addChannel")}
          </a>
        ) : undefined
      }
    />
  );
}
