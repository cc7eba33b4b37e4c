// A channel as somebody is about to save it: checked like a change, and parsed without being written anywhere.
// Refuses what saving would refuse; it has no key, so that whatever is tried with it can reach nobody.
import { refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { eq } from "drizzle-orm";
import { channelChanges } from "./input.ts";
import type { ChannelInput } from "./input.ts";
import { parseChannel } from "./rows.ts";
import type { Channel, ChannelRow } from "./rows.ts";

/** A row of which nothing was said yet. */
const BLANK: ChannelRow = {
  id: 0,
  type: 1,
  openaiOrganization: null,
  testModel: null,
  status: 1,
  name: "",
  weight: 0,
  createdTime: 0,
  testTime: 0,
  responseTime: 0,
  baseUrl: "",
  other: "",
  balance: 0,
  balanceUpdatedTime: 0,
  models: "",
  group: "default",
  usedQuota: 0,
  modelMapping: "",
  statusCodeMapping: "",
  priority: 0,
  autoBan: 1,
  otherInfo: "",
  tag: null,
  setting: "",
  paramOverride: "",
  headerOverride: "",
  settings: "",
  modelDrift: "",
  maxInputTokens: 0,
  multiKeyMode: "polling",
  maxConcurrency: 0,
  rpmLimit: 0,
  tpmLimit: 0,
  goneKeysQuota: 0,
};

/** What stands where the key would: text that means nothing to anybody. */
const KEY_IN_DRAFTS = "<key>";

/** The channel of that id with these changes; without an id a new one. Throws what saving would throw of its fields. */
export async function draftChannel(
  { db, seal }: Pick<Deps, "db" | "seal">,
  id: number | undefined,
  input: ChannelInput,
): Promise<Channel> {
  const { channels } = db.t;
  const [row] = id === undefined ? [BLANK] : await db.orm.select().from(channels).where(eq(channels.id, id));
  if (!row) throw refuse("record_missing");
  const changes = channelChanges(input, row);
  return { ...parseChannel({ ...row, ...changes }, [], seal), keys: [KEY_IN_DRAFTS] };
}
