// First rows of the inbox.
import type { InboxPageData } from "../../islands/screens/inbox/row.ts";
import { listInbox } from "../core/inbox/hands.ts";
import { inboxFilterOf, inboxListFields } from "../http/queries/inbox.ts";
import { sentBy } from "../http/queries/sent.ts";
import type { LoaderContext } from "./page.ts";
import { pagingOf } from "./paging.ts";

export async function loadInbox(context: LoaderContext): Promise<InboxPageData> {
  const { deps, url } = context;
  const { offset, pageSize } = pagingOf(context);
  const filter = inboxFilterOf(sentBy(inboxListFields, url.searchParams));
  const { items, total } = await listInbox(deps, { ...filter, offset, limit: pageSize });
  return { rows: items, total, pageSize };
}
