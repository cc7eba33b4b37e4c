// What large bodies may hold together: one account's share, everybody's, and that all of it comes back.
// Refuses sleeps: bodies stay unfinished on sockets of their own until the test closes them.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createBodyBudget } from "../../../src/relay/wire/body-budget.ts";
import { Failure } from "../../../src/shared/failures.ts";
import { connectRaw } from "../../support/raw-client.ts";
import type { RawConnection } from "../../support/raw-client.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

function fits(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    expect((error as Failure).code).toBe("bodies_busy");
    return false;
  }
}

describe("the budget", () => {
  const requestOf = (): Request => new Request("http://gateway/");
  const budgetOf = (maxBytes: number) => createBodyBudget({ alive: () => {} }, () => maxBytes);

  test("one account holds at most half, all together at most the whole", () => {
    const budget = budgetOf(100);
    const requests = Array.from({ length: 9 }, requestOf);
    const taken = requests.map((request, i) => fits(() => budget.grow(request, i < 5 ? 1 : 2, 100)));
    expect(taken).toEqual([true, true, true, true, false, true, true, true, true]);
    const third = requestOf();
    expect(fits(() => budget.grow(third, 3, 1))).toBe(false);
    budget.done(requests[0] ?? third);
    expect(fits(() => budget.grow(third, 3, 100))).toBe(true);
  });

  test("the largest body always fits where nothing else is held", () => {
    expect(fits(() => budgetOf(64).grow(requestOf(), 1, 64))).toBe(true);
  });

  test("whatever comes and goes, refused or not, all of it comes back", () => {
    const step = fc.record({
      request: fc.nat(5),
      owner: fc.nat(2),
      bytes: fc.integer({ min: 1, max: 450 }),
      isEnd: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const budget = budgetOf(100);
        const requests = Array.from({ length: 18 }, requestOf);
        for (const { request, owner, bytes, isEnd } of steps) {
          const which = requests[request * 3 + owner] ?? requestOf();
          if (isEnd) budget.done(which);
          else fits(() => budget.grow(which, owner, bytes));
        }
        for (const request of requests) budget.done(request);
        for (const owner of [7, 8]) expect(fits(() => budget.grow(requestOf(), owner, 400))).toBe(true);
        expect(fits(() => budget.grow(requestOf(), 9, 1))).toBe(false);
      }),
    );
  });
});

describe("over the wire", () => {
  let g: Gateway;
  let otherKey = "";
  beforeAll(async () => {
    g = await startGateway();
    await g.setOption("relay.max_body_mb", "1");
    const other = await g.app.createUser({ quota: 1_000_000 });
    otherKey = (await g.app.createToken(other.id)).key;
  });
  afterAll(() => g.close());

  const large = (key: string): Promise<Response> =>
    g.post(
      "/v1/chat/completions",
      { model: MODEL, messages: [...HI, { role: "user", content: "x".repeat(600 * KIB) }] },
      { authorization: `Bearer ${key}` },
    );

  test("bodies that a key never ends use up its own share, not the others'; what they held comes back", async () => {
    const open: RawConnection[] = [];
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: ${new URL(g.app.url).host}\r\nauthorization: Bearer ${g.key}\r\ncontent-type: application/json\r\ncontent-length: ${MIB}\r\n\r\n`;
    const refused = Promise.withResolvers<number>();
    // Five times 1000 KiB: more than four MiB.
    for (let i = 0; i < 5; i++) {
      const connection = await connectRaw(g.app.url, "127.0.0.32");
      void connection.status().then((status) => status > 0 && refused.resolve(status));
      connection.write(head);
      connection.write("x".repeat(1000 * KIB));
      open.push(connection);
    }
    expect(await refused.promise).toBe(429);
    expect((await large(otherKey)).status).toBe(200);
    const gone = open.map((connection) => connection.closed);
    for (const connection of open) connection.destroy();
    await Promise.all(gone);
    let status = 429;
    for (let tries = 0; tries < 200 && status === 429; tries++) status = (await large(g.key)).status;
    expect(status).toBe(200);
  });

  test("calls that are answered give back what they held", async () => {
    for (let i = 0; i < 40; i++) {
      const response = await large(g.key);
      await response.text();
      expect(response.status).toBe(200);
    }
  });
});
