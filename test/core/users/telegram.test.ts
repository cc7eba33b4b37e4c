// Telegram's signed query: taken once, in time, and only as it was signed. Each forgery by itself, and use on both databases.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import { telegramIdentity, telegramProfile } from "../../../src/core/users/providers/telegram.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

const TOKEN = "7351:AAF-secret-of-the-bot";
const NOW = 1_800_000_000;

type Pairs = [string, string][];

/** As Telegram signs: sorted lines of everything but the hash. */
function signature(pairs: Pairs, token = TOKEN): string {
  const lines = pairs
    .map(([key, value]) => `${key}=${value}`)
    .toSorted()
    .join("\n");
  return createHmac("sha256", createHash("sha256").update(token).digest()).update(lines).digest("hex");
}
const person: Pairs = [
  ["id", "583231"],
  ["first_name", "Ada"],
  ["last_name", "Lovelace"],
  ["username", "ada"],
  ["auth_date", String(NOW - 10)],
];
const signed = (pairs: Pairs, token?: string): Pairs => [...pairs, ["hash", signature(pairs, token)]];
const replaced = (pairs: Pairs, name: string, value: string): Pairs =>
  pairs.map(([key, before]) => [key, key === name ? value : before]);
const profileOf = (pairs: Pairs, now = NOW) =>
  telegramProfile(new URLSearchParams(pairs), TOKEN, now)?.profile;

describe("a signed query", () => {
  test("vouches for its person", () => {
    expect(profileOf(signed(person))).toEqual({
      subject: "583231",
      login: "ada",
      name: "Ada Lovelace",
      emailVerified: false,
      claims: Object.fromEntries(person),
    });
    const [id, , , , date] = person;
    expect(profileOf(signed([id, date] as Pairs))).toMatchObject({ subject: "583231" });
  });

  test("is good for five minutes, and two ahead", () => {
    const at = (seconds: number) => signed(replaced(person, "auth_date", String(NOW + seconds)));
    for (const seconds of [-300, 0, 120]) expect(profileOf(at(seconds))).toBeDefined();
    for (const seconds of [-301, 121, -86_400])
      expect([seconds, profileOf(at(seconds))]).toEqual([seconds, undefined]);
  });

  // What can be signed at all: a name with line feeds, which reads like further lines of what is signed.
  const smuggled = signed([
    ["auth_date", String(NOW)],
    ["first_name", "Ada\nid=1"],
    ["id", "583231"],
  ]);
  const fitting: Pairs = [
    ["auth_date", String(NOW)],
    ["first_name", "Ada"],
    ["id", "1\nid=583231"],
    [
      "hash",
      signature([
        ["auth_date", String(NOW)],
        ["first_name", "Ada\nid=1"],
        ["id", "583231"],
      ]),
    ],
  ];
  const hash = signature(person);
  test.each<[string, Pairs]>([
    ["a line feed in the name", smuggled],
    ["a line feed in the id", fitting],
    ["a carriage return", signed(replaced(person, "first_name", "Ada\r"))],
    ["a doubled parameter", [...signed(person), ["id", "1"]]],
    ["a parameter doubled alike", [...signed(person), ["id", "583231"]]],
    ["a doubled hash", [...signed(person), ["hash", hash]]],
    ["an extra parameter", [...signed(person), ["next", "/personal"]]],
    ["a missing parameter", signed(person).filter(([key]) => key !== "username")],
    ["another id", replaced(signed(person), "id", "1")],
    ["a short hash", replaced(signed(person), "hash", hash.slice(0, 32))],
    ["an empty hash", replaced(signed(person), "hash", "")],
    ["no hash", person],
    ["a hash that is no hex", replaced(signed(person), "hash", "z".repeat(64))],
    ["another bot's signature", signed(person, "1:other")],
    ["a signature by the empty token", signed(person, "")],
    ["an id with a sign", signed(replaced(person, "id", "-5"))],
    ["an id of text", signed(replaced(person, "id", "ada"))],
    ["a long id", signed(replaced(person, "id", "1".repeat(21)))],
    ["no date", signed(person.filter(([key]) => key !== "auth_date"))],
    ["a date of text", signed(replaced(person, "auth_date", "soon"))],
    ["a key of another form", signed([...person, ["Key", "x"]])],
    ["a key that holds a line", signed([...person, ["a\nb", "x"]])],
    [
      "thirteen parameters",
      signed([...person, ..."abcdefgh".split("").map((key): [string, string] => [key, "x"])]),
    ],
  ])("with %s is refused", (_, pairs) => {
    expect(profileOf(pairs)).toBeUndefined();
  });

  test("counts for nothing while no bot is set", () => {
    expect(telegramProfile(new URLSearchParams(signed(person, "")), "", NOW)).toBeUndefined();
  });
});

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
    await app.deps.options.set("TelegramBotToken", TOKEN);
    await app.deps.options.set("TelegramBotName", "weir_bot");
    await app.deps.options.set("TelegramOAuthEnabled", "true");
  });
  afterAll(() => app.close());

  test("a signature is taken once, also when it comes several times at once", async () => {
    const query = new URLSearchParams(signed(person));
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, () => telegramIdentity(app.deps, query)),
    );
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect(telegramIdentity(app.deps, query)).rejects.toMatchObject({ code: "telegram_refused" });
    // The same signature in other letters is the same.
    const upper = new URLSearchParams(replaced(signed(person), "hash", signature(person).toUpperCase()));
    expect(telegramIdentity(app.deps, upper)).rejects.toMatchObject({ code: "telegram_refused" });
  });

  test("nobody is vouched for while it is off", async () => {
    await app.deps.options.set("TelegramOAuthEnabled", "false");
    const query = new URLSearchParams(signed(replaced(person, "first_name", "Eve")));
    expect(telegramIdentity(app.deps, query)).rejects.toMatchObject({ code: "telegram_off" });
    await app.deps.options.set("TelegramOAuthEnabled", "true");
    expect(await telegramIdentity(app.deps, query)).toMatchObject({ subject: "583231" });
  });
});
