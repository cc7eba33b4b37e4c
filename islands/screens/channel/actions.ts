// What the channel screen does to channels: status with undo, tests, balances, copies, tags, deletions. Loaded on first use.
// Refuses to delete without naming what and how many.
import { priceName } from "../../../src/shared/price-name.ts";
import { api, ApiFailure, call, callForBody, failureMessage } from "../../lib/api.ts";
import { t } from "../../lib/i18n.ts";
import { namesText } from "../../lib/model-names.ts";
import { setQuery } from "../../lib/url-state.ts";
import { confirm, deleteRows } from "../../ui/confirm.tsx";
import { toast, toastFailure } from "../../lib/toasts.ts";
import type { Tone } from "../../lib/toasts.ts";
import type { QuickField } from "./columns.tsx";
import type { ListRow, TagRow, TestState } from "./row.ts";
import { dollarsText, isTagRow, namesOf, STATUS_DISABLED, STATUS_ENABLED } from "./row.ts";
import { noteRun } from "./use-channels.ts";
import type { Channels } from "./use-channels.ts";
import type { ChannelRow } from "../../lib/wire.ts";

const TESTS_AT_ONCE = 3;
const POLL_MS = 1000;
const TEST_TOAST = "channel test";
const REASONS_SHOWN = 3;
/** Written out: a name made at run time would bring every text of the area into the page. */
const FIELD_TITLES: Record<QuickField, string> = {
  priority: "channel.priority",
  weight: "channel.weight",
  group: "channel.groups",
  tag: "channel.tag",
};

/** The channels behind rows: heads of tags stand for all of theirs. */
export function channelsOf(rows: readonly ListRow[]): ChannelRow[] {
  const found = rows.flatMap((row) => (isTagRow(row) ? [...row.channels] : [row]));
  return [...new Map(found.map((row) => [row.id, row])).values()];
}

/** One after the other; answers those that went through and throws nothing. */
async function overAll(
  rows: readonly ChannelRow[],
  work: (row: ChannelRow) => Promise<unknown>,
): Promise<ChannelRow[]> {
  const done: ChannelRow[] = [];
  for (const row of rows) {
    try {
      await work(row);
      done.push(row);
    } catch (error) {
      toastFailure(error);
      break;
    }
  }
  return done;
}

/** Undo gives every channel its old status back, each its own. */
export async function setStatus(
  channels: Channels,
  rows: readonly ChannelRow[],
  status: number,
): Promise<void> {
  const targets = rows.filter((row) => row.status !== status);
  const [first] = targets;
  if (!first) return;
  const ids = new Set(targets.map(({ id }) => id));
  const rollBack = channels.list.patch((all) =>
    all.map((each) => (ids.has(each.id) ? { ...each, status } : each)),
  );
  const done = await overAll(targets, ({ id }) => call(api.channel.put({ id, status })));
  if (done.length < targets.length) rollBack();
  if (done.length > 0) {
    const isOn = status === STATUS_ENABLED;
    toast({
      key: "channel status",
      text:
        done.length === 1
          ? t(isOn ? "channel.nowEnabled" : "channel.nowDisabled", { name: first.name })
          : t(isOn ? "channel.nowEnabledMany" : "channel.nowDisabledMany", { count: done.length }),
      undo: async () => {
        await overAll(done, (row) => call(api.channel.put({ id: row.id, status: row.status })));
        await channels.refresh();
      },
    });
  }
  await channels.refresh();
}

/** All channels of a tag, also those that no filter of the list shows. */
const taggedAs = (tag: string): Promise<ChannelRow[]> => call(api.channel.search.get({ query: { tag } }));

export async function setTagStatus(channels: Channels, row: TagRow, isOn: boolean): Promise<void> {
  try {
    const tagged = await taggedAs(row.tag);
    // Disabling by hand takes those along that were switched off by themselves.
    const before = tagged.filter(({ status }) => status !== (isOn ? STATUS_ENABLED : STATUS_DISABLED));
    await call(api.channel.tag[isOn ? "enabled" : "disabled"].post({ tag: row.tag }));
    toast({
      key: "channel status",
      text: t(isOn ? "channel.tagEnabled" : "channel.tagDisabled", {
        tag: row.tag,
        count: tagged.length,
      }),
      undo: async () => {
        await overAll(before, ({ id, status }) => call(api.channel.put({ id, status })));
        await channels.refresh();
      },
    });
  } catch (error) {
    toastFailure(error);
  }
  await channels.refresh();
}

