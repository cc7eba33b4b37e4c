// One key of a channel: its last characters, its name, how it is and why, what it did; tested, rested, switched, named, deleted.
// Refuses colour as the only carrier: each state has its word, its time and its reason.
import { CirclePause, CirclePlay, MoreHorizontal, Pencil, Power, PowerOff, Trash2 } from "lucide-react";
import { useT } from "../../../lib/i18n.ts";
import type { Translate } from "../../../lib/i18n.ts";
import type { ChannelKeyState } from "../../../lib/wire.ts";
import { Money, StatusDot, When } from "../../../ui/badges.tsx";
import { BusyButton } from "../../../ui/busy-button.tsx";
import { Menu } from "../../../ui/menu.tsx";
import type { MenuGroups } from "../../../ui/menu.tsx";
import type { KeyTest } from "./use-keys.ts";
import { capWords, KEY_ON, markOf, nameOf, restReason, stateOf, timeOf } from "./words.ts";

const RESTS = [
  [10, "channel.keys.rest.minutes"],
  [60, "channel.keys.rest.hour"],
  [1440, "channel.keys.rest.day"],
] as const;

export interface KeyRowProps {
  keyState: ChannelKeyState;
  isBusy: boolean;
  test: KeyTest | undefined;
  /** A channel keeps one key. */
  isLast: boolean;
  onTest: () => void;
  /** Minutes; 0 wakes it. */
  onRest: (minutes: number) => void;
  onSwitch: (isOn: boolean) => void;
  onEdit: () => void;
  onDelete: () => void;
}

function menuOf(t: Translate, props: KeyRowProps): MenuGroups {
  const { keyState: key, isLast, onRest, onSwitch, onEdit, onDelete } = props;
  const isOn = key.status === KEY_ON;
  const rests = RESTS.map(([minutes, text]) => ({
    id: `rest ${minutes}`,
    label: t(text),
    icon: CirclePause,
    onSelect: () => onRest(minutes),
  }));
  const wake = { id: "wake", label: t("channel.keys.wake"), icon: CirclePlay, onSelect: () => onRest(0) };
  const isResting = key.rests_until > 0 || key.models.length > 0;
  return [
    isOn ? [...(isResting ? [wake] : []), ...rests] : [],
    [
      isOn
        ? { id: "off", label: t("channel.keys.switchOff"), icon: PowerOff, onSelect: () => onSwitch(false) }
        : { id: "on", label: t("channel.keys.switchOn"), icon: Power, onSelect: () => onSwitch(true) },
      { id: "edit", label: t("channel.keys.edit"), icon: Pencil, onSelect: onEdit },
    ],
    [
      {
        id: "delete",
        label: t("common.delete"),
        icon: Trash2,
        isDanger: true,
        isDisabled: isLast,
        onSelect: onDelete,
      },
    ],
  ];
}

export function KeyRow(props: KeyRowProps) {
  const { keyState: key, isBusy, test, onTest } = props;
  const t = useT();
  const state = stateOf(t, key);
  const name = nameOf(t, key);
  return (
    <li data-key={key.key_id} className="flex items-start gap-2 border-b border-base-300 py-2 last:border-0">
      <div className="min-w-0 grow">
        <div className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5">
          <code>{markOf(t, key)}</code>
          {key.label === "" ? null : <span className="font-medium wrap-anywhere">{key.label}</span>}
          <StatusDot tone={state.tone} reason={state.reason}>
            {state.text}
          </StatusDot>
          {key.models.map((rest) => (
            <StatusDot key={rest.model} tone="attention" reason={restReason(t, rest)}>
              {t("channel.restsForModel", { model: rest.model, time: timeOf(rest.rests_until) })}
            </StatusDot>
          ))}
        </div>
        <KeyFacts keyState={key} />
        <p role="status" className="text-xs">
          {test ? <TestWords test={test} /> : null}
        </p>
      </div>
      <BusyButton className="btn-sm btn-default" isBusy={isBusy} onPress={onTest}>
        {t("channel.keys.test")}
        <span className="sr-only"> {name}</span>
      </BusyButton>
      <Menu label={t("channel.keys.actions", { name })} groups={menuOf(t, props)}>
        <MoreHorizontal aria-hidden size={16} />
      </Menu>
    </li>
  );
}

/** What this node saw of it since it started, what it used in all, and its caps. */
function KeyFacts({ keyState: key }: Pick<KeyRowProps, "keyState">) {
  const t = useT();
  const counts = [
    t("channel.keys.requests", { count: key.requests }),
    t("channel.keys.limited", { count: key.limited_requests }),
    t("channel.keys.inFlight", { count: key.in_flight }),
  ];
  return (
    <p className="flex flex-wrap gap-x-3 text-xs text-muted tabular-nums">
      <span title={t("channel.keys.countsHint")}>{counts.join(" · ")}</span>
      <span>
        {t("channel.used")} <Money quota={key.used_quota} />
      </span>
      <span>
        {t("channel.keys.lastUsed")} <When at={key.last_used} never={t("channel.keys.neverUsed")} />
      </span>
      {capWords(t, key).map((words) => (
        <span key={words}>{words}</span>
      ))}
    </p>
  );
}

function TestWords({ test }: { test: KeyTest }) {
  const t = useT();
  return test.success ? (
    <span className="text-success">{t("channel.keys.passed", { seconds: test.time.toFixed(2) })}</span>
  ) : (
    <span className="wrap-anywhere text-error">{t("channel.keys.failed", { reason: test.message })}</span>
  );
}
