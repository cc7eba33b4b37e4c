// Choice of channels: order, shares, exclusion, rest and half-open probe, all without a clock.
import { describe, expect, test } from "bun:test";
import type { Channel } from "../../../src/core/channels/rows.ts";
import { createPicker } from "../../../src/core/channels/picker.ts";
import type { Routing, Tier } from "../../../src/core/channels/routing.ts";

interface Spec {
  id: number;
  priority?: number;
  weight?: number;
}

function channelOf(id: number, fields: Partial<Channel> = {}): Channel {
  return { id, type: 1, keys: ["key"], baseUrl: "https://a.example", ...fields } as Channel;
}

function pickerOf(specs: readonly Spec[]) {
  const byPriority = new Map<number, Spec[]>();
  for (const spec of specs) {
    const priority = spec.priority ?? 0;
    byPriority.set(priority, [...(byPriority.get(priority) ?? []), spec]);
  }
  const tiers: Tier[] = [...byPriority]
    .sort(([a], [b]) => b - a)
    .map(([priority, members]) => ({
      priority,
      entries: members.map((spec) => ({
        channel: { id: spec.id } as Channel,
        share: (spec.weight ?? 0) + 10,
        current: 0,
      })),
    }));
  const edits = new Map<number, Partial<Channel>>();
  let changed: (ids: readonly number[]) => void = () => {};
  const routing: Pick<Routing, "tiers" | "channel" | "onChange"> = {
    tiers: () => tiers,
    channel: (id) => (specs.some((spec) => spec.id === id) ? channelOf(id, edits.get(id)) : undefined),
    onChange: (listener) => void (changed = listener),
  };
  const picker = createPicker(routing);
  const pick = (nowMs = 0, excluded: number[] = []) =>
    picker.pick("default", "m", new Set(excluded), nowMs)?.id;
  const edit = (id: number, fields: Partial<Channel>): void => {
    edits.set(id, { ...edits.get(id), ...fields });
    changed([id]);
  };
  return { picker, pick, edit };
}

describe("order and shares", () => {
  test("the highest priority serves as long as one of its channels can", () => {
    const { pick } = pickerOf([{ id: 1 }, { id: 2, priority: 5 }, { id: 3, priority: 5 }]);
    const picked = Array.from({ length: 10 }, () => pick());
    expect(new Set(picked)).toEqual(new Set([2, 3]));
  });

  test("weights 0 and 10 share one to two, and weight 0 still serves", () => {
    const { pick } = pickerOf([{ id: 1 }, { id: 2, weight: 10 }]);
    const picked = Array.from({ length: 300 }, () => pick());
    expect(picked.filter((id) => id === 1)).toHaveLength(100);
    expect(picked.filter((id) => id === 2)).toHaveLength(200);
  });

  test("equal weights alternate and never clump", () => {
    const { pick } = pickerOf([{ id: 1 }, { id: 2 }, { id: 3 }]);
    expect(Array.from({ length: 6 }, () => pick())).toEqual([1, 2, 3, 1, 2, 3]);
  });

  test("a channel that failed in this request is not picked again, then the next priority serves, then nobody", () => {
    const { pick } = pickerOf([{ id: 1, priority: 9 }, { id: 2, priority: 9 }, { id: 3 }]);
    const first = pick() as number;
    const second = pick(0, [first]) as number;
    expect(new Set([first, second])).toEqual(new Set([1, 2]));
    expect(pick(0, [1, 2])).toBe(3);
    expect(pick(0, [1, 2, 3])).toBeUndefined();
  });

  test("channels that cannot serve the call are passed over", () => {
    const { picker } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    expect(picker.pick("default", "m", new Set(), 0, (channel) => channel.id !== 1)?.id).toBe(2);
  });
});

describe("rest and probe", () => {
  test("three failures in a row make a channel rest; one success in between does not", () => {
    const { picker, pick } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    picker.report(1, "down", 0);
    picker.report(1, "down", 0);
    picker.report(1, "ok", 0);
    picker.report(1, "down", 0);
    picker.report(1, "down", 0);
    expect(pick()).toBe(1);
    picker.report(1, "down", 0);
    expect(pick()).toBe(2);
  });

  test("after the rest exactly one probe goes through; its failure doubles the rest, its success ends it", () => {
    const { picker, pick } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) picker.report(1, "down", 0);
    const firstRest = picker.coolingUntilMs(1);
    expect(pick(firstRest - 1)).toBe(2);
    expect(pick(firstRest)).toBe(1);
    expect(pick(firstRest)).toBe(2);
    picker.report(1, "down", firstRest);
    expect(picker.coolingUntilMs(1) - firstRest).toBe(2 * firstRest);
    const secondRest = picker.coolingUntilMs(1);
    expect(pick(secondRest)).toBe(1);
    picker.report(1, "ok", secondRest);
    expect([pick(secondRest), pick(secondRest)]).toEqual([1, 1]);
  });

  test("a probe that never reports back does not block the channel for good", () => {
    const { picker, pick } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) picker.report(1, "down", 0);
    const rest = picker.coolingUntilMs(1);
    expect(pick(rest)).toBe(1);
    expect(pick(rest + 1)).toBe(2);
    expect(pick(rest + 60_000)).toBe(1);
  });

  test("Retry-After is honoured to the second and capped", () => {
    const { picker, pick } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    picker.report(1, "limited", 1000, 20);
    expect(pick(20_999)).toBe(2);
    expect(pick(21_000)).toBe(1);
    picker.report(1, "limited", 0, 86_400);
    expect(picker.coolingUntilMs(1)).toBeLessThanOrEqual(21_000 + 600_000);
  });

  test("a rejected key rests at once", () => {
    const { picker, pick } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    picker.report(1, "rejected", 0);
    expect(pick(1)).toBe(2);
  });

  test("when everybody rests the one who is soonest rested serves: a refusal would help nobody", () => {
    const { picker, pick } = pickerOf([{ id: 1 }, { id: 2 }]);
    picker.report(1, "limited", 0, 60);
    picker.report(2, "limited", 0, 30);
    expect(pick(1)).toBe(2);
  });

  test.each([
    ["keys", { keys: ["another"] }],
    ["address", { baseUrl: "https://b.example" }],
    ["setting", { setting: { proxy: "http://c.example" } }],
    ["status", { status: 1 }],
  ] as const)("a channel whose %s changed starts afresh", (_, fields) => {
    const { picker, pick, edit } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    picker.report(1, "rejected", 0);
    edit(1, fields);
    expect(pick(1)).toBe(1);
  });

  test("other edits wake nobody, and unknown channels leave no trace", () => {
    const { picker, pick, edit } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    picker.report(1, "rejected", 0);
    edit(1, { name: "renamed", weight: 5, groups: ["vip"] });
    expect(pick(1)).toBe(2);
    picker.report(99, "rejected", 0);
    expect(picker.coolingUntilMs(99)).toBe(0);
  });
});
