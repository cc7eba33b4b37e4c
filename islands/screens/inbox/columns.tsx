// Columns of the inbox: what it is in one sentence, of which kind, since when and how often.
import { inboxHref, inboxSentence } from "../../../src/shared/inbox.ts";
import { Role } from "../../../src/shared/enums.ts";
import { user } from "../../lib/boot.ts";
import { formatNumber } from "../../lib/format.ts";
import { language } from "../../lib/i18n.ts";
import type { Translate } from "../../lib/i18n.ts";
import type { InboxRow } from "../../lib/wire.ts";
import { StatusDot, When } from "../../ui/badges.tsx";
import type { Column } from "../../ui/table-columns.ts";
import { stateOf, toneOf } from "./row.ts";

/** `isOpenView`: every row is open, and nothing need say so. */
export function inboxColumns(t: Translate, nowSeconds: number, isOpenView: boolean): Column<InboxRow>[] {
  return [
    {
      id: "what",
      title: t("inbox.what"),
      isIdentity: true,
      card: "title",
      cell: (row) => {
        const said = inboxSentence(t, language.value, row);
        const href = row.closed_at > 0 ? undefined : inboxHref(row, user.value?.role ?? Role.admin);
        return (
          <span className="line-clamp-5 wrap-anywhere sm:line-clamp-3" title={said}>
            {href === undefined ? (
              said
            ) : (
              <a className="link link-hover font-semibold" href={href}>
                {said}
              </a>
            )}
          </span>
        );
      },
    },
    {
      id: "kind",
      title: t("inbox.kindTitle"),
      card: "line",
      from: 760,
      cell: (row) => (
        <span className="whitespace-nowrap">
          <StatusDot tone={toneOf(row)}>{t(`inbox.kind.${row.kind}`)}</StatusDot>
        </span>
      ),
    },
    {
      id: "since",
      title: t("inbox.since"),
      ...(isOpenView ? { card: "fact" } : {}),
      cell: (row) => <When at={row.opened_at} />,
    },
    ...(isOpenView ? [] : [stateColumn(t, nowSeconds)]),
    {
      id: "lastSeen",
      title: t("inbox.lastSeen"),
      from: 1100,
      cell: (row) => <When at={row.last_seen_at} />,
    },
    {
      id: "told",
      title: t("inbox.told"),
      isHiddenByDefault: true,
      cell: (row) => <When at={row.told_at} />,
    },
    {
      id: "count",
      title: t("inbox.count"),
      align: "end",
      from: 760,
      cell: (row) => formatNumber(row.count),
    },
  ];
}

function stateColumn(t: Translate, nowSeconds: number): Column<InboxRow> {
  return {
    id: "state",
    title: t("inbox.stateTitle"),
    card: "fact",
    cell: (row) => {
      const state = stateOf(row, nowSeconds);
      if (state === "open") return t("inbox.state.open");
      const [word, at] =
        state === "snoozed"
          ? [t("inbox.until"), row.snoozed_until]
          : [t(row.closed_by > 0 ? "inbox.stateHand" : "inbox.stateSelf"), row.closed_at];
      return (
        <span className="inline-flex flex-wrap gap-x-1.5">
          {word} <When at={at} />
        </span>
      );
    },
  };
}
