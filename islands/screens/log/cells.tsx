// Cells of the usage log's table and its columns.
// Refuses the columns that belong to administrators to everybody else: the server sends nothing for them.
import { formatNumber } from "../../lib/format.ts";
import { useT } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { Chip, Latency, Moment, Money, StatusDot } from "../../ui/badges.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { CONSUME, ERROR, FIRST_TOKEN_MS, keyNameOf, otherOf, textOf, typeKey, TOTAL_MS } from "./row.ts";
import type { LogRow } from "../../lib/wire.ts";

export function TypeWord({ type, text }: { type: number; text: string }) {
  const tone = type === ERROR ? "broken" : type === CONSUME ? "ok" : type === 1 ? "running" : "off";
  return <StatusDot tone={tone}>{text}</StatusDot>;
}

const isCall = (row: LogRow) => row.type === CONSUME || row.type === ERROR;

export function logColumns(t: Translate, isAdmin: boolean, onUser: (id: number) => void): Column<LogRow>[] {
  const forAdmins = (column: Column<LogRow>) => (isAdmin ? [column] : []);
  return [
    {
      id: "time",
      title: t("log.time"),
      isIdentity: true,
      card: "title",
      cell: (row) => <Moment at={row.created_at} />,
    },
    {
      id: "type",
      title: t("log.typeTitle"),
      card: "badge",
      cell: (row) => <TypeWord type={row.type} text={t(typeKey(row.type))} />,
    },
    ...forAdmins({
      id: "user",
      title: t("log.user"),
      card: "aside",
      cell: (row) =>
        row.username === "" ? null : (
          <button
            type="button"
            className="user-button"
            title={t("log.userPanel", { name: row.username })}
            onClick={() => onUser(row.user_id)}
          >
            <span className="letter-mark rounded-full" aria-hidden>
              {String.fromCodePoint(row.username.codePointAt(0) ?? 63).toUpperCase()}
            </span>
            <span>{row.username}</span>
          </button>
        ),
    }),
    {
      id: "key",
      title: t("log.key"),
      from: isAdmin ? 990 : 760,
      card: isAdmin ? "line" : "aside",
      cell: (row) => (row.token_name ? <span className="short-text">{keyNameOf(t, row)}</span> : null),
    },
    {
      id: "model",
      title: t("log.model"),
      isElastic: true,
      card: "line",
      cell: (row) => <ModelCell row={row} />,
    },
    ...forAdmins({
      id: "channel",
      title: t("log.channel"),
      from: 1100,
      cell: (row) => <ChannelCell row={row} />,
    }),
    ...forAdmins({
      id: "retry",
      title: t("log.retry"),
      cell: (row) => {
        const chain = otherOf(row).admin_info?.use_channel ?? [];
        return chain.length > 1 ? <span className="mono whitespace-nowrap">{chain.join(" → ")}</span> : null;
      },
      isHiddenByDefault: true,
    }),
    {
      id: "group",
      title: t("log.group"),
      from: isAdmin ? 1100 : 990,
      cell: (row) => (row.group ? <Chip>{row.group}</Chip> : null),
    },
    {
      id: "stream",
      title: t("log.stream"),
      from: 990,
      // The administrators' table is wide enough as it is, and two bars tell it too.
      isHiddenByDefault: isAdmin,
      cell: (row) => (isCall(row) ? t(row.is_stream ? "common.yes" : "common.no") : null),
    },
    {
      id: "duration",
      title: t("log.timing"),
      align: "end",
      cell: (row) => (isCall(row) ? <Timing row={row} /> : null),
    },
    {
      id: "in",
      title: t("log.tokensIn"),
      align: "end",
      from: 760,
      cell: (row) => (row.type === CONSUME ? <TokensIn row={row} cached={t("log.cached")} /> : null),
    },
    {
      id: "out",
      title: t("log.tokensOut"),
      align: "end",
      from: 760,
      cell: (row) => (row.type === CONSUME ? formatNumber(row.completion_tokens) : null),
    },
    {
      id: "cost",
      title: t("log.costTitle"),
      align: "end",
      card: "fact",
      cell: (row) => (row.quota !== 0 || row.type === CONSUME ? <Money quota={row.quota} /> : null),
    },
    {
      id: "content",
      title: t("log.content"),
      isHiddenByDefault: true,
      cell: (row) => (
        <span className="inline-block max-w-[30ch] truncate align-bottom" title={textOf(row)}>
          {textOf(row)}
        </span>
      ),
    },
  ];
}

/** Rows without a model say what happened in its place. */
function ModelCell({ row }: { row: LogRow }) {
  const other = otherOf(row);
  if (row.model_name === "") {
    if (row.content === "") return null;
    return (
      <span className="block truncate text-muted" title={textOf(row)}>
        {textOf(row)}
      </span>
    );
  }
  return (
    <span className="mono block truncate" title={row.model_name}>
      {row.model_name}
      {other.is_model_mapped && other.upstream_model_name ? (
        <span className="text-muted"> → {other.upstream_model_name}</span>
      ) : null}
    </span>
  );
}

function ChannelCell({ row }: { row: LogRow }) {
  const t = useT();
  const { use_channel: chain = [], channel_affinity: affinity } = otherOf(row).admin_info ?? {};
  if (row.channel === 0) return null;
  const text = chain.length > 1 ? chain.join(" → ") : String(row.channel);
  return (
    <span className="inline-block max-w-[20ch] truncate align-bottom" title={row.channel_name}>
      <Chip>{text}</Chip>{" "}
      {affinity?.state === "kept" ? (
        <span role="img" aria-label={t("log.star")}>
          ★
        </span>
      ) : null}{" "}
      <span className="text-muted">{row.channel_name}</span>
    </span>
  );
}

function Timing({ row }: { row: LogRow }) {
  const first = otherOf(row).frt ?? -1;
  return (
    <span className="inline-flex items-center justify-end gap-2">
      {row.is_stream && first >= 0 ? <Latency ms={first} thresholdsMs={FIRST_TOKEN_MS} /> : null}
      <Latency ms={row.use_time_ms} thresholdsMs={TOTAL_MS} />
    </span>
  );
}

function TokensIn({ row, cached }: { row: LogRow; cached: string }) {
  const cache = otherOf(row).cache_tokens ?? 0;
  return (
    <span className="tabular-nums">
      {formatNumber(row.prompt_tokens)}
      {cache > 0 ? (
        <span className="cell-sub whitespace-nowrap">{`${cached} ${formatNumber(cache)}`}</span>
      ) : null}
    </span>
  );
}
