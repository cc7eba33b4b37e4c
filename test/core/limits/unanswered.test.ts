// What is decided where the processes' shared limits were asked and no answer came in time: what others told last, and this
// process's share. Refuses a server: the missing answer is made here.
import { expect, test } from "bun:test";
import type { Deps, TokenAccount, UserAccount } from "../../../src/core/deps.ts";
import { Hold } from "../../../src/core/ledger/reservation.ts";
import type { HoldKeeper } from "../../../src/core/ledger/reservation.ts";
import { createRateLimiter } from "../../../src/core/kit/rate-limit.ts";
import { emptyLease, leaseOf } from "../../../src/core/limits/lease.ts";
import type { LimitLease } from "../../../src/core/limits/limits.ts";
import { OwnerUse } from "../../../src/core/limits/owner-use.ts";
import type { SharedLimits } from "../../../src/core/limits/shared-limits.ts";
import type { RateClaim } from "../../../src/core/limits/shared-rates.ts";
import { sharedSide } from "../../../src/core/limits/shared-side.ts";
import { forgivenCount, forgiveWrongTries } from "../../../src/core/users/forgiven.ts";
import { checkRate } from "../../../src/relay/call/admission.ts";
import { IndexedSet } from "../../../src/shared/indexed-set.ts";

const clock = { nowMs: () => 0, monotonicMs: () => 0 };
const unanswered = () => Promise.resolve(undefined);

const silent = {
  isUp: () => true,
  ask: unanswered,
  more: unanswered,
  ended: () => undefined,
  rateEnded: () => undefined,
} as unknown as SharedLimits;

function holdOf(lease: LimitLease, lengthen: HoldKeeper["lengthen"] = (_, more) => more): Hold {
  const keeper = { open: new IndexedSet<Hold>(), lengthen, nowMs: () => 0, monotonicMs: () => 0 };
  const user = { id: 1, reserved: 0 } as UserAccount;
  return new Hold(keeper as unknown as HoldKeeper, "r", 30, user, undefined, undefined, lease);
}

test("a stream whose question is not answered grows by what the budget leaves beside what others hold", async () => {
  const account = { id: 1, usedQuota: 0, pending: 0 } as TokenAccount;
  const owner = new OwnerUse(
    "token",
    account,
    { budgetQuota: 100, budgetPeriod: "month", rpmLimit: 0, tpmLimit: 0, maxConcurrency: 0 },
    () => true,
  );
  owner.elsewhere = { held: 60, calls: 1, requests: 1, tokens: 0 };
  const lease = emptyLease(30, 0, { clock, look: () => undefined, shared: silent });
  lease.join(owner);
  const hold = holdOf(lease);
  expect(await hold.grow(40)).toBe(10);
  expect(owner.held).toBe(40);
  expect(await hold.grow(40)).toBe(0);
  expect(owner.held).toBe(40);
});

test("a part of a call is asked about by budgets alone, and leaves nothing behind where they refuse it", async () => {
  const account = { id: 1, usedQuota: 0, pending: 0, name: "k" } as TokenAccount;
  const limits = {
    budgetQuota: 100,
    budgetPeriod: "month",
    rpmLimit: 1,
    tpmLimit: 0,
    maxConcurrency: 1,
  } as const;
  const owner = new OwnerUse("token", account, limits, () => true);
  owner.calls = 1;
  const deps = { options: { get: () => "UTC", number: () => 1, text: () => "" }, clock } as unknown as Deps;
  const enter = async (left: number | undefined): Promise<[number, number, number]> => {
    const asked = { ...silent, ask: () => undefined, more: () => Promise.resolve(left) };
    const lease = leaseOf(
      [owner],
      { amount: 30, tokens: 0, isPart: true },
      { clock, look: () => undefined, shared: asked },
    );
    const request = {
      user: {} as UserAccount,
      token: account,
      amount: 30,
      least: 1,
      promptTokens: 0,
      tokens: 0,
    };
    await sharedSide(deps, asked).confirm({ ...request, isPart: true }, lease);
    const taken: [number, number, number] = [lease.amount, owner.calls, owner.requests.sum(0)];
    lease.end(0, 0);
    return taken;
  };
  expect(await enter(30)).toEqual([30, 1, 0]);
  expect(await enter(20)).toEqual([20, 1, 0]);
  owner.elsewhere = { held: 90, calls: 1, requests: 1, tokens: 0 };
  expect(await enter(undefined)).toEqual([10, 1, 0]);
  expect(await enter(0).catch((error: unknown) => error)).toMatchObject({ code: "budget_exceeded" });
  expect([owner.held, owner.calls]).toEqual([0, 1]);
});

test("steps of one hold are taken one after another, however they come", async () => {
  let running = 0;
  let most = 0;
  const lease = emptyLease(30, 0, { clock, look: () => undefined, shared: undefined });
  lease.more = unanswered;
  const hold = holdOf(lease, async (_, more) => {
    most = Math.max(most, ++running);
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    running -= 1;
    return more;
  });
  const step = async (): Promise<number> => hold.grow(1);
  const grown = [step(), step()];
  for (let turn = 0; turn < 100; turn++) {
    if (turn % 3 === 0) grown.push(step());
    await Promise.resolve();
  }
  expect((await Promise.all(grown)).every((units) => units === 1)).toBe(true);
  expect(most).toBe(1);
});

test("a burst whose questions are not answered has this process's share of the site's rate, and the rest counts nowhere", async () => {
  const side = sharedSide({ clock, options: undefined as unknown as Deps["options"] }, silent);
  side.placeBy(() => ({ nodes: 2, rank: 0 }));
  const limiter = createRateLimiter();
  const rule = { windowMs: 60_000, total: 20, success: 1000 };
  const deps = { limits: side, clock } as unknown as Pick<Deps, "limits" | "clock">;
  const claims: RateClaim[] = Array.from({ length: 20 }, () => ({ rule, userId: 2 }));
  for (const claim of claims) checkRate(deps, limiter, claim);
  const asked = await Promise.allSettled(claims.map(async (claim) => side.confirmRate(claim)));
  expect(asked.filter(({ status }) => status === "fulfilled")).toHaveLength(10);
  expect(asked.at(-1)).toMatchObject({ reason: { code: "rate_limit_total" } });
  expect(claims.filter(({ shared }) => shared === "refused")).toHaveLength(10);
});

test("wrong tries that one process forgave are forgiven on another one and after a start; lost answers change nothing", async () => {
  let count = 0;
  let isLost = false;
  const valkey = {
    run: ({ text }: { text: string }) =>
      Promise.resolve(isLost ? undefined : text.includes("INCR") ? ++count : count),
  } as unknown as Deps["valkey"];
  const processOf = () => ({ db: {} as Deps["db"], valkey });
  const [here, there] = [processOf(), processOf()];
  expect(await forgivenCount(there, 5)).toBe(0);
  forgiveWrongTries(here, 5);
  for (const each of [here, there, processOf()]) expect(await forgivenCount(each, 5)).toBe(1);
  isLost = true;
  for (const each of [here, there]) expect(await forgivenCount(each, 5)).toBe(1);
});
