// What stands around the channel table: the display menu, progress of a run, channels without a tag, bulk actions.
import { SlidersHorizontal } from "lucide-react";
import { useEffect, useState } from "react";
import { useT } from "../../lib/i18n.ts";
import { KEYS, readItem, writeItem } from "../../lib/storage.ts";
import type { ChannelRow } from "../../lib/wire.ts";
import { Notice } from "../../ui/feedback.tsx";
import { Menu } from "../../ui/menu.tsx";
import { BulkButton } from "../../ui/table-selection.tsx";
import { withActions } from "./load-actions.ts";
import { STATUS_DISABLED, STATUS_ENABLED } from "./row.ts";
import type { Channels } from "./use-channels.ts";

/** Whether checkboxes always stand there; kept in this browser. */
export function useBatchMode(): [isBatch: boolean, toggle: () => void] {
  const [isBatch, setBatch] = useState(false);
  // The server cannot know what was stored here.
  useEffect(() => setBatch(readItem(KEYS.batchDelete) === "true"), []);
  return [
    isBatch,
    () => {
      writeItem(KEYS.batchDelete, String(!isBatch));
      setBatch(!isBatch);
    },
  ];
}

export interface DisplayMenuProps {
  isIdSort: boolean;
  onIdSort: (isOn: boolean) => void;
  isTagMode: boolean;
  onTagMode: (isOn: boolean) => void;
  isBatch: boolean;
  onToggleBatch: () => void;
}

export function DisplayMenu(props: DisplayMenuProps) {
  const { isIdSort, isTagMode } = props;
  const t = useT();
  return (
    <Menu
      label={t("channel.display")}
      className="btn btn-sm btn-ghost text-muted"
      groups={[
        [
          {
            id: "id-sort",
            label: t("channel.idSort"),
            isChecked: isIdSort,
            onSelect: () => props.onIdSort(!isIdSort),
          },
          {
            id: "tag-mode",
            label: t("channel.tagMode"),
            isChecked: isTagMode,
            onSelect: () => props.onTagMode(!isTagMode),
          },
          {
            id: "batch",
            label: t("channel.batchMode"),
            isChecked: props.isBatch,
            onSelect: props.onToggleBatch,
          },
        ],
      ]}
    >
      <SlidersHorizontal aria-hidden size={14} />
      {t("channel.display")}
    </Menu>
  );
}

/** In tag mode: channels without a tag are not shown, and how to see them. */
export function UntaggedNotice({ count, onShowAll }: { count: number; onShowAll: () => void }) {
  const t = useT();
  return (
    <Notice
      tone="info"
      action={
        <button type="button" className="btn btn-sm btn-default" onClick={onShowAll}>
          {t("channel.showAll")}
        </button>
      }
    >
      {t("channel.untagged", { count })}
    </Notice>
  );
}

export interface BulkActionsProps {
  channels: Channels;
  rows: readonly ChannelRow[];
  clear: () => void;
  onTag: () => void;
  onEdit: () => void;
}

export function BulkActions({ channels, rows, clear, onTag, onEdit }: BulkActionsProps) {
  const t = useT();
  const setStatus = (status: number) => withActions((actions) => actions.setStatus(channels, rows, status));
  return (
    <>
      <BulkButton label={t("common.enable")} onClick={() => setStatus(STATUS_ENABLED)} />
      <BulkButton label={t("common.disable")} onClick={() => setStatus(STATUS_DISABLED)} />
      <BulkButton
        label={t("channel.testNow")}
        onClick={() => withActions((actions) => actions.testChannels(channels, rows))}
      />
      <BulkButton label={t("channel.setTag")} onClick={onTag} />
      <BulkButton label={t("channel.editMany")} onClick={onEdit} />
      <BulkButton
        label={t("common.delete")}
        isDanger
        onClick={() => withActions((actions) => actions.remove(channels, rows, clear))}
      />
    </>
  );
}
