// What clients call their calls and conversations reaches upstreams as this user's alone: never the words themselves,
// never equal for two users, and the same on every try, node and start.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createSealer } from "../../../src/core/kit/seal.ts";
import { scopedValue } from "../../../src/relay/wire/passed-headers.ts";
import { startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const NAMES = ["idempotency-key", "session_id", "conversation_id"] as const;
const UUID_V4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("a scoped value", () => {
  const seal = createSealer("a secret for tests");
  test("is of its user, its words and the installation", () => {
    const value = scopedValue(seal, 1, "session-1");
    expect(value).toMatch(/^[0-9a-f]{64}$/);
    expect(scopedValue(createSealer("a secret for tests"), 1, "session-1")).toBe(value);
    expect(scopedValue(seal, 2, "session-1")).not.toBe(value);
    expect(scopedValue(seal, 1, "session-2")).not.toBe(value);
    expect(scopedValue(createSealer("another secret"), 1, "session-1")).not.toBe(value);
    // Nobody says another one's words by a trick of the border between the two.
    expect(scopedValue(seal, 1, "1 x")).not.toBe(scopedValue(seal, 11, " x"));
  });

  test("is a UUID where it was one, of every version, however it is written", () => {
    for (const uuid of [crypto.randomUUID(), Bun.randomUUIDv7(), "00000000-0000-0000-0000-000000000000"]) {
      const value = scopedValue(seal, 1, uuid);
      expect(value).toMatch(UUID_V4);
      expect(value).not.toBe(uuid);
      expect(scopedValue(seal, 1, uuid.toUpperCase())).toBe(value);
    }
    expect(scopedValue(seal, 1, ` ${crypto.randomUUID()}`)).toMatch(/^[0-9a-f]{64}$/);
  });

  test("never meets another's", () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), fc.string(), fc.string(), (a, b, x, y) => {
        fc.pre(a !== b || x !== y);
        expect(scopedValue(seal, a, x)).not.toBe(scopedValue(seal, b, y));
      }),
    );
  });
});

describe("on the wire", () => {
  let g: Gateway;
  beforeAll(async () => {
    g = await startGateway();
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  const uuid = crypto.randomUUID();
  const sent = { "idempotency-key": "retry-1", session_id: uuid, conversation_id: uuid };

  test("two users who say the same are told apart; one user is known again, by whichever key", async () => {
    const other = await g.app.createUser({ quota: 1_000_000 });
    const theirs = await g.app.createToken(other.id);
    const second = await g.app.createToken(g.user.id);
    await g.chat({}, sent);
    await g.chat({}, { ...sent, authorization: `Bearer ${second.key}` });
    await g.chat({ stream: true }, { ...sent, authorization: `Bearer ${theirs.key}` }).then((r) => r.text());
    const [first, again, stranger] = g.upstream.requests.map(({ headers }) =>
      NAMES.map((name) => headers[name]),
    );
    expect(again).toEqual(first);
    expect(first?.[1]).toMatch(UUID_V4);
    expect(first?.[2]).toBe(first?.[1] ?? "");
    NAMES.forEach((_name, i) => expect(stranger?.[i]).not.toBe(first?.[i] ?? ""));
    const said = JSON.stringify(g.upstream.requests.map(({ headers }) => headers));
    expect([said.includes("retry-1"), said.includes(uuid)]).toEqual([false, false]);
  });

  test("what a client does not say is not made up", async () => {
    await g.chat({}, { session_id: "" });
    for (const name of NAMES) expect(g.upstream.requests[0]?.headers[name]).toBeUndefined();
  });
});
