// Choice of channels: order, shares, exclusion, rest and half-open probe, all without a clock.
import { describe, expect, test } from "bun:test";
import type { Channel } from "../../../src/core/channels/rows.ts";
import { createPicker } from "../../../src/core/channels/picker.ts";
import type { Verdict } from "../../../src/core/channels/picker.ts";
import type { Routing, Tier } from "../../../src/core/channels/routing.ts";

interface Spec {
  group?: string;
  id: number;
  priority?: number;
  weight?: number;
}

function channelOf(id: number, fields: Partial<Channel> = {}): Channel {
  const modelMapping = new Map([["alias", "m"]]);
  const { keys = ["key"] } = fields;
  const keyRows = keys.map((key, at) => ({
    id: at + 1,
    account: key,
    status: 1,
  })) as Channel["keyRows"][number][];
  const plain = { id, type: 1, keys, keyRows, baseUrl: "https://a.example", modelMapping };
  return { ...plain, ...fields } as Channel;
}

function pickerOf(specs: readonly Spec[]) {
  const byPriority = new Map<number, Spec[]>();
  for (const spec of specs) {
    const priority = spec.priority ?? 0;
    byPriority.set(priority, [...(byPriority.get(priority) ?? []), spec]);
  }
  const entries = new Map(
    specs.map((spec) => [
      spec.id,
      { channel: channelOf(spec.id), share: (spec.weight ?? 0) + 10, current: 0 },
    ]),
  );
  const tiersOf = (group: string): Tier[] =>
    [...byPriority]
      .sort(([a], [b]) => b - a)
      .map(([priority, members]) => ({
        priority,
        entries: members
          .filter((spec) => (spec.group ?? "default") === group)
          .flatMap(({ id }) => entries.get(id) ?? []),
      }))
      .filter((tier) => tier.entries.length > 0);
  const edits = new Map<number, Partial<Channel>>();
  let changed: (ids: readonly number[]) => void = () => {};
  const routing: Pick<Routing, "tiers" | "channel" | "onChange"> = {
    tiers: tiersOf,
    channel: (id) => (specs.some((spec) => spec.id === id) ? channelOf(id, edits.get(id)) : undefined),
    onChange: (listener) => void (changed = listener),
  };
  const picker = createPicker(routing);
  const pick = (nowMs = 0, excluded: number[] = []) =>
    picker.pick("default", "m", new Set(excluded), nowMs)?.id;
  /** One outcome for the model "m", or for all of them. */
  const report = (
    id: number,
    verdict: Verdict | "whole",
    nowMs: number,
    retryAfterSeconds?: number,
    beganMs = nowMs,
  ): void => {
    if (verdict === "ok") return picker.succeeded(channelOf(id), "m", beganMs, nowMs);
    const how = verdict === "whole" ? { reason: "rejected" as const, isWhole: true } : { reason: verdict };
    picker.failed(channelOf(id), "m", { ...how, beganMs, retryAfterSeconds }, nowMs);
  };
  const restsUntil = (id: number): number => picker.rests(id, -1)[0]?.untilMs ?? 0;
  const edit = (id: number, fields: Partial<Channel>): void => {
    edits.set(id, { ...edits.get(id), ...fields });
    changed([id]);
  };
  return { picker, pick, edit, report, restsUntil };
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
    const { pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    report(1, "down", 0);
    report(1, "down", 0);
    report(1, "ok", 0);
    report(1, "down", 0);
    report(1, "down", 0);
    expect(pick()).toBe(1);
    report(1, "down", 0);
    expect(pick()).toBe(2);
  });

  test("after the rest exactly one probe goes through; its failure doubles the rest, its success ends it", () => {
    const { pick, report, restsUntil } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) report(1, "down", 0);
    const firstRest = restsUntil(1);
    expect(pick(firstRest - 1)).toBe(2);
    expect(pick(firstRest)).toBe(1);
    expect(pick(firstRest)).toBe(2);
    report(1, "down", firstRest);
    expect(restsUntil(1) - firstRest).toBe(2 * firstRest);
    const secondRest = restsUntil(1);
    expect(pick(secondRest)).toBe(1);
    report(1, "ok", secondRest);
    expect([pick(secondRest), pick(secondRest)]).toEqual([1, 1]);
  });

  test("a probe that never reports back does not block the channel for good", () => {
    const { pick, report, restsUntil } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) report(1, "down", 0);
    const rest = restsUntil(1);
    expect(pick(rest)).toBe(1);
    expect(pick(rest + 1)).toBe(2);
    expect(pick(rest + 60_000)).toBe(1);
  });

  test("Retry-After is honoured to the second and capped", () => {
    const { pick, report, restsUntil } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    report(1, "limited", 1000, 20);
    expect(pick(20_999)).toBe(2);
    expect(pick(21_000)).toBe(1);
    report(1, "limited", 0, 86_400);
    expect(restsUntil(1)).toBeLessThanOrEqual(21_000 + 600_000);
  });

  test("a rejected key rests at once", () => {
    const { pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    report(1, "rejected", 0);
    expect(pick(1)).toBe(2);
  });

  test("when everybody rests the one who is soonest rested serves: a refusal would help nobody", () => {
    const { pick, report } = pickerOf([{ id: 1 }, { id: 2 }]);
    report(1, "rejected", 0);
    report(2, "limited", 0);
    expect(pick(1)).toBe(2);
  });

  test("who asked for patience is not asked before its time, though everybody else rests or is left out", () => {
    const { picker, pick, report } = pickerOf([{ id: 1 }, { id: 2 }]);
    report(1, "limited", 0, 60);
    report(2, "rejected", 0);
    expect([pick(1), pick(1, [2])]).toEqual([2, undefined]);
    expect(picker.askedUntil(channelOf(1), "m", 1)).toBe(60_000);
    report(2, "limited", 40_000, 30);
    expect([pick(59_999), pick(60_000), picker.askedUntil(channelOf(1), "m", 60_000)]).toEqual([
      undefined,
      1,
      0,
    ]);
  });

  test("over several groups the first with a channel that does not rest serves, else the soonest rested of all", () => {
    const { picker, report } = pickerOf([
      { id: 1, group: "a" },
      { id: 2, group: "b" },
      { id: 3, group: "b" },
    ]);
    const among = (nowMs: number, excluded: number[] = [], accepts?: (channel: Channel) => boolean) => {
      const found = picker.pickAmong(["a", "b", "none"], "m", new Set(excluded), nowMs, accepts);
      return found && `${found.group}${found.channel.id}`;
    };
    expect([among(0), among(0)]).toEqual(["a1", "a1"]);
    expect([among(0, [1]), among(0, [1]), among(0, [1, 2, 3])]).toEqual(["b2", "b3", undefined]);
    expect(among(0, [], ({ id }) => id === 3)).toBe("b3");
    report(1, "rejected", 0);
    expect(among(1)).toBe("b2");
    report(2, "limited", 0);
    expect(among(1)).toBe("b3");
    report(3, "rejected", 0);
    expect(among(1)).toBe("b2");
    report(2, "limited", 1, 60);
    expect(among(2)).toBe("a1");
    expect(picker.pickAmong([], "m", new Set(), 1)).toBeUndefined();
  });

  test.each([
    ["keys", { keys: ["another"] }],
    ["address", { baseUrl: "https://b.example" }],
    ["setting", { setting: { proxy: "http://c.example" } }],
    ["status", { status: 1 }],
  ] as const)("a channel whose %s changed starts afresh", (_, fields) => {
    const { pick, edit, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    report(1, "rejected", 0);
    edit(1, fields);
    expect(pick(1)).toBe(1);
  });

  test("other edits wake nobody, and unknown channels leave no trace", () => {
    const { pick, edit, report, restsUntil } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    report(1, "rejected", 0);
    edit(1, { name: "renamed", weight: 5, groups: ["vip"] });
    expect(pick(1)).toBe(2);
    report(99, "rejected", 0);
    expect(restsUntil(99)).toBe(0);
  });
});

