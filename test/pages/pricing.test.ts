// The price list as it leaves the server, without a script: who sees whose prices, what is found, what a model costs and why,
// and that 20,000 models make no larger page.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { eq } from "drizzle-orm";
import { priceText } from "../../islands/lib/rule-words.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";

let app: TestApp;
let ada: TestUser;
let vera: TestUser;
let bold: TestUser;

beforeAll(async () => {
  app = await startTestApp();
  const { options, db } = app.deps;
  await db.orm.insert(db.t.setups).values({ version: "test", initializedAt: 1 });
  ada = await app.createUser({ username: "ada" });
  vera = await app.createUser({ username: "vera", group: "inner" });
  bold = await app.createUser({ username: "bold" });
  await db.orm
    .update(db.t.users)
    .set({ setting: '{"accept_unset_model_ratio_model":true}' })
    .where(eq(db.t.users.id, bold.id));
  await app.deps.accounts.userChanged(bold.id);
  await options.set("GroupRatio", '{"default":1,"vip":0.5,"dear":6,"inner":2}');
  await options.set("UserUsableGroups", '{"default":"默认分组","vip":"Members","dear":"Quick"}');
  await options.set("ModelRatio", '{"gpt-4o":1.25,"claude-x":1.5,"secret-x":1}');
  await options.set("ModelPrice", '{"mj-draw":0.1}');
  await options.set("CompletionRatio", '{"gpt-4o":4,"claude-x":5}');
  await options.set("CacheRatio", '{"gpt-4o":0.5}');
  await app.createChannel({ models: "gpt-4o,claude-x,mj-draw,new-model", group: "default" });
  await app.createChannel({ models: "gpt-4o,vip-only", group: "vip" });
  await app.createChannel({ models: "gpt-4o", group: "dear" });
  await app.createChannel({ models: "secret-x", group: "inner" });
});
afterAll(() => app.close());

async function open(path: string, as?: TestUser, language = "en"): Promise<string> {
  const answer = await fetch(app.url + path, {
    headers: { cookie: as?.headers["cookie"] ?? "", "accept-language": language },
  });
  expect(answer.status).toBe(200);
  return await answer.text();
}

/** Words of a piece of markup, tags and comments left out. */
const wordsOf = (html: string) =>
  html
    .replaceAll(/<!--.*?-->/gs, "")
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll("&quot;", '"')
    .replaceAll("&#x27;", "'")
    .replaceAll(/\s+/g, " ")
    .trim();
const part = (html: string, name: string) =>
  wordsOf(new RegExp(`data-part="${name}".*?>(.*?)</(?:section|div)>`, "s").exec(html)?.[1] ?? "");
/** Each row as its words. */
const rowsOf = (html: string) => [...html.matchAll(/<tr data-index.*?<\/tr>/gs)].map(([row]) => wordsOf(row));
const rowOf = (html: string, model: string) => rowsOf(html).find((row) => row.startsWith(model)) ?? "";

describe("whose prices", () => {
  test("a guest sees those of the default group, a warning that says so, and the way in", async () => {
    const html = await open("/pricing");
    expect(part(html, "pricing-banner")).toContain(
      "You are not signed in: these are the prices of the default group",
    );
    expect(html).toContain(`href="/login?next=%2Fpricing"`);
    expect(rowOf(html, "gpt-4o")).toContain("$2.50 $10.00 $1.25");
    expect(html).toContain(`data-tone="warning"`);
  });

  test("who is signed in sees those of the own group, and what it alone may call", async () => {
    const html = await open("/pricing", vera);
    expect(part(html, "pricing-banner")).toContain("These are the prices of the inner group (ratio 2)");
    expect(rowOf(html, "secret-x")).toContain("$4.00 $4.00");
    expect(rowOf(html, "secret-x")).toContain("Available");
    expect(await open("/pricing", ada)).not.toContain("secret-x");
    expect(await open("/pricing?model=secret-x", ada)).toContain("There is no model called secret-x");
  });

  test("a chosen group's ratio is in every price; one that the visitor may not use counts as not chosen", async () => {
    const html = await open("/pricing?group=vip");
    expect(part(html, "pricing-banner")).toContain("vip group (ratio 0.5)");
    expect(rowOf(html, "gpt-4o")).toContain("$1.25 $5.00 $0.625");
    const refused = await open("/pricing?group=inner");
    expect(part(refused, "pricing-banner")).toContain("default group (ratio 1)");
    // Links to the other groups, each with its ratio; the dear one stands out.
    expect(rowOf(html, "gpt-4o")).toEndWith("vip 0.5× dear 6× default 1×");
    expect(html).toMatch(/data-tone="error"[^>]*>6×/);
  });

  test("the formula names the units that a dollar has on this site", async () => {
    expect(part(await open("/pricing"), "pricing-banner")).toContain("÷ 500,000 dollars");
    await app.deps.options.set("QuotaPerUnit", "1000000");
    const html = await open("/pricing");
    expect(part(html, "pricing-banner")).toContain("÷ 1,000,000 dollars");
    expect(rowOf(html, "gpt-4o")).toContain("$1.25 $5.00");
    await app.deps.options.set("QuotaPerUnit", "500000");
  });
});

