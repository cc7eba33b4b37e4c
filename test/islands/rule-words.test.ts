// Price rules and plan warnings in words: every condition, price and warning has a sentence in both languages, with its numbers.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { addTexts, translatorOf } from "../../islands/lib/i18n.ts";
import { warningText } from "../../islands/lib/price-words.ts";
import {
  appliedText,
  conditionText,
  otherTierText,
  ruleText,
  ruleTexts,
} from "../../islands/lib/rule-words.ts";
import type { RuleFacts } from "../../islands/lib/rule-words.ts";
import { shippedPrices } from "../../src/core/prices/shipped.ts";
import { LANGUAGES } from "../../src/shared/enums.ts";
import type { Language } from "../../src/shared/enums.ts";
import { readPriceRow, TOKEN_KINDS, WEEK_DAYS } from "../../src/shared/price-row.ts";
import type { PriceCondition, PriceRow, PriceRule } from "../../src/shared/price-row.ts";
import { PRICE_WARNINGS } from "../../src/shared/price-warnings.ts";
import type { PriceWarning } from "../../src/shared/price-warnings.ts";

for (const language of LANGUAGES) {
  for (const area of ["rule", "log"]) {
    const path = join(import.meta.dir, "../../locales", language, `${area}.json`);
    const texts = JSON.parse(readFileSync(path, "utf8")) as Record<string, string>;
    addTexts(
      language,
      Object.fromEntries(Object.entries(texts).map(([key, text]) => [`${area}.${key}`, text])),
    );
  }
}
const en = translatorOf("en");
const zh = translatorOf("zh");