describe("cells: a channel and one of its upstream models", () => {
  test("what one model meets leaves the others alone, under whatever name it is requested", () => {
    const { picker, pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    report(1, "limited", 0, 60);
    const asked = (model: string) => picker.pick("default", model, new Set(), 1)?.id;
    expect([pick(1), asked("alias"), asked("other")]).toEqual([2, 2, 1]);
    expect(picker.rests(1, 1)).toEqual([{ model: "m", reason: "limited", untilMs: 60_000 }]);
  });

  test("a channel whose keys are all rejected rests for every model, until one of them is answered", () => {
    const { picker, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    report(1, "whole", 0);
    const asked = (model: string) => picker.pick("default", model, new Set(), 1)?.id;
    expect([asked("m"), asked("other")]).toEqual([2, 2]);
    picker.succeeded(channelOf(1), "other", 1, 1);
    expect([asked("m"), asked("other")]).toEqual([1, 1]);
  });

  test("half of ten outcomes in a minute are too many failures, though never three in a row", () => {
    const { pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 10; i++) report(1, i % 2 === 0 ? "down" : "ok", i);
    expect(pick(10)).toBe(1);
    report(1, "down", 10);
    expect(pick(10)).toBe(2);
    // Ten outcomes in one minute and the eleventh in the next are not as many in a minute.
    const spread = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 10; i++) spread.report(1, i % 2 === 0 ? "down" : "ok", i);
    spread.report(1, "down", 70_000);
    expect(spread.pick(70_000)).toBe(1);
  });

  test("fewer failures than half take nothing out", () => {
    const { pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 60; i++) report(1, i % 3 === 0 ? "down" : "ok", i);
    expect(pick(60)).toBe(1);
  });

  test("half-open lets one of fifty through, the others are served elsewhere", () => {
    const { pick, report, restsUntil } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) report(1, "down", 0);
    const picked = Array.from({ length: 50 }, () => pick(restsUntil(1)));
    expect(picked.filter((id) => id === 1)).toHaveLength(1);
  });

  test("calls that were under way when it opened lengthen no rest; rests double up to two minutes", () => {
    const { report, restsUntil } = pickerOf([{ id: 1 }]);
    for (let i = 0; i < 20; i++) report(1, "down", 0);
    expect(restsUntil(1)).toBe(5000);
    const rests = Array.from({ length: 7 }, () => {
      const from = restsUntil(1);
      report(1, "down", from);
      return restsUntil(1) - from;
    });
    expect(rests).toEqual([10_000, 20_000, 40_000, 80_000, 120_000, 120_000, 120_000]);
  });

  test("a stream that begins ends the rest; one that then breaks off opens the cell at once again", () => {
    const { picker, pick, report, restsUntil } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) report(1, "down", 0);
    expect(pick(5000)).toBe(1);
    picker.opened(channelOf(1), "m", 5000);
    expect(pick(5000)).toBe(1);
    report(1, "down", 6000);
    expect(restsUntil(1)).toBe(16_000);
  });

  test("three streams in a row that begin and break off open the cell", () => {
    const { picker, pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) {
      expect(pick()).toBe(1);
      picker.opened(channelOf(1), "m", 0);
      report(1, "down", 0);
    }
    expect(pick()).toBe(2);
  });

  test("a try that ends without a word lets the next one find out", () => {
    const { picker, pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
    for (let i = 0; i < 3; i++) report(1, "down", 0);
    expect([pick(5000), pick(5000)]).toEqual([1, 2]);
    // Somebody who came before the one that tries it out.
    picker.abandoned(channelOf(1), "m", 4999);
    expect(pick(5000)).toBe(2);
    picker.abandoned(channelOf(1), "m", 5000);
    expect(pick(5000)).toBe(1);
  });

  test.each<Verdict | "whole">(["limited", "down", "whole"])(
    "an answer to a call that began before ends no rest (%s), whether it begins or is over",
    (verdict) => {
      const { picker, pick, report } = pickerOf([{ id: 1, priority: 1 }, { id: 2 }]);
      for (let i = 0; i < 3; i++) report(1, verdict, 100 + i, verdict === "limited" ? 60 : undefined);
      picker.opened(channelOf(1), "m", 99);
      report(1, "ok", 200, undefined, 99);
      expect(pick(201)).toBe(2);
      report(1, "ok", 300, undefined, 250);
      expect(pick(301)).toBe(1);
    },
  );

  test("nor does it reopen a proxy that nobody was reached through since", () => {
    const setting = { proxy: "http://proxy.example" };
    const { picker } = pickerOf([{ id: 1 }, { id: 2 }]);
    const proxied = (id: number) => ({ ...channelOf(id), setting }) as Channel;
    const unreached = { reason: "down", isUnreached: true, beganMs: 100 } as const;
    for (let i = 0; i < 4; i++) picker.failed(proxied(1 + (i % 2)), "m", unreached, 100);
    picker.succeeded(proxied(1), "m", 99, 102);
    picker.failed(proxied(1), "m", { reason: "limited", beganMs: 99 }, 102);
    expect(picker.restsUntil(proxied(2), "other")).toBe(5100);
    picker.succeeded(proxied(1), "m", 103, 104);
    expect(picker.restsUntil(proxied(2), "other")).toBe(0);
  });

  test("a call that only one channel can serve is told why and until when it may not, and takes the one try", () => {
    const { picker, report } = pickerOf([{ id: 1 }]);
    const claim = (nowMs: number) => picker.claim(channelOf(1), "m", nowMs);
    expect(claim(0)).toBeUndefined();
    report(1, "limited", 0, 30);
    expect(claim(1)).toEqual({ model: "m", reason: "limited", untilMs: 30_000 });
    expect([claim(30_000), claim(30_000)]).toMatchObject([undefined, { reason: "limited" }]);
  });

  test("a lone failure is forgotten after ten minutes, that of a proxy too, without another one", () => {
    const { picker, report } = pickerOf([{ id: 1 }]);
    expect(picker.isCalm(0)).toBe(true);
    report(1, "down", 0);
    const behind = channelOf(1, { setting: { proxy: "http://p.example" } });
    picker.failed(behind, "m", { reason: "down", beganMs: 1000, isUnreached: true }, 1000);
    expect([1000, 600_000].map((nowMs) => picker.isCalm(nowMs))).toEqual([false, false]);
    expect(picker.isCalm(661_001)).toBe(true);
    expect(picker.cells(behind, 661_001)).toEqual([]);
  });
});
