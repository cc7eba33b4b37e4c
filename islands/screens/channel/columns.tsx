// Columns of the channel table, for channels and for the heads of tags.
// Refuses colour and hover as the only carriers: reasons, errors and times stand in the cell.
import { useSignals } from "@preact/signals-react/runtime";
import { ChevronDown, ChevronRight } from "lucide-react";
import { timeZone } from "../../lib/boot.ts";
import { formatDateTime, formatDuration } from "../../lib/format.ts";
import { language } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import { Chip, ChipLine, Latency, Money, StatusDot, When } from "../../ui/badges.tsx";
import type { StatusTone } from "../../ui/badges.tsx";
import { editable } from "../../ui/table-cell.tsx";
import type { Column } from "../../ui/table-columns.ts";
import type { ListRow, TagRow, TestState, TypeNames } from "./row.ts";
import {
  dollarsText,
  isTagRow,
  namesOf,
  reasonOf,
  RESPONSE_MS,
  STATUS_AUTO_DISABLED,
  STATUS_DISABLED,
  STATUS_ENABLED,
  typeName,
} from "./row.ts";
import type { ChannelRow } from "../../lib/wire.ts";

const STATUS: Record<number, [StatusTone, string]> = {
  [STATUS_ENABLED]: ["ok", "common.enabled"],
  [STATUS_DISABLED]: ["off", "common.disabled"],
  [STATUS_AUTO_DISABLED]: ["attention", "channel.autoDisabled"],
};

/** What can be changed in the table itself. */
export type QuickField = "priority" | "weight" | "group" | "tag";

export interface ColumnContext {
  t: Translate;
  types: TypeNames;
  tests: ReadonlyMap<number, TestState>;
  /** Throws to roll back. */
  save: (row: ListRow, name: QuickField, text: string) => Promise<void>;
  onStatus: (row: ListRow, status: number) => Promise<void>;
  onToggleTag: (tag: string) => void;
  onBalance: (row: ChannelRow) => void;
}

export function channelColumns(context: ColumnContext): Column<ListRow>[] {
  return [
    ...identityColumns(context),
    ...servingColumns(context),
    numberColumn(context, "priority", -999),
    numberColumn(context, "weight", 0),
    ...originColumns(context),
  ];
}

/** A cell that heads of tags leave empty. */
const channelCell =
  (cell: (row: ChannelRow) => React.ReactNode) =>
  (row: ListRow): React.ReactNode =>
    isTagRow(row) ? null : cell(row);

/** Which channel it is, and whether it works. */
function identityColumns({ t, types, onStatus, onToggleTag }: ColumnContext): Column<ListRow>[] {
  return [
    {
      id: "name",
      title: t("channel.name"),
      isIdentity: true,
      isSortable: true,
      card: "title",
      cell: (row) =>
        isTagRow(row) ? (
          <TagHead row={row} t={t} onToggle={onToggleTag} />
        ) : (
          <span className="inline-flex min-w-0 items-center gap-2">
            <TypeMark name={typeName(types, row.type, language.value)} />
            <span className="channel-title" title={row.name}>
              {row.name}{" "}
              <span className="font-normal whitespace-nowrap text-muted tabular-nums">#{row.id}</span>
            </span>
          </span>
        ),
    },
    {
      id: "status",
      title: t("channel.status"),
      isSortable: true,
      card: "badge",
      cell: (row) => (isTagRow(row) ? <TagStatus row={row} t={t} /> : <ChannelStatus row={row} t={t} />),
      edit: editable({
        kind: "select",
        choices: [
          { value: String(STATUS_ENABLED), label: t("common.enabled") },
          { value: String(STATUS_DISABLED), label: t("common.disabled") },
        ],
        value: (row) => (!isTagRow(row) && row.status === STATUS_ENABLED ? STATUS_ENABLED : STATUS_DISABLED),
        save: (row, text) => onStatus(row, Number(text)),
        isAllowed: (row) => !isTagRow(row),
      }),
    },
  ];
}

