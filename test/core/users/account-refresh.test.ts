// Rounds that read accounts again, with queries that answer when the test says so: no old row decides.
import { expect, test } from "bun:test";
import { createAccountCache } from "../../../src/core/users/account-cache.ts";
import { createAccountLookups } from "../../../src/core/users/account-lookups.ts";
import type { AccountQueries } from "../../../src/core/users/account-queries.ts";
import { createReadsInFlight } from "../../../src/core/users/account-reads.ts";
import { createAccountRefresh } from "../../../src/core/users/account-refresh.ts";
import type { UserRow } from "../../../src/core/users/account-rows.ts";
import { testClock } from "../../support/clock.ts";

const rowOf = (status: number) => ({ id: 1, status, limits: "", setting: "", deletedAt: null }) as UserRow;

test("a user disabled while a round reads is not decided by what that round brings", async () => {
  const cache = createAccountCache({ maxTokens: 9, maxUsers: 9, maxMisses: 9 });
  const reads = createReadsInFlight();
  const round = Promise.withResolvers<[UserRow[], []]>();
  let own = Promise.resolve<UserRow | undefined>(rowOf(1));
  const queries: AccountQueries = {
    user: () => own,
    many: () => round.promise,
    token: () => Promise.resolve(undefined),
    tokenById: () => Promise.resolve(undefined),
    userIdByAccessToken: () => Promise.resolve(undefined),
  };
  const renewPlans = () => Promise.resolve();
  const clock = testClock();
  const lookups = createAccountLookups({ cache, reads, queries, clock, isShared: true, renewPlans });
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const refresh = createAccountRefresh({ cache, reads, queries, changes: undefined, logger });
  await lookups.user(1);
  const reading = refresh();
  const late = Promise.withResolvers<UserRow | undefined>();
  own = late.promise;
  // Its writer has told of it: the row is asked for while the round's own question is under way.
  const reloading = lookups.reloadUser(1);
  round.resolve([[rowOf(1)], []]);
  await reading;
  const asked = lookups.user(1);
  expect(asked).toBeInstanceOf(Promise);
  late.resolve(rowOf(2));
  await reloading;
  expect((await asked)?.status).toBe(2);
  // The row that was read last stands, and decides at once.
  expect(lookups.user(1)).toMatchObject({ status: 2 });
});