/** An edit in the table; throws to roll back. Undo brings the old values back, for a tag those of each channel. */
export async function saveQuick(
  channels: Channels,
  row: ListRow,
  name: QuickField,
  text: string,
): Promise<void> {
  const isNumber = name === "priority" || name === "weight";
  // A tag may be taken away in place; anything else stays when nothing was typed.
  if (text.trim() === "" && name !== "tag") return;
  const value = isNumber ? Number.parseInt(text, 10) : text.trim();
  const targets = isTagRow(row) ? await taggedAs(row.tag) : [row];
  const write = (each: ChannelRow, next: unknown) => call(api.channel.put({ id: each.id, [name]: next }));
  const ids = new Set(targets.map(({ id }) => id));
  const rollBack = channels.list.patch((all) =>
    all.map((each) => (ids.has(each.id) ? { ...each, [name]: value } : each)),
  );
  try {
    if (isTagRow(row)) await call(api.channel.tag.put({ tag: row.tag, [name]: value }));
    else await write(row, value);
  } catch (error) {
    rollBack();
    throw error;
  }
  toast({
    key: `channel ${name}`,
    text: t("channel.fieldSaved", {
      field: t(FIELD_TITLES[name]),
      value: String(value),
    }),
    undo: async () => {
      await overAll(targets, (each) => write(each, each[name] ?? ""));
      await channels.refresh();
    },
  });
  await channels.refresh();
}

export async function remove(
  channels: Channels,
  rows: readonly ChannelRow[],
  clear?: () => void,
): Promise<void> {
  const [first] = rows;
  if (!first) {
    toast({ tone: "warning", text: t("channel.chooseToDelete") });
    return;
  }
  const inUse = rows.filter((row) => row.status === STATUS_ENABLED).length;
  const count = rows.length;
  await deleteRows({
    count,
    title: count === 1 ? t("channel.deleteOne", { name: first.name }) : t("channel.deleteMany", { count }),
    text: [
      t(count === 1 ? "channel.deleteOneText" : "channel.deleteText"),
      ...(inUse > 0 && count > 1 ? [t("channel.deleteInUse", { count: inUse })] : []),
    ].join(" "),
    action: count === 1 ? t("common.delete") : t("channel.deleteManyAction", { count }),
    run: async () => {
      const deleted = await call(api.channel.batch.post({ ids: rows.map(({ id }) => id) }));
      return t("channel.deletedCount", { count: Number(deleted) });
    },
    refresh: channels.refresh,
    clear,
  });
}

/** Both kinds of disabled ones, counted anew before the question. */
export async function removeDisabled(channels: Channels): Promise<void> {
  try {
    const { disabled, auto_disabled: autoDisabled } = await call(api.channel.summary.get());
    const count = disabled + autoDisabled;
    if (count === 0) {
      toast({ tone: "info", text: t("channel.noneDisabled") });
      return;
    }
    const yes = await confirm({
      title: t("channel.deleteDisabledTitle", { count }),
      text: t("channel.deleteDisabledText", { disabled, autoDisabled }),
      action: t("channel.deleteManyAction", { count }),
      isDanger: true,
      ...(count > 20 ? { typed: String(count) } : {}),
    });
    if (!yes) return;
    const deleted = await call(api.channel.disabled.delete());
    toast({ text: t("channel.deletedCount", { count: Number(deleted) }) });
  } catch (error) {
    toastFailure(error);
  }
  await channels.refresh();
}

export interface TestAnswer {
  isGood: boolean;
  /** Among several: it cannot be tested, and was not asked. */
  isSkipped: boolean;
  ms: number;
  message: string;
}

/** The channel is one of several that are tested: one that cannot be is left out. */
const BULK = { bulk: "true" };
/** Why one of several was left out. */
const SKIP_CODES: ReadonlySet<string> = new Set([
  "channel_untested",
  "channel_without_models",
  "model_untested",
  "provider_unknown",
]);

/** One call to the provider; a refused one is an answer too. */
export async function testOnce(
  id: number,
  query: { model?: string; bulk?: string } = {},
): Promise<TestAnswer> {
  try {
    const running = api.channel.test({ id }).get({ query });
    // The time stands beside the message, also where the provider refused.
    const body = (await callForBody(running)) as { time?: number };
    return { isGood: true, isSkipped: false, ms: Math.round((body.time ?? 0) * 1000), message: "" };
  } catch (error) {
    const isSkipped = query.bulk !== undefined && error instanceof ApiFailure && SKIP_CODES.has(error.code);
    return { isGood: false, isSkipped, ms: 0, message: failureMessage(error) };
  }
}