/** What it serves, how fast, and what that costs. */
function servingColumns({ t, types, tests, save, onBalance }: ColumnContext): Column<ListRow>[] {
  return [
    {
      id: "type",
      title: t("channel.type"),
      isHiddenByDefault: true,
      isSortable: true,
      cell: channelCell((row) => <Chip>{typeName(types, row.type, language.value)}</Chip>),
    },
    {
      id: "group",
      title: t("channel.groups"),
      from: 1100,
      cell: channelCell((row) => <ChipLine names={namesOf(row.group)} />),
      edit: editable({
        kind: "text",
        value: (row) => (isTagRow(row) ? "" : row.group),
        save: (row, text) => save(row, "group", text),
        isAllowed: (row) => !isTagRow(row),
      }),
    },
    {
      id: "models",
      title: t("channel.modelsTitle"),
      isElastic: true,
      from: 760,
      card: "line",
      cell: channelCell((row) => <ChipLine names={namesOf(row.models)} />),
    },
    {
      id: "response_time",
      title: t("channel.responseTime"),
      align: "end",
      isSortable: true,
      from: 760,
      card: "fact",
      cell: (row) => <Response row={row} state={isTagRow(row) ? undefined : tests.get(row.id)} t={t} />,
    },
    {
      id: "used_quota",
      title: t("channel.used"),
      align: "end",
      isSortable: true,
      card: "fact",
      cell: (row) => <Money quota={row.used_quota} />,
    },
    {
      id: "balance",
      title: t("channel.balance"),
      align: "end",
      isSortable: true,
      cell: channelCell((row) => <Balance row={row} t={t} onUpdate={() => onBalance(row)} />),
    },
  ];
}

/** A number that is changed in place; of a tag whose channels differ, no number is shown. */
function numberColumn({ t, save }: ColumnContext, name: "priority" | "weight", min: number): Column<ListRow> {
  return {
    id: name,
    title: t(name === "weight" ? "channel.weight" : "channel.priority"),
    align: "end",
    isSortable: true,
    from: name === "priority" ? 990 : 1100,
    cell: (row) => row[name] ?? <span className="text-muted">{t("channel.mixed")}</span>,
    edit: editable({
      kind: "number",
      min,
      value: (row) => row[name] ?? "",
      check: (text) =>
        /^-?\d+$/.test(text.trim()) && Number(text) >= min
          ? undefined
          : t(name === "weight" ? "channel.weightWrong" : "channel.priorityWrong"),
      save: (row, text) => save(row, name, text),
    }),
  };
}

/** Its tag, and when it was tested and made. */
function originColumns({ t, save }: ColumnContext): Column<ListRow>[] {
  return [
    {
      id: "tag",
      title: t("channel.tag"),
      isHiddenByDefault: true,
      cell: channelCell((row) => (row.tag ? <Chip>{row.tag}</Chip> : "–")),
      edit: editable({
        kind: "text",
        value: (row) => (isTagRow(row) ? "" : (row.tag ?? "")),
        save: (row, text) => save(row, "tag", text),
        isAllowed: (row) => !isTagRow(row),
      }),
    },
    {
      id: "tested",
      title: t("channel.tested"),
      isHiddenByDefault: true,
      cell: channelCell((row) => <When at={row.test_time} never={t("channel.notTested")} />),
    },
    {
      id: "created",
      title: t("channel.created"),
      isHiddenByDefault: true,
      cell: channelCell((row) => <When at={row.created_time} />),
    },
  ];
}

/** The first letter of the type; its full name is read out and shown on hover. */
function TypeMark({ name }: { name: string }) {
  return (
    <span className="letter-mark rounded-sm font-semibold text-base-content" title={name}>
      <span aria-hidden>{name.slice(0, 1).toUpperCase()}</span>
      <span className="sr-only">{name}</span>
    </span>
  );
}

