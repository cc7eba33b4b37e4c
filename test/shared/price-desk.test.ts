// Which models a view of the sheet holds, and in which order: the server's first rows and the browser's sheet agree.
import { expect, test } from "bun:test";
import { isInView, modelQuestion, modelsShown, usedNames } from "../../src/shared/price-desk.ts";
import type { ModelFacts } from "../../src/shared/price-desk.ts";

const FACTS: ModelFacts = {
  billingOf: (name) => (name.startsWith("song") ? "call" : name.startsWith("new") ? undefined : "tokens"),
  isChanged: (name) => name === "zeta",
  makerOf: (name) => (name === "alpha" ? "OpenAI" : ""),
  used: new Set(["zeta", "new-a"]),
};
const NAMES = ["zeta", "alpha", "song", "new-a", "new-unused", "alpha"];

test.each([
  [{}, ["new-a", "zeta", "alpha", "new-unused", "song"]],
  [{ view: "used" }, ["new-a", "zeta"]],
  // Nobody can call what no channel serves: it misses no price.
  [{ view: "unpriced" }, ["new-a"]],
  [{ view: "changed" }, ["zeta"]],
  [{ view: "nonsense", billing: "nonsense" }, ["new-a", "zeta", "alpha", "new-unused", "song"]],
  [{ billing: "call" }, ["song"]],
  [{ billing: "tokens" }, ["zeta", "alpha"]],
  [{ q: " OPENAI  alp " }, ["alpha"]],
  [{ q: "new", view: "used" }, ["new-a"]],
] as const)("%j shows %j", (query, shown) => {
  expect(modelsShown(NAMES, modelQuestion(query), FACTS)).toEqual([...shown]);
});

test("custom GPTs are one name, as they are priced", () => {
  const served = ["gpt-4-gizmo-g-1", "gpt-4-gizmo-g-2", "o3"].map((name) => ({ name }));
  expect([...usedNames(served)]).toEqual(["gpt-4-gizmo-*", "o3"]);
});

test("every name belongs to all, and to others as it is", () => {
  const views = (name: string) =>
    (["all", "unpriced", "changed", "used"] as const).filter((view) => isInView(name, view, FACTS));
  expect([views("zeta"), views("new-a"), views("song")]).toEqual([
    ["all", "changed", "used"],
    ["all", "unpriced", "used"],
    ["all"],
  ]);
});
