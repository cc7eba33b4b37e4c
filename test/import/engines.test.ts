// One old site in three engines is one site: the same rows carried, the same findings, the same openings, and nothing written
// to where it stands. MariaDB and PostgreSQL are real servers.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { parseSource } from "../../src/import/dsn.ts";
import type { ImportReport } from "../../src/import/report.ts";
import { FINDINGS } from "../../src/import/findings.ts";
import { runImport } from "../../src/import/run.ts";
import { openSource } from "../../src/import/source.ts";
import { FAMILIES } from "./fixtures/schemas.ts";
import type { FixtureFamily } from "./fixtures/schemas.ts";
import { createFixture } from "./fixtures/sources.ts";
import type { FixtureSource } from "./fixtures/sources.ts";
import { ENGINES } from "./fixtures/types.ts";

const NOW = 1_790_000_000;

/** What of the awkward rows a person must hear, as `code table samples`; those of the accounts are every family's. */
const EVERYWHERE = [
  "option_unknown options SomethingOfAFork",
  "option_refused options QuotaForNewUser",
  "mail_key_taken users 3",
  "name_key_taken users 6 (ａlice)",
  "identity_taken users 6 (github)",
  "user_gone tokens 3",
  "capped tokens 6 (used_quota)|6 (remain_quota)",
  "broken_json channels 3 (model_mapping)",
  "capped channels 8",
  "ability_lost abilities 1: default/rebuilt-nowhere",
  "log_without_user logs 22",
];
const LATER = [
  "notify_kind users 7 (bark)",
  "channel_fork_type channels 2 (9999)|6 (58)",
  "order_trade_no top_ups 2 (T1#2)|3 (#3)",
  "order_expired top_ups 4",
  "user_gone top_ups 5",
  "task_platform_open tasks 2 (9999)",
  "log_imported_type logs 21 (2)|25 (6)",
  "broken_json logs 27",
];
const FOUND: Readonly<Record<FixtureFamily, readonly string[]>> = {
  "one-api": [
    "lark users 7",
    "capped users 8 (quota)",
    "channel_type channels 2 (9999)|6 (38)",
    "log_imported_type logs 21 (2)|25 (5)",
  ],
  "new-api": [...LATER, "key_dash tokens 9"],
  "new-api-v1": [
    ...LATER,
    "key_dash tokens 8|9",
    "auto_next_group tokens 7",
    "broken_json tokens 8",
    "plan_off subscription_plans 2",
    "plan_unlimited subscription_plans 3",
    "plan_unlimited_holder user_subscriptions 3 (7)",
    "totp_unusable two_fas 7",
    "admin_denied users 7",
    "channel_keys_off channels 10 (1)",
    "channel_key_states channels 10",
  ],
};

describe.each(FAMILIES)("a site of %s", (family) => {
  const reports = new Map<string, ImportReport>();
  const sources: FixtureSource[] = [];

  beforeAll(async () => {
    for (const engine of ENGINES) {
      const fixture = await createFixture(engine, {
        family,
        upstream: "https://up.example/v1",
        now: NOW - 60,
      });
      sources.push(fixture);
      const before = await fixture.digest();
      const source = await openSource(parseSource(fixture.address));
      const report = await runImport({
        source,
        into: undefined,
        settings: {
          isDry: true,
          part: "all",
          logDays: 0,
          unlimitedPlanQuota: undefined,
          optionTexts: undefined,
        },
        clock: { nowMs: () => NOW * 1000, monotonicMs: () => performance.now() },
        onProgress: () => undefined,
      });
      await source.close();
      reports.set(engine, report);
      expect(await fixture.digest()).toBe(before);
    }
  });
  afterAll(async () => {
    for (const source of sources) await source.drop();
  });

  test.each(ENGINES)("%s: is told for what it is, with everything that needs a person", (engine) => {
    const report = reports.get(engine);
    expect(report).toMatchObject({ family, engine, isDry: true });
    // Notes ask nothing of anybody.
    const found = (report?.findings ?? [])
      .filter(({ code }) => FINDINGS[code] !== "note")
      .map(({ code, table, samples }) => `${code} ${table} ${samples.join("|")}`);
    expect(found.toSorted()).toEqual([...EVERYWHERE, ...FOUND[family]].toSorted());
  });

  test("counts and openings are the same whatever it stands in", () => {
    const [first, ...others] = ENGINES.map((engine) => reports.get(engine));
    for (const other of others) {
      expect(other?.tables).toEqual(first?.tables as never);
      expect(other?.openings).toEqual(first?.openings as never);
      expect(other?.dropped).toEqual(first?.dropped as never);
    }
    for (const { read, carried, rejected } of Object.values(first?.tables ?? {}))
      expect(carried + rejected).toBeLessThanOrEqual(read);
    expect(Object.keys(first?.tables ?? {}).length).toBeGreaterThan(5);
  });
});
