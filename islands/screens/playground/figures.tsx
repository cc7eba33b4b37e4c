// What an answer took and cost: first token, time, tokens, charge, each from where it is known, and its row in the usage log.
import { formatDuration, formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import { Money } from "../../ui/badges.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import type { Message } from "./conversation.ts";
import { logAddress } from "./log-row.ts";

export function Figures({ message }: { message: Message }) {
  const t = useT();
  const { firstTokenMs, totalMs, promptTokens, completionTokens } = message;
  return (
    <>
      {firstTokenMs === undefined ? null : (
        <span className="tabular-nums">
          {t("playground.firstToken", { time: formatDuration(firstTokenMs) })}
        </span>
      )}
      {totalMs === undefined ? null : (
        <span className="tabular-nums">{t("playground.totalTime", { time: formatDuration(totalMs) })}</span>
      )}
      {promptTokens === undefined || completionTokens === undefined ? null : (
        <span className="tabular-nums">
          {t("playground.tokens", {
            prompt: formatNumber(promptTokens),
            completion: formatNumber(completionTokens),
          })}
        </span>
      )}
      <LogLink message={message} />
    </>
  );
}

/** The charge leads to the row that explains it; a failure to the row of the error; without a row there is the id. */
function LogLink({ message: { requestId, logged, status } }: { message: Message }) {
  const t = useT();
  if (requestId === undefined) return null;
  if (!logged) {
    return status === "error" ? (
      <span className="flex min-w-0 items-center">
        <code className="break-all">{requestId}</code>
        <CopyButton text={requestId} label={t("log.requestId")} />
      </span>
    ) : null;
  }
  const isFailure = status === "error" && logged.quota === 0;
  return (
    <a
      className="flex min-h-6 items-center text-primary underline-offset-2 hover:underline"
      href={logAddress(requestId, logged)}
      title={t("playground.logRowHint")}
    >
      {isFailure ? (
        t("playground.errorRow")
      ) : (
        <>
          {t("playground.cost")}&nbsp;
          <Money quota={logged.quota} />
        </>
      )}
    </a>
  );
}
