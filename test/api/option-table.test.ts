// Every option over the wire, one after the other: bad values are refused with their sentence in both languages and change
// nothing; a good one is saved, read back, and in force on every node of the site within a second. Secrets never come back.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { definitionOf, optionRows } from "../../src/core/options/definitions.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { createOptions } from "../../src/core/options/store.ts";
import { LANGUAGES } from "../../src/shared/enums.ts";
import type { Language } from "../../src/shared/enums.ts";
import type { FailureCode } from "../../src/shared/failure-codes.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { OPTION_CASES } from "./option-cases.ts";
import { nextLook } from "../support/turns.ts";

const LIMIT_MS = 1000;

interface Told {
  success: boolean;
  code?: string;
  message: string;
}

const texts = Object.fromEntries(
  LANGUAGES.map((language) => {
    const file = join(import.meta.dir, "../../locales", language, "failure.json");
    return [language, JSON.parse(readFileSync(file, "utf8")) as Record<string, string>];
  }),
) as Record<Language, Record<string, string>>;

/** The sentence as the dictionary has it, with its figures. */
function sentence(
  language: Language,
  code: FailureCode,
  params: Readonly<Record<string, string | number>> = {},
) {
  const text = texts[language][code];
  if (text === undefined) throw new Error(`no sentence for ${code}`);
  return Object.entries(params).reduce(
    (said, [name, value]) => said.replaceAll(`{{${name}}}`, String(value)),
    text,
  );
}

test("every option has its case, whose good value is not the default", () => {
  expect(Object.keys(OPTION_CASES).toSorted()).toEqual(optionRows.map(({ key }) => String(key)).toSorted());
  const idle = optionRows.filter((row) => OPTION_CASES[row.key].good === row.default);
  expect(idle.map(({ key }) => key)).toEqual([]);
});

test("a kind that can refuse does in its case", () => {
  // Whatever people write is taken; secrets are of that kind too.
  const unproven = optionRows.filter(({ key, kind }) => {
    const takesAnything = ["{", "-1", "maybe", "[1", "\u0001"].every((value) => {
      try {
        kind.parse(value);
        kind.check?.(value);
        return true;
      } catch {
        return false;
      }
    });
    return !takesAnything && OPTION_CASES[key].refused.length === 0;
  });
  expect(unproven.map(({ key }) => key)).toEqual([]);
});

describe.each(DATABASE_KINDS)("on %s", (kind) => {
  let database: TestDatabase;
  /** PostgreSQL: two nodes of one site. */
  let nodes: TestApp[];
  let root: TestUser;
  beforeAll(async () => {
    database = await createTestDatabase(kind === "postgres" ? "postgres" : "sqlite");
    const env: Record<string, string> = { ENCRYPTION_KEY: "one key for both nodes" };
    if (database.databaseUrl !== undefined) env["DATABASE_URL"] = database.databaseUrl;
    nodes = [await startTestApp({ env })];
    if (kind === "postgres") nodes.push(await startTestApp({ env }));
    root = await here().createUser({ role: 100 });
    // Known everywhere before anything is measured.
    for (const node of nodes) expect((await listed(node, "About")).status).toBe(200);
  });
  afterAll(async () => {
    for (const node of nodes) await node.close();
    await database.drop();
  });

  function here(): TestApp {
    const [node] = nodes;
    if (!node) throw new Error("no node");
    return node;
  }
  const put = (key: OptionKey, value: string, language: Language = "zh") =>
    here().call<Told>(
      "PUT",
      "/api/option/",
      { key, value },
      {
        ...root,
        headers: { ...root.headers, "accept-language": language },
      },
    );
  const listed = async (node: TestApp, key: OptionKey) => {
    const { status, body } = await node.call<{
      data: { key: string; value: string }[];
      secrets_set: string[];
    }>("GET", "/api/option/", undefined, root);
    return {
      status,
      value: body.data?.find((each) => each.key === key)?.value,
      isSecretSet: body.secrets_set?.includes(key) ?? false,
    };
  };
  const statusField = async (node: TestApp, field: string) =>
    (await node.call<{ data: Record<string, unknown> }>("GET", "/api/status")).body.data[field];

  /** Asks a node again and again until it obeys; what it said last, when the second is over. */
  async function within<T>(
    ask: () => T | Promise<T>,
    isWanted: (said: T) => boolean,
    startedMs: number,
  ): Promise<T> {
    for (let looks = 0; ; looks++) {
      const said = await ask();
      if (isWanted(said) || performance.now() - startedMs > LIMIT_MS) return said;
      await nextLook(looks);
    }
  }

  async function expectRefused(
    key: OptionKey,
    value: string,
    code: FailureCode,
    params?: Readonly<Record<string, string | number>>,
  ): Promise<void> {
    const before = here().deps.options.text(key);
    for (const language of LANGUAGES) {
      const { status, body } = await put(key, value, language);
      expect([key, value, status, body]).toEqual([
        key,
        value,
        200,
        expect.objectContaining({ success: false, code, message: sentence(language, code, params) }),
      ]);
    }
    expect([key, value, here().deps.options.text(key)]).toEqual([key, value, before]);
  }

  test.each(optionRows.map(({ key }) => key))("%s", async (key) => {
    const { good, read, refused, needs = [], unmet, never, neverParams } = OPTION_CASES[key];
    const { secret = false, public: field } = definitionOf(key);
    const { options } = here().deps;
    if (unmet !== undefined) await expectRefused(key, good, unmet);
    for (const [needed, value] of needs) expect((await put(needed, value)).body.success).toBe(true);
    for (const [value, code, params] of refused) await expectRefused(key, value, code, params);
    if (never !== undefined) return expectRefused(key, good, never, neverParams);
    const startedMs = performance.now();
    expect((await put(key, good)).body).toMatchObject({ success: true });
    for (const node of nodes) {
      const value = await within(
        () => node.deps.options.get(key) as unknown,
        (now) => Bun.deepEquals(now, read),
        startedMs,
      );
      expect([key, value]).toEqual([key, read]);
      const { value: shown, isSecretSet } = await listed(node, key);
      expect([key, shown, isSecretSet]).toEqual([key, secret ? undefined : good, secret]);
      if (field !== undefined) expect([key, await statusField(node, field)]).toEqual([key, read]);
      expect(performance.now() - startedMs).toBeLessThan(2 * LIMIT_MS);
    }
    // What a start finds; it hears of nothing afterwards, or every later change would be read again by each of these.
    const reread = await createOptions(
      { ...here().deps.db, onChange: () => Promise.resolve() },
      here().deps.seal,
    );
    expect([key, reread.get(key) as unknown]).toEqual([key, read]);
    await options.set(key, definitionOf(key).default);
    for (const [needed] of needs) await options.set(needed, definitionOf(needed).default);
  });
});
