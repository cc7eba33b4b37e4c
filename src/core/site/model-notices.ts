// Notices about models or channels ("slow today") with their end: kept in one option, changed one at a time, shown to those
// who may call the models. Refuses to name channels to users: a notice about a channel is one about its models.
import { eq, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { definitionOf, optionDefinitions } from "../options/definitions.ts";
import type { ModelNotice } from "../options/kinds.ts";

const KEY = "site.model_notices";
/** A notice that has ended is still listed so long. */
const KEPT_SECONDS = 30 * 86_400;
const MOST_NOTICES = 200;
/** Names that travel with one notice; a channel may serve thousands. */
const MOST_MODELS = 1000;

export type NoticeInput = Omit<ModelNotice, "id">;

/** What a user is told: the text, its end (Unix seconds; 0: until it is taken back), and which of their models it is about. */
export interface NoticeInForce {
  id: string;
  text: string;
  until: number;
  /** Sorted; at most 1000. */
  models: string[];
}

type NoticeDeps = Pick<Deps, "options" | "routing" | "clock">;

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

function isInForce({ until }: ModelNotice, now: number): boolean {
  return until === 0 || until > now;
}

/**
 * The notices in force about models that at least one of the groups serves. A notice about a channel is about what that
 * channel serves these groups, as long as it is enabled.
 */
export function noticesInForce(deps: NoticeDeps, groups: readonly string[]): NoticeInForce[] {
  const now = nowSeconds(deps);
  const notices = deps.options.get(KEY).filter((notice) => isInForce(notice, now));
  if (notices.length === 0) return [];
  const { routing } = deps;
  const served = new Set(groups.flatMap((group) => routing.modelsOf(group)));
  return notices.flatMap(({ id, text, until, models, channels }) => {
    const found = new Set(models.filter((model) => served.has(model)));
    for (const channelId of channels) {
      const channel = routing.channel(channelId);
      if (channel?.status !== ChannelStatus.enabled) continue;
      if (!channel.groups.some((group) => groups.includes(group))) continue;
      for (const model of channel.models) found.add(model);
    }
    if (found.size === 0) return [];
    return [{ id, text, until, models: [...found].sort().slice(0, MOST_MODELS) }];
  });
}

/** All of them, ended ones too, the latest first. */
export function listNotices({ options }: Pick<Deps, "options">): ModelNotice[] {
  return options.get(KEY).toReversed();
}

/** Reads, changes and writes the list in one go: administrators on two nodes lose none of each other's. */
async function revise(
  deps: Pick<Deps, "db" | "options" | "clock">,
  change: (notices: ModelNotice[]) => ModelNotice[],
): Promise<void> {
  const { db } = deps;
  const { options } = db.t;
  const { kind, default: none } = optionDefinitions[KEY];
  const oldest = nowSeconds(deps) - KEPT_SECONDS;
  await db.atomic(function* (tx) {
    // Makes the row, or locks the one there is.
    const [row] = yield* q(
      tx
        .insert(options)
        .values({ key: KEY, value: none })
        .onConflictDoUpdate({ target: options.key, set: { value: sql`${options.value}` } })
        .returning({ value: options.value }),
    );
    const before = kind.parse(row?.value ?? none).filter(({ until }) => until === 0 || until > oldest);
    const value = JSON.stringify(change(before));
    definitionOf(KEY).kind.parse(value);
    yield* q(tx.update(options).set({ value }).where(eq(options.key, KEY)).returning({ key: options.key }));
    yield* db.announceSteps(tx, "options", [KEY]);
  });
  await deps.options.reload();
}

function checked(deps: Pick<Deps, "clock">, input: NoticeInput): NoticeInput {
  const { text, until } = input;
  const models = [...new Set(input.models.map((name) => name.trim()).filter((name) => name !== ""))];
  const channels = [...new Set(input.channels)];
  if (text.trim() === "") throw atField("notice_text_missing", "text");
  if (models.length === 0 && channels.length === 0) throw atField("notice_target_missing", "models");
  if (until !== 0 && until <= nowSeconds(deps)) throw atField("notice_until_past", "until");
  return { models, channels, text: text.trim(), until };
}

function atField(code: "notice_text_missing" | "notice_target_missing" | "notice_until_past", param: string) {
  return new Failure("client", code, { param });
}

type WriteDeps = Pick<Deps, "db" | "options" | "clock">;

export async function addNotice(deps: WriteDeps, input: NoticeInput): Promise<ModelNotice> {
  const notice = { id: crypto.randomUUID().slice(0, 8), ...checked(deps, input) };
  await revise(deps, (notices) => {
    if (notices.length >= MOST_NOTICES) throw refuse("notices_many", { max: MOST_NOTICES });
    return [...notices, notice];
  });
  return notice;
}

export async function changeNotice(deps: WriteDeps, id: string, input: NoticeInput): Promise<ModelNotice> {
  const notice = { id, ...checked(deps, input) };
  await revise(deps, (notices) => {
    if (!notices.some((each) => each.id === id)) throw refuse("record_missing");
    return notices.map((each) => (each.id === id ? notice : each));
  });
  return notice;
}

export async function removeNotice(deps: WriteDeps, id: string): Promise<void> {
  await revise(deps, (notices) => {
    if (!notices.some((each) => each.id === id)) throw refuse("record_missing");
    return notices.filter((each) => each.id !== id);
  });
}
