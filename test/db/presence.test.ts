// Who counts as silent: doors at which nobody answers, and what is a word of the server's. Doors are real sockets; statements are the
// driver's only in what decides their end. With a server behind them: postgres-lost.test.ts.
// Refuses to measure how soon: a machine that is slow makes everything later, not different.
import { expect, spyOn, test } from "bun:test";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import type { Sql } from "postgres";
import { createPresence } from "../../src/db/presence.ts";
import type { Presence } from "../../src/db/presence.ts";
import { freePort } from "../support/ports.ts";

const QUIET_MS = 450;
const SILENT = { code: "DATABASE_SILENT" };

type Statement = ReturnType<Sql["unsafe"]>;

/** A statement as the driver holds it; `end` is what its caller hears. */
function ask(presence: Presence, text = "select 1") {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const query = Object.assign(promise, { executed: false, resolve, reject });
  const askedMs = performance.now();
  const end = promise.then(
    () => ({ outcome: "answered" as unknown, tookMs: performance.now() - askedMs }),
    (error: unknown) => ({ outcome: error, tookMs: performance.now() - askedMs }),
  );
  presence.attend(query as unknown as Statement, text);
  return { query, end };
}

/** A door at which connections are taken and nobody says anything. */
function startMute() {
  const server = createServer(() => undefined).listen(0, "127.0.0.1");
  return { port: (server.address() as AddressInfo).port, stop: () => server.close() };
}

test("a process in which no read waits is woken by nothing: the timer ends with the last of them", () => {
  const presence = createPresence({ host: ["127.0.0.1"], port: [freePort()] }, QUIET_MS);
  const [begun, ended] = [spyOn(globalThis, "setInterval"), spyOn(globalThis, "clearInterval")];
  try {
    const [first, second] = [ask(presence), ask(presence)];
    expect(begun).toHaveBeenCalledTimes(1);
    first.query.resolve([]);
    expect(ended).not.toHaveBeenCalled();
    second.query.resolve([]);
    expect<unknown[]>(ended.mock.calls.flat()).toEqual([begun.mock.results[0]?.value]);
    // And begins anew with the next.
    ask(presence).query.resolve([]);
    expect([begun.mock.calls.length, ended.mock.calls.length]).toEqual([2, 2]);
  } finally {
    begun.mockRestore();
    ended.mockRestore();
    presence.close();
  }
});

test.concurrent(
  "nobody is there where a door stays mute; a name that nobody knows, or a closed door, is no proof of it",
  async () => {
    const mute = startMute();
    const doors = [
      { host: ["127.0.0.1"], port: [mute.port] },
      { host: ["nobody.invalid"], port: [mute.port] },
      { host: ["127.0.0.1"], port: [freePort()] },
      { host: [], port: [], path: "/nowhere/.s.PGSQL.5432" },
      // One of several is enough.
      { host: ["localhost", "nobody.invalid"], port: [mute.port, mute.port] },
      // The limit begins with the address, and holds.
      { host: ["localhost"], port: [mute.port] },
    ];
    const presences = doors.map((door) => createPresence(door, QUIET_MS));
    const asked = presences.map((presence) => ask(presence));
    const refused = await Promise.all([asked[0]?.end, asked[5]?.end]);
    expect(refused.map((each) => each?.outcome)).toMatchObject([SILENT, SILENT]);
    for (const { query } of asked) query.resolve([]);
    const outcomes = await Promise.all(asked.slice(1, 5).map(({ end }) => end));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(outcomes.map(() => "answered"));
    for (const presence of presences) presence.close();
    mute.stop();
  },
  20_000,
);

test.concurrent(
  "a word of the server's ends a silence, and the next one begins anew; words of the driver's own are none",
  async () => {
    const mute = startMute();
    const presence = createPresence({ host: ["127.0.0.1"], port: [mute.port] }, QUIET_MS);
    const writes = [1, 2, 3, 4, 5].map(() => ask(presence, "insert into notes values (1)"));
    expect((await ask(presence).end).outcome).toMatchObject(SILENT);
    for (const [at, code] of ["57014", "CONNECTION_ENDED", "UNDEFINED_VALUE", "ECONNRESET"].entries()) {
      writes[at]?.query.reject(Object.assign(new Error(code), { code }));
      expect((await ask(presence).end).outcome).toMatchObject(SILENT);
    }
    writes[4]?.query.reject(Object.assign(new Error("duplicate key"), { code: "23505", severity: "ERROR" }));
    const { query, end } = ask(presence);
    expect(query.executed).toBe(false);
    // Not by the knock that was due for the silence before: so long it waits, and so long somebody knocks then.
    const { outcome, tookMs } = await end;
    expect(outcome).toMatchObject(SILENT);
    expect(tookMs).toBeGreaterThan((QUIET_MS * 5) / 3);
    presence.close();
    mute.stop();
  },
  20_000,
);