function TagHead({ row, t, onToggle }: { row: TagRow; t: Translate; onToggle: (tag: string) => void }) {
  const Icon = row.isOpen ? ChevronDown : ChevronRight;
  return (
    <button type="button" className="tag-head" aria-expanded={row.isOpen} onClick={() => onToggle(row.tag)}>
      <Icon aria-hidden size={14} />
      <span className="channel-title">{row.tag}</span>
      <span className="text-muted max-sm:hidden">
        {t("channel.channelCount", { count: row.channels.length })}
      </span>
    </button>
  );
}

function TagStatus({ row, t }: { row: TagRow; t: Translate }) {
  const enabled = row.channels.filter((each) => each.status === STATUS_ENABLED).length;
  const broken = row.channels.filter((each) => each.status === STATUS_AUTO_DISABLED).length;
  return (
    <StatusDot
      tone={enabled === 0 ? "off" : broken > 0 ? "attention" : "ok"}
      reason={broken > 0 ? t("channel.brokenCount", { count: broken }) : undefined}
    >
      {t("channel.enabledOf", { enabled, total: row.channels.length })}
    </StatusDot>
  );
}

function ChannelStatus({ row, t }: { row: ChannelRow; t: Translate }) {
  useSignals();
  const [tone, key] = STATUS[row.status] ?? ["off", "common.unknown"];
  const reason = row.status === STATUS_AUTO_DISABLED ? reasonOf(row) : undefined;
  const lines = [
    reason && reason.time > 0
      ? `${formatDateTime(reason.time * 1000, timeZone.value).slice(5, 16)} · ${reason.reason}`
      : reason?.reason,
    row.key_count > 1
      ? t("channel.keysFit", { fit: row.keys_on - row.keys_resting, total: row.key_count })
      : undefined,
    row.cells_resting > 0 ? t("channel.cellsResting", { count: row.cells_resting }) : undefined,
  ].filter((line) => line !== undefined);
  return (
    <StatusDot tone={tone} reason={lines.length > 0 ? lines.join(" · ") : undefined}>
      {t(key)}
    </StatusDot>
  );
}

function Response({ row, state, t }: { row: ListRow; state: TestState | undefined; t: Translate }) {
  if (state?.phase === "running" || state?.phase === "waiting")
    return <StatusDot tone="running">{t(`channel.test.${state.phase}`)}</StatusDot>;
  if (state?.phase === "failed") {
    return (
      <span role="status" className="test-failed">
        <StatusDot tone="broken" reason={state.message}>
          {t("channel.test.failed")}
          {row.response_time > 0 ? (
            <span className="text-muted"> · {formatDuration(row.response_time)}</span>
          ) : null}
        </StatusDot>
      </span>
    );
  }
  if (state?.phase === "skipped") {
    return (
      <span role="status">
        <StatusDot tone="off" reason={state.message}>
          {t("channel.test.skippedRow")}
        </StatusDot>
      </span>
    );
  }
  if (row.response_time === 0) return <span className="text-muted">{t("channel.notTested")}</span>;
  return <Latency ms={row.response_time} thresholdsMs={RESPONSE_MS} />;
}

/** Pressing it asks the provider again. */
function Balance({ row, t, onUpdate }: { row: ChannelRow; t: Translate; onUpdate: () => void }) {
  const isKnown = row.balance_updated_time > 0;
  return (
    <button
      type="button"
      className="cell-edit inline-flex flex-col items-end justify-center align-middle leading-4"
      title={t("channel.updateBalance")}
      onClick={(event) => {
        event.stopPropagation();
        onUpdate();
      }}
    >
      {isKnown ? (
        <>
          <span className={`tabular-nums ${row.balance <= 0 ? "text-error" : ""}`}>
            {dollarsText(row.balance)}
            {row.balance <= 0 ? ` · ${t("channel.balanceGone")}` : null}
          </span>
          <span className="text-xs/4 text-muted">
            <When at={row.balance_updated_time} />
          </span>
        </>
      ) : (
        <span className="text-muted whitespace-nowrap">{t("channel.balanceNever")}</span>
      )}
    </button>
  );
}