describe("what is sold", () => {
  test("a model without a price is not available, but where that is accepted", async () => {
    const guest = await open("/pricing");
    expect(rowOf(guest, "new-model")).toContain("No price, not available");
    expect(rowOf(guest, "new-model")).not.toContain("$");
    expect(rowOf(await open("/pricing", bold), "new-model")).toContain("Available, no price set");
    await app.deps.options.set("SelfUseModeEnabled", "true");
    expect(rowOf(await open("/pricing"), "new-model")).toContain("$75.00");
    await app.deps.options.set("SelfUseModeEnabled", "false");
  });

  test("what the group cannot call stands behind what it can", async () => {
    const rows = rowsOf(await open("/pricing")).map((row) => row.split(" ")[0]);
    expect(rows).toEqual(["gpt-4o", "claude-x", "mj-draw", "new-model", "vip-only"]);
    expect(rowOf(await open("/pricing?group=dear"), "claude-x")).toContain("Other groups only");
  });

  test("search, kind, maker and availability narrow it, and the form keeps them", async () => {
    const names = async (query: string) =>
      rowsOf(await open(`/pricing?${query}`)).map((row) => row.split(" ")[0]);
    expect(await names("keyword=GPT")).toEqual(["gpt-4o"]);
    expect(await names("quota_type=1")).toEqual(["mj-draw"]);
    expect(await names("vendor=anthropic")).toEqual(["claude-x"]);
    expect(await names("available=1")).toEqual(["gpt-4o", "claude-x", "mj-draw"]);
    const none = await open("/pricing?keyword=nothing-like-it");
    expect(none).toContain("No model matches.");
    expect(none).toContain(`value="nothing-like-it"`);
    const html = await open("/pricing?vendor=anthropic&quota_type=0&unit=ratio");
    expect(html).toContain(`<option value="anthropic" selected="">Anthropic (1)</option>`);
    expect(html).toContain(`<option value="0" selected="">`);
    expect(html).toContain(`<input type="hidden" name="unit" value="ratio"/>`);
    expect(rowOf(html, "claude-x")).toContain("1.5× 5×");
  });

  test("what an administrator tells of a model stands in its row and above the list, with its end", async () => {
    const root = await app.createUser({ username: "owner", role: 100 });
    const until = Math.floor(app.deps.clock.nowMs() / 1000) + 3600;
    await app.call(
      "POST",
      "/api/model_notice/",
      { models: ["claude-x"], channels: [], text: "Slow today", until },
      root,
    );
    const html = await open("/pricing");
    expect(html).toMatch(/aria-label="Notices about models".*claude-x.*Slow today.*until 20\d\d-/s);
    expect(rowOf(html, "claude-x")).toContain("Slow today");
    expect(rowOf(html, "gpt-4o")).not.toContain("Slow today");
    expect(await open("/pricing?model=claude-x")).toContain("Slow today");
    expect(await open("/pricing?model=gpt-4o")).not.toContain("Slow today");
  });
});

