// What the inbox says of a ledger whose database went back, of one that answers no more, and of nodes that are gone. What hangs on
// figures is written in both languages: whoever meets a cause does not know who will read it.
import enTexts from "../../../locales/en/inbox.json" with { type: "json" };
import zhTexts from "../../../locales/zh/inbox.json" with { type: "json" };
import type { InboxParams } from "../../shared/inbox.ts";
import type { Inbox, InboxCause } from "../deps.ts";
import type { LossReason } from "../ledger/node-lease.ts";
import type { Fall } from "../ledger/postgres-apply.ts";

type TextKey = keyof typeof enTexts & keyof typeof zhTexts;

/** Of a node's random name, as people read it. */
const NODE_CHARACTERS = 8;
const MINUTE = 60;
const HOUR = 3600;
const DAY = 86_400;
/** The time that a node is gone is told in steps: an item that changed every minute would be written every minute. */
const MINUTES = [2, 5, 10, 30];
const HOURS = [1, 2, 6, 12];

/** A node's name as items show it. */
export const nodeName = (nodeId: string): string => nodeId.slice(0, NODE_CHARACTERS);

/** A param in both languages, as `inboxSentence` takes it. */
function inBoth(name: string, key: TextKey, values: Record<string, number> = {}): InboxParams {
  const filled = (text: string): string =>
    Object.entries(values).reduce(
      (said, [place, value]) => said.replaceAll(`{{${place}}}`, String(value)),
      text,
    );
  return { [name]: filled(zhTexts[key]), [`${name}_en`]: filled(enTexts[key]) };
}

/** The item of a database that was found in an older state. */
function fallCause(nodeId: string, { from, to, isReplayed }: Fall): InboxCause {
  const key = to < from ? "fall.none" : isReplayed ? "fall.replayed" : "fall.missing";
  return {
    kind: "database_fell_back",
    subject: nodeId,
    params: { node: nodeName(nodeId), ...inBoth("text", key, { from, to }) },
  };
}

/** The item of a process that answers no calls any more. */
export function stoppedCause(nodeId: string, why: LossReason): InboxCause {
  return {
    kind: "node_stopped",
    subject: nodeId,
    params: { node: nodeName(nodeId), ...inBoth("reason", `stopped.${why}`) },
  };
}

/** The item of a node that has been gone for so many seconds, two minutes or more. */
export function lostCause(nodeId: string, goneSeconds: number): InboxCause {
  const most = (steps: readonly number[], unit: number): number =>
    steps.findLast((step) => step * unit <= goneSeconds) ?? steps[0] ?? 0;
  const span =
    goneSeconds < HOUR
      ? inBoth("span", "span.minutes", { n: most(MINUTES, MINUTE) })
      : goneSeconds < DAY
        ? inBoth("span", "span.hours", { n: most(HOURS, HOUR) })
        : inBoth("span", "span.days", { n: Math.floor(goneSeconds / DAY) });
  return { kind: "node_lost", subject: nodeId, params: { node: nodeName(nodeId), ...span } };
}

/** Told by the ledger, which is there before the inbox: what is found during a start waits for `into`. */
export function fallTeller(nodeId: string): { tell: (fall: Fall) => void; into: (inbox: Inbox) => void } {
  let to: Inbox | undefined;
  const early: Fall[] = [];
  function tell(fall: Fall): void {
    if (!to) early.push(fall);
    to?.raise(fallCause(nodeId, fall));
    if (!fall.isReplayed && !fall.goesOn) to?.keep(stoppedCause(nodeId, "missing"));
  }
  return {
    tell,
    into(inbox) {
      to = inbox;
      early.splice(0).forEach(tell);
    },
  };
}