/** Channels that were just saved: known by id only, perhaps not yet in the list. */
export async function testIds(channels: Channels, ids: readonly number[]): Promise<void> {
  const rows = await Promise.all(ids.map((id) => call(api.channel({ id }).get())));
  await testChannels(channels, rows);
  await warnOfUnpriced(rows);
}

/** A test costs nobody anything: that it passed does not mean that calls are let through. */
async function warnOfUnpriced(rows: readonly ChannelRow[]): Promise<void> {
  const { isRefusing, names } = await call(api.channel.models_priced.get());
  if (!isRefusing) return;
  const priced = new Set(names);
  const models = new Set(rows.flatMap((row) => namesOf(row.models)));
  const unpriced = [...models].filter((name) => !priced.has(priceName(name)));
  if (unpriced.length === 0) return;
  toast({
    key: "channel unpriced",
    tone: "warning",
    text: t("price.savedUnpriced", { count: unpriced.length, names: namesText(t, unpriced) }),
  });
}

export async function testChannels(channels: Channels, rows: readonly ChannelRow[]): Promise<void> {
  const [only] = rows;
  if (!only) return;
  await (rows.length === 1 ? testAlone(channels, only) : testSeveral(channels, rows));
  await channels.refresh();
}

/** The row may be on another page, or hidden by a filter: what happens is said here as well. */
async function testAlone(channels: Channels, row: ChannelRow): Promise<void> {
  const { name } = row;
  const tell = (entry: { tone?: Tone; stays?: boolean; text: string }) =>
    toast({ key: TEST_TOAST, ...entry });
  tell({ tone: "info", stays: true, text: t("channel.test.runningOne", { name }) });
  const answer = await testInRow(channels, row);
  if (answer.isGood)
    tell({ text: t("channel.test.passed", { name, seconds: (answer.ms / 1000).toFixed(2) }) });
  else tell({ tone: "error", text: t("channel.test.failedOne", { name, reason: answer.message }) });
}

async function testInRow(channels: Channels, row: ChannelRow, query = {}): Promise<TestAnswer> {
  channels.setTest(row.id, { phase: "running" });
  const answer = await testOnce(row.id, query);
  channels.setTest(row.id, stateAfter(answer));
  return answer;
}

function stateAfter({ isGood, isSkipped, ms, message }: TestAnswer): TestState {
  if (isSkipped) return { phase: "skipped", message };
  return isGood ? { phase: "passed", ms } : { phase: "failed", ms, message };
}

/** The first few; the rows tell the others. */
function firstReasons(reasons: readonly string[]): readonly string[] {
  return reasons.length > REASONS_SHOWN ? [...reasons.slice(0, REASONS_SHOWN), "…"] : reasons;
}

/** A few at once; cancelling begins no further one. */
async function testSeveral(channels: Channels, rows: readonly ChannelRow[]): Promise<void> {
  const queue = [...rows];
  const failures: string[] = [];
  const skips: string[] = [];
  const startedMs = performance.now();
  let done = 0;
  let isCancelled = false;
  const show = (isRunning: boolean) =>
    channels.setRun({
      kind: "tests",
      isRunning,
      isCancelled,
      done,
      total: rows.length - skips.length,
      failed: failures.length,
      skipped: skips.length,
      elapsedMs: performance.now() - startedMs,
      reasons: [...firstReasons(failures), ...firstReasons(skips)],
      cancel() {
        isCancelled = true;
        for (const { id } of queue.splice(0)) channels.setTest(id, undefined);
        show(true);
      },
    });
  for (const { id } of rows) channels.setTest(id, { phase: "waiting" });
  show(true);
  const worker = async () => {
    for (let row = queue.shift(); row; row = queue.shift()) {
      const { isGood, isSkipped, message } = await testInRow(channels, row, BULK);
      if (isSkipped) skips.push(t("channel.test.skippedOne", { name: row.name, reason: message }));
      else done++;
      if (!isGood && !isSkipped) failures.push(`${row.name}: ${message}`);
      show(true);
    }
  };
  await Promise.all(Array.from({ length: Math.min(TESTS_AT_ONCE, rows.length) }, worker));
  show(false);
}

/** Starts a run over all channels, or joins the one that is under way, and follows it to its end. */
export async function testAll(channels: Channels): Promise<void> {
  try {
    await call(api.channel.test.get());
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== "channel_test_running") {
      toastFailure(error);
      return;
    }
    toast({ tone: "info", text: error.message });
  }
  await followRun(channels);
}

