// What the inbox is narrowed by: the query string of /api/inbox and the address of /inbox.
import { INBOX_STATES } from "../../core/inbox/items.ts";
import type { InboxQuery } from "../../core/inbox/items.ts";
import { isInboxKind } from "../../shared/inbox.ts";
import { queryText } from "./sent.ts";
import type { Sent } from "./sent.ts";

export const inboxListFields = {
  state: queryText(10),
  kind: queryText(32),
};

/** Without a known state: what is open. */
export function inboxFilterOf(sent: Sent<typeof inboxListFields>): Pick<InboxQuery, "state" | "kind"> {
  const { state, kind = "" } = sent;
  return {
    state: INBOX_STATES.find((each) => each === state) ?? "open",
    kind: isInboxKind(kind) ? kind : undefined,
  };
}
