// The log by a key's name: deleted and renamed keys and keys of removed accounts are found, and a name that no key has borne
// is answered without reading a row.
// Refuses rows made by hand: calls go through the ledger, keys through the API.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { bounded } from "../../../src/core/logs/bounds.ts";
import { END_OF_TIME } from "../../../src/core/logs/filter.ts";
import { listLogs } from "../../../src/core/logs/list.ts";
import { logStat } from "../../../src/core/logs/statistics.ts";
import { startTestApp } from "../../support/app.ts";
import type { TestApp, TestUser } from "../../support/app.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";

const NOW = 1_760_000_000;

describe.each(DATABASE_KINDS)("names of keys on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let owner: TestUser;

  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
    admin = await app.createUser({ username: "admin", role: 100 });
    owner = await app.createUser({ username: "alice", quota: 1_000_000 });
  });
  afterAll(() => app.close());

  const filterOf = (tokenName: string) => ({ type: 0, from: 0, to: END_OF_TIME, tokenName });

  async function call(
    of: TestUser,
    key: string | undefined,
    tokenName: string,
    quota: number,
  ): Promise<void> {
    const user = await app.deps.accounts.user(of.id);
    const token = key === undefined ? undefined : await app.deps.accounts.tokenByKey(key.replace("sk-", ""));
    if (!user) throw new Error("no account");
    const hold = await app.deps.ledger.reserve({
      requestId: `${tokenName}-${quota}`,
      user,
      token,
      amount: 0,
    });
    await hold.settle({
      quota,
      promptTokens: 1,
      completionTokens: 1,
      modelName: "m",
      channelId: 1,
      group: "default",
      isStream: false,
      useTimeMs: 1,
      content: "",
      other: {},
      ...(token ? {} : { tokenName }),
    });
    await app.deps.ledger.flush();
  }

  async function found(tokenName: string) {
    const { items, total, isCut } = await listLogs(app.deps, filterOf(tokenName), { limit: 10, offset: 0 });
    const { quota, rpm } = await logStat(app.deps, filterOf(tokenName));
    return [items.length, total, isCut, quota, rpm];
  }

  test("a name that no key has borne is answered from nothing", async () => {
    const { id, key } = await app.createToken(owner.id, { name: "laptop" });
    await call(owner, key, "laptop", 7);
    const { filter } = await bounded(app.deps, filterOf("nobody's"));
    expect(filter).toMatchObject({ tokenIds: [], to: 0 });
    expect(await found("nobody's")).toEqual([0, 0, false, 0, 0]);
    expect(await found("laptop")).toEqual([1, 1, false, 7, 1]);
    expect((await app.call("DELETE", `/api/token/${id}`, undefined, owner)).status).toBe(200);
    expect(await found("laptop")).toEqual([1, 1, false, 7, 1]);
  });

  test("what bears no key's name by its making is looked for in the rows", async () => {
    await call(owner, undefined, "playground-default", 9);
    expect(await found("playground-default")).toEqual([1, 1, false, 9, 1]);
    expect(await found("playground-vip")).toEqual([0, 0, false, 0, 0]);
  });

  test("names that left the table of keys are looked for in the rows of their time", async () => {
    const { id, key } = await app.createToken(owner.id, { name: "old name" });
    await call(owner, key, "old name", 11);
    const body = { id, name: "new name" };
    expect((await app.call("PUT", "/api/token/", body, owner)).body).toMatchObject({ success: true });
    expect(await found("old name")).toEqual([1, 1, false, 11, 1]);
    expect(await found("new name")).toEqual([1, 1, false, 11, 1]);
    const gone = await app.createUser({ username: "bob", quota: 1_000_000 });
    const theirs = await app.createToken(gone.id, { name: "bob's" });
    await call(gone, theirs.key, "bob's", 13);
    expect((await app.call("DELETE", `/api/user/${gone.id}`, undefined, admin)).body).toMatchObject({
      success: true,
    });
    expect(await found("bob's")).toEqual([1, 1, false, 13, 1]);
    // A day later no such name is written any more.
    const later = { ...filterOf("bob's"), from: NOW + 86_400 };
    expect((await bounded(app.deps, later)).filter).toMatchObject({ tokenIds: [] });
  });
});
