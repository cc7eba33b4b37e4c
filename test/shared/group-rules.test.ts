// What groups mean, as a table: which ratio is paid, which groups may be used, and which of them an automatic key tries.
import { expect, test } from "bun:test";
import { autoGroupsOf } from "../../src/shared/auto-group.ts";
import {
  choicesOf,
  effectiveRatio,
  OWN_GROUP_DESCRIPTION,
  overrideOf,
} from "../../src/shared/group-rules.ts";

const MAPS = {
  ratios: { default: 1, vip: 0.5, beta: 3, free: 0 },
  overrides: {
    vip: { default: 0.8, beta: 0, free: 2, unheard: 4 },
    staff: { vip: -1, beta: Number.NaN, default: 1e9 },
    "": { default: 9 },
  },
};

test.each([
  // Whose users, in which group, what they pay, and whether that is theirs alone.
  ["default", "default", 1, undefined],
  ["default", "vip", 0.5, undefined],
  ["default", "free", 0, undefined],
  ["default", "unheard", 1, undefined],
  ["vip", "vip", 0.5, undefined],
  ["vip", "default", 0.8, 0.8],
  ["vip", "beta", 0, 0],
  ["vip", "free", 2, 2],
  ["vip", "unheard", 4, 4],
  // What is no ratio overrides nothing, and what is too large is cut.
  ["staff", "vip", 0.5, undefined],
  ["staff", "beta", 3, undefined],
  ["staff", "default", 1e6, 1e6],
  ["constructor", "default", 1, undefined],
  ["vip", "constructor", 1, undefined],
  ["__proto__", "default", 1, undefined],
])("users of %s pay in %s", (userGroup, group, ratio, override) => {
  expect(effectiveRatio(MAPS, group, userGroup)).toBe(ratio);
  expect(overrideOf(MAPS, group, userGroup)).toBe(override);
});

const GROUPS = {
  usable: { default: "Everybody", vip: "Fast", auto: "no group" },
  special: {
    vip: { added: { beta: "New", vip: "Yours" }, removed: new Set(["default"]) },
    beta: { added: {}, removed: new Set(["beta", "vip"]) },
    default: { added: { trial: "Try it" }, removed: new Set<string>() },
  },
  auto: ["beta", "vip", "gone", "default", "auto"],
  ratios: { default: 1, vip: 1, beta: 1, trial: 1, other: 1 },
};

test.each([
  ["other", { default: "Everybody", vip: "Fast", other: OWN_GROUP_DESCRIPTION }, ["vip", "default"]],
  ["vip", { vip: "Yours", beta: "New" }, ["beta", "vip"]],
  // The own group cannot be taken away.
  ["beta", { default: "Everybody", beta: OWN_GROUP_DESCRIPTION }, ["beta", "default"]],
  ["default", { default: "Everybody", vip: "Fast", trial: "Try it" }, ["vip", "default"]],
  // A guest sees what users of "default" see, and has no group of its own.
  [undefined, { default: "Everybody", vip: "Fast", trial: "Try it" }, ["vip", "default"]],
])("users of %s may use", (userGroup, usable, auto) => {
  const choices = choicesOf(GROUPS, userGroup);
  expect(Object.fromEntries(choices.usable)).toEqual(usable);
  expect(choices.auto).toEqual(auto);
});

test("a guest gets no group of its own where none is open", () => {
  const closed = { ...GROUPS, usable: {}, special: {} };
  expect([...choicesOf(closed, undefined).usable]).toEqual([]);
  expect([...choicesOf(closed, "default").usable.keys()]).toEqual(["default"]);
});

test("a key's own list: trimmed, without empty and repeated names", () => {
  expect(autoGroupsOf(" vip, default,,vip ,")).toEqual(["vip", "default"]);
  expect(autoGroupsOf("")).toEqual([]);
});