describe("what a call costs", () => {
  test("the list has a column for a call of that size, as it would be charged", async () => {
    const html = await open("/pricing?input=1M&output=200k&group=vip");
    expect(html).toContain("Your call");
    expect(rowOf(html, "gpt-4o")).toContain("Per token $2.25 $1.25 $5.00");
    expect(rowOf(await open("/pricing?input=1"), "mj-draw")).toContain("Per call $0.10");
    expect(await open("/pricing")).not.toContain("Your call");
  });

  test("a model's details explain it with numbers, as a log row does", async () => {
    const html = await open("/pricing?model=gpt-4o&group=vip&input=1000000&output=200000&cached=400000");
    expect(html).toContain("<title>gpt-4o · Weir</title>");
    const sum = wordsOf(
      /data-part="pricing-sum".*?<\/form>|data-part="pricing-sum"(.*?)<\/section>/s.exec(html)?.[1] ?? "",
    );
    expect(sum).toContain("Input 600,000 × $2.50 / 1M = $1.50");
    expect(sum).toContain("Cached input 400,000 × $1.25 / 1M = $0.50");
    expect(sum).toContain("Output 200,000 × $10.00 / 1M = $2.00");
    expect(sum).toContain("Group ratio 0.5×: −$2.00");
    expect(sum).toContain("Total $2.00");
    expect(sum).toContain("0.5 × 1.25 × (600,000 + 400,000 × 0.5 + 200,000 × 4) ÷ 500,000 = $2.00");
  });

  test("without numbers an example stands there; a price per call needs none", async () => {
    expect(await open("/pricing?model=gpt-4o")).toContain(
      "1 × 1.25 × (1,000,000 + 200,000 × 4) ÷ 500,000 = $4.50",
    );
    const html = wordsOf(await open("/pricing?model=mj-draw&group=default"));
    expect(html).toContain("Fixed price $0.10 per call");
    expect(html).toContain("Total $0.10");
    expect(html).not.toContain("Input tokens");
  });

  test("every group that sells it has its prices, those that do not are named", async () => {
    const table = wordsOf(
      /data-part="pricing-groups"(.*?)<\/table>/s.exec(await open("/pricing?model=claude-x"))?.[1] ?? "",
    );
    expect(table).toContain("1× $3.00 $15.00");
    expect(table).toContain("vip Members 0.5× Not offered Not offered");
  });

  test("prices that depend on the call are sentences, in the group's prices, and the calculator obeys them", async () => {
    const { options } = app.deps;
    await options.set("ModelRatio", '{"gpt-4o":1.25,"claude-x":1.5,"secret-x":1,"long-x":1.25}');
    const long = await app.createChannel({ models: "long-x", group: "default,vip" });
    const when = [
      { over: 272_000, set: { in: 5, out: 22.5 } },
      { tier: ["flex", "batch"], times: 0.5 },
    ];
    await options.set("PriceRules", JSON.stringify({ "long-x": { when, tools: { maps: 3 } } }));
    const html = await open("/pricing?model=long-x&input=272,001&output=0");
    const facts = wordsOf(html);
    expect(facts).toContain(
      "Prices that depend on the call Input over 272,000 tokens: the whole call at input $5.00 / 1M, output $22.50 / 1M",
    );
    expect(facts).toContain("Service tier flex or batch: 0.5× the price");
    expect(facts).toContain("maps $3.00 per 1K calls");
    expect(facts).toContain("Input 272,001 × $5.00 / 1M = $1.360005");
    expect(facts).toContain(
      "Rule: input 272,001 is over 272,000, long-context prices for the whole call Total $1.360006",
    );
    expect(wordsOf(await open("/pricing?model=long-x&input=272,000"))).toContain(
      "Input 272,000 × $2.50 / 1M = $0.68",
    );
    const half = wordsOf(await open("/pricing?model=long-x&group=vip", ada));
    expect(half).toContain("the whole call at input $2.50 / 1M, output $11.25 / 1M");
    // The list's column of a call obeys them, too.
    expect(rowOf(await open("/pricing?input=272,001"), "long-x")).toContain("$1.360006");
    expect(wordsOf(await open("/pricing?model=gpt-4o"))).not.toContain("Prices that depend on the call");
    await options.set("PriceRules", '{"long-x":{"unit":"second"}}');
    await options.set("ModelPrice", '{"mj-draw":0.1,"long-x":0.3}');
    expect(wordsOf(await open("/pricing?model=long-x"))).toContain("$0.30 per second");
    await options.set("PriceRules", "{}");
    await options.set("ModelPrice", '{"mj-draw":0.1}');
    await app.deps.db.orm.delete(app.deps.db.t.channels).where(eq(app.deps.db.t.channels.id, long));
    await app.deps.routing.reload();
  });

  test("the example call carries the server's address and survives any name", async () => {
    const odd = `o'dd"na$(me)`;
    await app.createChannel({ models: odd, group: "default" });
    const html = await open(`/pricing?model=${encodeURIComponent(odd)}`);
    const sample = wordsOf(/id="pricing-sample".*?<code>(.*?)<\/code>/s.exec(html)?.[1] ?? "");
    expect(sample).toContain(`${app.url}/v1/chat/completions`);
    const body = /-d ('.*')$/.exec(sample)?.[1] ?? "";
    const said = Bun.spawnSync(["sh", "-c", `printf %s ${body}`]).stdout.toString();
    expect((JSON.parse(said) as { model: string }).model).toBe(odd);
  });
});

