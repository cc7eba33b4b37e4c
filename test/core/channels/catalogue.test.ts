// What a visitor finds in the catalogue: nothing that none of their groups may call, what they can buy first, and counts
// that tell how many models each maker has left.
import { describe, expect, test } from "bun:test";
import { searchCatalogue } from "../../../src/core/channels/catalogue.ts";
import type {
  Buyer,
  Catalogue,
  CatalogueModel,
  CatalogueSearch,
} from "../../../src/core/channels/catalogue.ts";
import type { ModelPricing } from "../../../src/core/prices/prices.ts";

/** Only whether there is a price, and of which kind, matters here. */
const TOKENS = { callPrice: undefined, modelRatio: 1 } as ModelPricing;
const CALL = { callPrice: 0.1, modelRatio: 0 } as ModelPricing;
const PRICES: Readonly<Record<string, ModelPricing>> = {
  "gpt-a": TOKENS,
  "gpt-b": TOKENS,
  "claude-a": TOKENS,
  "mj-draw": CALL,
  "zeta/free": TOKENS,
};

const row = (name: string, vendor: string, ...groups: string[]): CatalogueModel => ({
  name,
  vendor,
  groups,
  pricing: PRICES[name],
});

const MODELS = [
  row("gpt-a", "openai", "default", "vip"),
  row("gpt-b", "openai", "vip"),
  row("claude-a", "anthropic", "default"),
  row("mj-draw", "midjourney", "default"),
  row("new-model", "", "default"),
  row("secret", "inner-lab", "inner"),
  row("zeta/free", "zeta", "default"),
];
const catalogue: Catalogue = {
  models: () => MODELS,
  model: (name) => MODELS.find((each) => each.name === name),
};
const BUYER: Buyer = {
  ownGroup: "default",
  groups: { default: { ratio: 1, desc: "" }, vip: { ratio: 0.5, desc: "" } },
  acceptsUnpriced: false,
};

function find(search: Partial<CatalogueSearch> = {}, buyer: Partial<Buyer> = {}) {
  const answer = searchCatalogue(
    catalogue,
    { ...BUYER, ...buyer },
    {
      group: "default",
      keyword: "",
      vendor: "",
      kind: undefined,
      onlyAvailable: false,
      offset: 0,
      limit: 10,
      ...search,
    },
  );
  return {
    ...answer,
    names: answer.hits.map(({ model, isAvailable }) => `${isAvailable ? "+" : "-"} ${model.name}`),
  };
}

describe("searching the catalogue", () => {
  test("what the group can call comes first; what no group of the visitor may call is not told", () => {
    expect(find().names).toEqual([
      "+ gpt-a",
      "+ claude-a",
      "+ mj-draw",
      "+ zeta/free",
      "- gpt-b",
      "- new-model",
    ]);
    expect(find({ keyword: "secret" })).toMatchObject({ hits: [], total: 0, vendors: [] });
    expect(find({ keyword: "secret" }, { groups: { inner: { ratio: 2, desc: "" } } }).names).toEqual([
      "- secret",
    ]);
  });

  test("another group has other models available", () => {
    expect(find({ group: "vip" }).names.slice(0, 3)).toEqual(["+ gpt-a", "+ gpt-b", "- claude-a"]);
  });

  test("a model without a price is available to those alone who accept that", () => {
    expect(find({ keyword: "new-model" }).names).toEqual(["- new-model"]);
    expect(find({ keyword: "new-model" }, { acceptsUnpriced: true }).names).toEqual(["+ new-model"]);
  });

  test("a part of the name in any case, the kind, the maker and availability narrow it together", () => {
    expect(find({ keyword: " PT- " }).names).toEqual(["+ gpt-a", "- gpt-b"]);
    expect(find({ kind: "call" }).names).toEqual(["+ mj-draw"]);
    expect(find({ kind: "tokens" }).names).not.toContain("- new-model");
    expect(find({ vendor: "openai" }).names).toEqual(["+ gpt-a", "- gpt-b"]);
    expect(find({ vendor: "openai", onlyAvailable: true }).names).toEqual(["+ gpt-a"]);
  });

  test("makers are counted over what the other filters leave, whichever of them is chosen", () => {
    const counts = [
      ["openai", 2],
      ["", 1],
      ["anthropic", 1],
      ["midjourney", 1],
      ["zeta", 1],
    ];
    expect(find().vendors).toEqual(counts as [string, number][]);
    expect(find({ vendor: "zeta" }).vendors).toEqual(counts as [string, number][]);
    expect(find({ onlyAvailable: true, keyword: "gpt" }).vendors).toEqual([["openai", 1]]);
  });

  test("a page is a piece of the whole answer, and the total counts all of it", () => {
    const pages = [0, 2, 4, 6].map((offset) => find({ offset, limit: 2 }));
    expect(pages.flatMap(({ names }) => names)).toEqual(find().names);
    expect(pages.map(({ total }) => total)).toEqual([6, 6, 6, 6]);
  });
});
