// What sessions are bound to now, below the options of affinity: how many, by rule, and a button that forgets them.
import { useEffect, useState } from "react";
import { api, call, failureMessage } from "../../../lib/api.ts";
import { formatNumber } from "../../../lib/format.ts";
import { useT } from "../../../lib/i18n.ts";
import { toast, toastFailure } from "../../../lib/toasts.ts";

interface State {
  total: number;
  by_rule_name: Record<string, number>;
  is_shared: boolean;
}

export default function AffinityState() {
  const t = useT();
  const [state, setState] = useState<State>();
  const [failure, setFailure] = useState("");
  const [round, setRound] = useState(0);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => {
    let isGone = false;
    call(api.option.channel_affinity_cache.get()).then(
      (found) => isGone || setState(found),
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
  }, [round]);
  const forget = async () => {
    setBusy(true);
    try {
      const { deleted } = await call(
        api.option.channel_affinity_cache.delete(undefined, { query: { all: "true" } }),
      );
      toast({ text: t("editor.affinity.forgotten", { count: deleted }) });
      setRound((value) => value + 1);
    } catch (error) {
      toastFailure(error);
    }
    setBusy(false);
  };
  const rules = Object.entries(state?.by_rule_name ?? {}).sort(([, a], [, b]) => b - a);
  return (
    <div className="setting-line setting-columns">
      <div className="min-w-0">
        <p className="font-medium">{t("editor.affinity.bound")}</p>
        <p className="setting-help">
          {t(state?.is_shared ? "editor.affinity.boundHelpAll" : "editor.affinity.boundHelp")}
        </p>
      </div>
      <div className="min-w-0 max-sm:mt-2">
        <p role="status" className={failure === "" ? undefined : "text-error"}>
          {failure === ""
            ? state
              ? t("editor.affinity.count", { count: state.total, total: formatNumber(state.total) })
              : ""
            : failure}
        </p>
        <ul className="text-dense text-muted">
          {rules.map(([rule, count]) => (
            <li key={rule} className="wrap-anywhere">
              {rule}: {formatNumber(count)}
            </li>
          ))}
        </ul>
        <button
          type="button"
          className="btn btn-sm btn-default mt-2"
          disabled={isBusy || !state || state.total === 0}
          aria-busy={isBusy}
          onClick={() => void forget()}
        >
          {t("editor.affinity.forget")}
        </button>
      </div>
    </div>
  );
}