test("a price is written to its last decimal", () => {
  const texts = [0, 2.5, 0.15, 0.0675, 3.125, 0.000001, 0.0000001, 1234.5].map(priceText);
  expect(texts).toEqual([
    "$0",
    "$2.50",
    "$0.15",
    "$0.0675",
    "$3.125",
    "$0.000001",
    "<$0.000001",
    "$1,234.50",
  ]);
});

test("a name that looks like markup stays a name, in the list and in its details", async () => {
  const nasty = `<img src=x onerror="pwned=1">`;
  await app.createChannel({ models: nasty, group: "default" });
  for (const path of ["/pricing?keyword=onerror", `/pricing?model=${encodeURIComponent(nasty)}`]) {
    const html = await open(path);
    expect(html).toContain("&lt;img src=x onerror=");
    expect(html).not.toContain("<img src=x");
  }
});

test("Chinese readers are told in Chinese", async () => {
  const html = await open("/pricing?model=gpt-4o", undefined, "zh");
  expect(html).toContain("您尚未登录，以下为 default 分组的价格（倍率 1）");
  expect(wordsOf(html)).toContain("输入 1,000,000 × $2.50 / 1M = $2.50");
});

test("20,000 models: every page comes with rows, below 60 KB gzipped, and their search is quick", async () => {
  const models = Array.from({ length: 20_000 }, (_, index) => `maker-${index % 40}/model-number-${index}`);
  await app.deps.options.set(
    "ModelRatio",
    JSON.stringify(Object.fromEntries(models.map((name) => [name, 1.5]))),
  );
  const large = await app.createChannel({ models: models.join(), group: "default,vip" });
  for (const query of [
    "",
    "page_size=100",
    "page_size=100&p=200&input=1M&output=1M",
    "keyword=number-199&unit=ratio",
  ]) {
    const html = await open(`/pricing?${query}`);
    expect(rowsOf(html).length).toBe(query.includes("page_size=100") ? 100 : 10);
    expect([query, gzipSync(html).byteLength < 60 * 1024]).toEqual([query, true]);
  }
  // The last page of a list that is shorter than the address says.
  const last = await open("/pricing?p=99999");
  expect(last).toContain(`aria-current="page">2,001<`);
  // The quickest of ten says what the work is; the others, what else the machine does.
  const times: number[] = [];
  for (let call = 0; call < 10; call++) {
    const before = performance.now();
    await open(`/pricing?keyword=number-${call}`);
    times.push(performance.now() - before);
  }
  expect(Math.min(...times)).toBeLessThan(300);
  await app.deps.db.orm.delete(app.deps.db.t.channels).where(eq(app.deps.db.t.channels.id, large));
  await app.deps.routing.refresh([large]);
});