/** Neither the name of a text that is missing nor a hole that nobody filled; no Chinese where English was asked for. */
function expectWhole(text: string, language: Language): void {
  expect(text).not.toMatch(/\b(rule|log)\.[a-z]|\{\{|undefined|NaN/);
  if (language === "en") expect(text).not.toMatch(/[\u3000-\u9fff\uff00-\uff60]/);
}

const RULES: [PriceRule, string, string][] = [
  [
    { over: 272_000, set: { in: 5, out: 22.5, cache_read: 0.5 } },
    "Input over 272,000 tokens: the whole call at input $5.00 / 1M, output $22.50 / 1M, cached input $0.50 / 1M",
    "输入超过 272,000 个 token：整次调用按输入 $5.00 / 1M、输出 $22.50 / 1M、缓存命中 $0.50 / 1M 计费",
  ],
  [
    { tier: ["flex", "batch"], times: 0.5 },
    "Service tier flex or batch: 0.5× the price",
    "服务等级 flex 或 batch：价格 × 0.5",
  ],
  [
    { hours: ["01:00-04:00", "22:00-00:30"], tz: "Asia/Shanghai", set: { in: 1.32 } },
    "Daily 01:00–04:00 and 22:00–00:30 the next day (Asia/Shanghai): input $1.32 / 1M",
    "每天 01:00–04:00、22:00–次日 00:30（Asia/Shanghai）：输入 $1.32 / 1M",
  ],
  [
    { hours: ["20:00-24:00"], days: ["sun", "mon", "tue", "wed"], times: 0 },
    "Mon–Wed and Sun 20:00–24:00 (UTC): free",
    "周一至周三、周日 20:00–24:00（UTC）：免费",
  ],
  [
    { days: ["sat", "sun"], times: 1.5, set: { call: 0.1 } },
    "On Sat and Sun (UTC): $0.10 per image, then 1.5×",
    "周六、周日（UTC）：$0.10 / 张，再乘以 1.5",
  ],
  [
    { from: "2026-12-01", until: "2027-01-01T08:00+08:00", size: "1024x1792", quality: "hd", times: 2 },
    "Size 1024x1792, quality hd, from 2026-12-01 00:00 UTC, until 2027-01-01 08:00 UTC+08:00: 2× the price",
    "尺寸 1024x1792，质量 hd，自 2026-12-01 00:00 UTC 起，至 2027-01-01 08:00 UTC+08:00 止：价格 × 2",
  ],
];

test.each(RULES)("%j", (rule, english, chinese) => {
  expect(readPriceRow({ when: [rule] }).problem).toBeUndefined();
  expect(ruleText(en, rule, { unit: "image" })).toBe(english);
  expect(ruleText(zh, rule, { unit: "image" })).toBe(chinese);
});

test("prices are exact, and those of the group", () => {
  const rule: PriceRule = { over: 1, set: { in: 1.375, out: 0.0000004 } };
  expect(ruleText(en, rule)).toContain("input $1.375 / 1M, output <$0.000001 / 1M");
  expect(ruleText(en, rule, { groupRatio: 2 })).toContain("input $2.75 / 1M");
});

test.each([...LANGUAGES])("every kind, unit, day, tool and condition has words in %s", (language) => {
  const t = translatorOf(language);
  const all: PriceCondition = {
    over: 1,
    tier: "a",
    size: "b",
    quality: "c",
    hours: ["01:00-02:00"],
    days: ["mon"],
    from: "2026-01-01",
    until: "2026-01-02T00:00:00Z",
  };
  const set = Object.fromEntries(TOKEN_KINDS.map((kind, at) => [kind, at + 1]));
  const facts: RuleFacts = { input: 5, startMs: 0, servedTier: "a", askedTier: "b" };
  const row: PriceRow = {
    tools: { web_search: 1, file_search: 2, maps: 3 },
    when: [{ ...all, set, times: 2 }],
  };
  const texts = [
    ...ruleTexts(t, row),
    ...(["call", "image", "second", "page", "kchar"] as const).flatMap((unit) =>
      ruleTexts(t, { unit, when: [{ size: "x", set: { call: 1 } }] }),
    ),
    ...WEEK_DAYS.map((day) => conditionText(t, { days: [day] })),
    ...Object.entries(all).flatMap(([name, value]) => [
      conditionText(t, { [name]: value as never }),
      appliedText(t, { [name]: value as never }, facts),
      appliedText(t, { [name]: value as never }, { input: 5, startMs: 0 }),
    ]),
    otherTierText(t, facts),
  ];
  for (const text of texts) expectWhole(text, language);
  // As many different ones: no text stands for two.
  expect(new Set(texts.slice(0, -1)).size).toBeGreaterThan(30);
});

test("every rule of the shipped table has its sentences", () => {
  const rows = [...shippedPrices().rows.values()].filter(({ when, tools }) => when ?? tools);
  expect(rows.length).toBeGreaterThan(20);
  for (const language of LANGUAGES)
    for (const row of rows)
      for (const text of ruleTexts(translatorOf(language), row)) expectWhole(text, language);
});

test("why a rule acted: length, moment, tier", () => {
  const facts: RuleFacts = { input: 272_001, startMs: Date.UTC(2026, 10, 20, 3, 30) };
  expect(appliedText(en, { over: 272_000 }, facts)).toBe(
    "Rule: input 272,001 is over 272,000, long-context prices for the whole call",
  );
  expect(appliedText(zh, { over: 272_000 }, facts)).toBe("规则：输入 272,001 > 272,000，全部按长上下文价");
  const hours: PriceCondition = { hours: ["01:00-04:00"], tz: "UTC" };
  expect(appliedText(en, hours, facts)).toBe(
    "Rule: began at 2026-11-20 03:30 (UTC), within: daily 01:00–04:00 (UTC), prices of that time",
  );
  expect(appliedText(zh, { ...hours, tz: "Asia/Shanghai" }, facts)).toStartWith(
    "规则：开始于 2026-11-20 11:30（Asia/Shanghai）",
  );
  const flex = { ...facts, askedTier: "flex" };
  expect(appliedText(en, { tier: ["flex", "batch"] }, flex)).toBe(
    "Rule: service tier flex was asked for, prices of that tier",
  );
  expect(appliedText(en, { tier: "priority" }, { ...flex, servedTier: "priority" })).toContain(
    "service tier priority was served",
  );
  expect(otherTierText(en, { ...flex, servedTier: "default" })).toBe(
    "Service tier flex was asked for, default was served",
  );
  expect([otherTierText(en, flex), otherTierText(en, { ...flex, servedTier: "flex" })]).toEqual(["", ""]);
});

const WARNINGS: Record<PriceWarning["code"], Partial<PriceWarning>[]> = {
  price_doubled: [
    { params: { kind: "output", before: 2, after: 5 } },
    { key: "GroupRatio", name: "vip", params: { before: 1, after: 3 } },
    { key: "TopupGroupRatio", name: "vip", params: { before: 1, after: 3 } },
    { key: "Price", name: "", params: { before: 7.3, after: 73 } },
    { key: "QuotaPerUnit", name: "", params: { before: 500_000, after: 5_000_000 } },
  ],
  price_halved: [{ params: { kind: "per_call", before: 1, after: 0.1 } }],
  price_free: [{ params: { kind: "fresh", before: 1, after: 0 } }],
  price_no_longer_free: [{ params: { kind: "cache_write_5m", before: 0, after: 1.25 } }],
  price_unit_changed: [{ params: {} }],
  price_looks_unset: [{ params: { ratio: 37.5 } }],
  price_removed: [{ params: { calls: 0 } }, { params: { calls: 1 } }, { params: { calls: 1200 } }],
  group_in_use: [
    { key: "GroupRatio", name: "vip", params: { users: 3, keys: 2, channels: 1, options: "" } },
    {
      key: "GroupRatio",
      name: "vip",
      params: { users: 3, keys: 2, channels: 1, options: "UserUsableGroups" },
    },
  ],
  changed_since_draft: [{ key: "ModelRatio", params: { before: "1", after: "2" } }],
};

test.each([...PRICE_WARNINGS])("the warning %s is a sentence with its values", (code) => {
  for (const given of WARNINGS[code]) {
    const warning: PriceWarning = { code, key: "", name: "gpt-5.4", params: {}, ...given };
    for (const language of LANGUAGES) {
      const text = warningText(translatorOf(language), warning);
      expectWhole(text, language);
      for (const [param, value] of [["name", warning.name] as const, ...Object.entries(warning.params)]) {
        if (param === "kind" || value === 0 || value === "") continue;
        const digits = typeof value === "number" ? value.toLocaleString("en-US") : value;
        expect(text).toContain(code === "price_free" && param === "after" ? "" : digits);
      }
    }
  }
});

test("what a warning says, in both languages", () => {
  const doubled: PriceWarning = {
    code: "price_doubled",
    key: "",
    name: "gpt-5.4",
    params: { kind: "output", before: 15, after: 45 },
  };
  expect(warningText(en, doubled)).toBe("gpt-5.4: Output rises from $15.00 to $45.00, more than double");
  expect(warningText(zh, doubled)).toBe("gpt-5.4：输出由 $15.00 涨至 $45.00，超过一倍");
  const when = JSON.stringify({ over: 272_000 });
  const tier: PriceWarning = { ...doubled, params: { kind: "in", when, before: 5, after: 50 } };
  expect(warningText(en, tier)).toBe(
    "gpt-5.4: input (Input over 272,000 tokens) rises from $5.00 to $50.00, more than double",
  );
  const tool: PriceWarning = {
    ...doubled,
    params: { kind: "tool", tool: "web_search", before: 5, after: 50 },
  };
  expect(warningText(en, tool)).toBe("gpt-5.4: Web search rises from $5.00 to $50.00, more than double");
  expect(warningText(en, { ...tool, key: "ToolPrices", name: "file_search" })).toStartWith(
    "File search rises",
  );
  const group: PriceWarning = { ...doubled, key: "GroupRatio", name: "vip", params: { before: 1, after: 3 } };
  expect(warningText(en, group)).toBe("vip: group ratio rises from 1 to 3, more than double");
});