const RUNS = {
  tests: {
    progress: () => call(api.channel.test_progress.get()),
    cancel: () => call(api.channel.test_cancel.post()),
  },
  balances: {
    progress: () => call(api.channel.balance_progress.get()),
    cancel: () => call(api.channel.balance_cancel.post()),
  },
};

/** Shows how far the run over all channels is until it is through, then what came of it. */
export async function followRun(channels: Channels): Promise<void> {
  noteRun(true);
  if (await follow(channels, "tests", ({ isRunning }) => !isRunning)) noteRun(false);
}

type Progress = Awaited<ReturnType<typeof RUNS.tests.progress>>;

/** Asks again and again; `wakes` cuts a pause short. False: the end was not seen. */
async function follow(
  channels: Channels,
  kind: keyof typeof RUNS,
  isOver: (progress: Progress) => boolean,
  wakes?: Promise<unknown>,
): Promise<boolean> {
  const { progress: ask, cancel } = RUNS[kind];
  for (;;) {
    let progress: Progress;
    try {
      progress = await ask();
    } catch (error) {
      channels.setRun(undefined);
      toastFailure(error);
      return false;
    }
    const hasEnded = isOver(progress);
    const shown = { ...progress, kind, cancel: () => void cancel().catch(toastFailure) };
    const skips = progress.skips.map(({ name, message }) =>
      t("channel.test.skippedOne", { name, reason: message }),
    );
    channels.setRun({ ...shown, isRunning: !hasEnded, reasons: firstReasons(skips) });
    if (hasEnded) {
      await channels.refresh();
      return true;
    }
    const pause = new Promise((resolve) => setTimeout(resolve, POLL_MS));
    await (wakes ? Promise.race([pause, wakes]) : pause);
  }
}

export async function updateBalance(channels: Channels, row: ChannelRow): Promise<void> {
  try {
    const { balance } = (await callForBody(api.channel.update_balance({ id: row.id }).get())) as {
      balance: number;
    };
    toast({
      key: "channel balance",
      text: t("channel.balanceOne", { name: row.name, balance: dollarsText(balance) }),
    });
    await channels.refresh();
  } catch (error) {
    toastFailure(error);
  }
}

/** The call lasts as long as the run; how far it is is asked meanwhile. */
export async function updateBalances(channels: Channels): Promise<void> {
  let isThrough = false;
  let failure: unknown;
  const running = call(api.channel.update_balance.get())
    .catch((error: unknown) => (failure = error))
    .finally(() => (isThrough = true));
  await follow(channels, "balances", () => isThrough, running);
  if (failure !== undefined) toastFailure(failure, "channel balance");
}

/** Finds the channel of a full key and shows it by its id, so that the address never holds the key. */
export async function findByKey(channels: Channels, key: string): Promise<void> {
  const rows = await call(api.channel.search.get({ query: { keyword: key } }));
  const owner = rows.find((row) => !row.name.includes(key) && !row.base_url.includes(key));
  if (owner) {
    channels.table.setFilters({ keyword: String(owner.id) });
    toast({ key: "channel key", tone: "info", text: t("channel.keyFound", { name: owner.name }) });
  } else if (rows.length > 0) {
    // A long name, not a key.
    channels.table.setFilters({ keyword: key });
  } else {
    toast({ key: "channel key", tone: "warning", text: t("channel.keyUnknown") });
  }
}

/** The copy is made on the server, with the key, switched off; its editor opens. */
export async function copyOne(channels: Channels, row: ChannelRow): Promise<void> {
  try {
    const { id } = await call(api.channel.copy({ id: row.id }).post());
    toast({ text: t("channel.copied") });
    await channels.refresh();
    setQuery({ edit: id });
  } catch (error) {
    toast({
      tone: "error",
      text: t("channel.copyFailed") + failureMessage(error),
      ...(error instanceof ApiFailure ? { code: error.code } : {}),
    });
  }
}

export async function repair(channels: Channels): Promise<void> {
  try {
    const count = await call(api.channel.fix.post());
    toast({ text: t("channel.repaired", { count: Number(count) }) });
  } catch (error) {
    toastFailure(error);
  }
  await channels.refresh();
}

/** Sets the tag of a selection; undo gives each its old one back. */
export async function tagRows(channels: Channels, rows: readonly ChannelRow[], tag: string): Promise<void> {
  await call(api.channel.batch.tag.post({ ids: rows.map(({ id }) => id), tag }));
  toast({
    text: t("channel.tagged", { count: rows.length, tag }),
    undo: async () => {
      await overAll(rows, (row) => call(api.channel.put({ id: row.id, tag: row.tag ?? "" })));
      await channels.refresh();
    },
  });
  await channels.refresh();
}
