// The whole way: an old site is moved, root opens it, and everybody goes on as before: passwords, second factors, access
// tokens, keys at old prices, sums of the log, books that balance. Several ways in the run, all of them in the long one.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { and, eq } from "drizzle-orm";
import { importCommand } from "../../src/cli/import-command.ts";
import { audit } from "../../src/core/ledger/audit.ts";
import { isQuiet } from "../../src/core/options/quiet.ts";
import { parseSource } from "../../src/import/dsn.ts";
import { openSource } from "../../src/import/source.ts";
import { verifyImport } from "../../src/import/verify.ts";
import { LogType } from "../../src/shared/enums.ts";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { answer, startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { createTestDatabase, DATABASE_KINDS } from "../support/postgres.ts";
import type { DatabaseKind, TestDatabase } from "../support/postgres.ts";
import {
  ACCESS_TOKEN,
  BACKUP_CODE,
  COMPLETION_RATIO,
  fixtureRows,
  KEYS,
  MODEL,
  MODEL_RATIO,
  PASSWORD,
} from "./fixtures/rows.ts";
import type { FixtureSite } from "./fixtures/rows.ts";
import { FAMILIES } from "./fixtures/schemas.ts";
import type { FixtureFamily } from "./fixtures/schemas.ts";
import { createFixture } from "./fixtures/sources.ts";
import type { FixtureSource } from "./fixtures/sources.ts";
import { ENGINES } from "./fixtures/types.ts";
import type { Engine } from "./fixtures/types.ts";

type Way = readonly [family: FixtureFamily, engine: Engine, target: DatabaseKind];

const SAMPLE: readonly Way[] = [
  ["one-api", "postgres", "sqlite"],
  ["new-api", "mysql", "postgres"],
  ["new-api-v1", "sqlite", "sqlite"],
  ["new-api-v1", "mysql", "postgres"],
];
const ALL: readonly Way[] = FAMILIES.flatMap((family) =>
  ENGINES.flatMap((engine) => DATABASE_KINDS.map((target): Way => [family, engine, target])),
);
const USAGE = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
const CHARGE = (USAGE.prompt_tokens + USAGE.completion_tokens * COMPLETION_RATIO) * MODEL_RATIO;
const ENCRYPTION_KEY = "a key for what is moved in";

describe.each(Bun.env["WEIR_LONG"] === "1" ? ALL : SAMPLE)("%s in %s, to %s", (family, engine, target) => {
  let site: FixtureSite;
  let upstream: FakeUpstream;
  let source: FixtureSource;
  let place: TestDatabase;
  let app: TestApp;
  let before = "";
  let second = { code: 0, said: "" };
  let verified = { code: 0, said: "" };
  const told: string[] = [];

  const runImport = (...args: string[]) =>
    importCommand({
      args: [source.address, ...args],
      dataDir: place.dataDir,
      databaseUrl: place.databaseUrl ?? "",
      encryptionKey: ENCRYPTION_KEY,
      startsNew: true,
      say: (text) => void told.push(text),
      tell: (text) => void told.push(text),
    });

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    upstream.always(answer("hello", { usage: USAGE }));
    site = { family, upstream: upstream.url, now: Math.floor(Date.now() / 1000) };
    source = await createFixture(engine, site);
    place = await createTestDatabase(target);
    before = await source.digest();
    const code = await runImport();
    expect([code, told.join("\n")]).toEqual([0, expect.stringContaining("reading ")]);
    told.length = 0;
    second = { code: await runImport(), said: told.join("\n") };
    told.length = 0;
    verified = { code: await runImport("--verify"), said: told.join("\n") };
    const env = { DATA_DIR: place.dataDir, DATABASE_URL: place.databaseUrl ?? "", ENCRYPTION_KEY };
    app = await startTestApp({ env });
  });
  afterAll(async () => {
    await app.close();
    await source.drop();
    await place.drop();
    upstream.stop();
  });

  const login = (username: string, password = PASSWORD) =>
    app.call<{ success: boolean; data: { require_2fa?: boolean; flow_token?: string } }>(
      "POST",
      "/api/user/login",
      {
        username,
        password,
      },
    );
  const sessionOf = (headers: Headers) =>
    headers
      .getSetCookie()
      .find((line) => /^session=[^;]/.test(line))
      ?.split(";")[0];
  const call = (key: string) =>
    fetch(`${app.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer sk-${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "hi" }] }),
    });
  const userRow = async (id: number) => {
    const { users } = app.deps.db.t;
    const [row] = await app.deps.db.orm.select().from(users).where(eq(users.id, id));
    return row;
  };

  test("the source is as it was, and a second run was refused", async () => {
    expect(second).toEqual({
      code: 1,
      said: expect.stringMatching(/empty (installation|database)/) as string,
    });
    expect(await source.digest()).toBe(before);
  });

  test("verified, it is as it stood in the source", () => {
    expect([verified.code, verified.said]).toEqual([0, expect.any(String)]);
  });

  test("it stands closed and quiet until root, who signs in by the old password, opens it", async () => {
    expect([app.deps.maintenance.isOn, isQuiet(app.deps.options)]).toEqual([true, true]);
    expect((await call(KEYS.alice)).status).toBe(503);
    expect(upstream.requests).toHaveLength(0);
    const { headers, body } = await login("root");
    expect(body.success).toBe(true);
    const root = {
      id: 1,
      username: "root",
      headers: { cookie: sessionOf(headers) ?? "", "New-Api-User": "1" },
    };
    expect((await app.call("DELETE", "/api/maintenance", undefined, root)).body).toMatchObject({
      success: true,
    });
    expect([app.deps.maintenance.isOn, isQuiet(app.deps.options)]).toEqual([false, false]);
  });

  test("people sign in by their passwords, which are argon2id from then on; who was banned or deleted does not", async () => {
    expect((await userRow(2))?.passwordHash).toStartWith("$2a$10$");
    const { body, headers } = await login("alice");
    expect(body.success).toBe(true);
    expect((await userRow(2))?.passwordHash).toStartWith("$argon2id$");
    if (family !== "new-api-v1") expect(sessionOf(headers)).toBeDefined();
    expect((await login("alice", "wrong horse 1")).body.success).toBe(false);
    for (const name of ["banned", "gone", "deleted_abc", "nulls"])
      expect([name, (await login(name)).body.success]).toEqual([name, false]);
    expect((await login("root@old.example")).body.success).toBe(true);
  });

  test("a second factor is asked for, and an old backup code passes once, however it is written", async () => {
    const passes = async (code: string) => {
      const { data } = (await login("alice")).body;
      const body = { flow_token: data.flow_token ?? "", code };
      return sessionOf((await app.call("POST", "/api/user/login/2fa", body)).headers) !== undefined;
    };
    const { require_2fa: isAsked } = (await login("alice")).body.data;
    expect(isAsked === true).toBe(family === "new-api-v1");
    if (family !== "new-api-v1") return;
    expect(await passes("A1B2-C3D5")).toBe(false);
    const written = BACKUP_CODE.toLowerCase().replace("-", "");
    expect((await Promise.all([passes(written), passes(BACKUP_CODE)])).filter(Boolean)).toHaveLength(1);
    expect(await passes(BACKUP_CODE)).toBe(false);
  });

  test("access tokens go on; a GitHub name waits for its sign-in with the account that had it first", async () => {
    const self = await app.call("GET", "/api/user/self", undefined, {
      id: 1,
      username: "root",
      headers: { authorization: ACCESS_TOKEN, "New-Api-User": "1" },
    });
    expect(self.body).toMatchObject({ success: true, data: { username: "root" } });
    const { identities } = app.deps.db.t;
    const github = await app.deps.db.orm
      .select({ userId: identities.userId, subject: identities.subject, legacy: identities.legacy })
      .from(identities)
      .where(eq(identities.provider, "github"));
    expect(github).toEqual([{ userId: 2, subject: "alice-hub", legacy: true }]);
  });

  test("figures are the old ones, and the log's sums those of its calls", async () => {
    expect(await userRow(2)).toMatchObject({ usedQuota: 70_000, requestCount: 12, inviterId: 1, role: 1 });
    const alices = (fixtureRows(site)["logs"] ?? []).filter(
      ({ type, quota, user_id: userId }) => type === 2 && Number(quota) > 0 && userId === 2,
    );
    const { rollups } = app.deps.db.t;
    const sums = await app.deps.db.orm
      .select({ quota: rollups.quota, count: rollups.count, model: rollups.modelName })
      .from(rollups)
      .where(and(eq(rollups.userId, 2), eq(rollups.tokenId, 1)));
    const quota = sums.reduce((total, each) => total + each.quota, 0);
    const count = sums.reduce((total, each) => total + each.count, 0);
    expect([quota, count]).toEqual([
      alices.reduce((total, row) => total + Number(row["quota"]), 0),
      alices.length,
    ]);
  });

  test("old keys call at the old price; the one that was off stays off", async () => {
    const quota = (await userRow(2))?.quota ?? 0;
    expect((await call(KEYS.alice)).status).toBe(200);
    await app.deps.ledger.flush();
    const { logs } = app.deps.db.t;
    const rows = await app.deps.db.orm
      .select({ quota: logs.quota, promptTokens: logs.promptTokens })
      .from(logs)
      .where(and(eq(logs.type, LogType.consume), eq(logs.promptTokens, USAGE.prompt_tokens)));
    expect(rows).toEqual([{ quota: CHARGE, promptTokens: USAGE.prompt_tokens }]);
    expect(await userRow(2)).toMatchObject({
      quota: quota - CHARGE,
      usedQuota: 70_000 + CHARGE,
      requestCount: 13,
    });
    expect((await call(KEYS.off)).status).toBe(401);
    if (family === "new-api-v1") expect((await call(KEYS.long)).status).toBe(200);
  });

  test("the audit finds nothing; a verification finds what calls have changed since, by name", async () => {
    await app.deps.ledger.flush();
    const { differences } = await audit(app.deps.db);
    expect(differences).toEqual([]);
    const read = await openSource(parseSource(source.address));
    const { db, seal } = app.deps;
    const report = await verifyImport({ source: read, logs: read, db, seal });
    await read.close();
    expect(report.differences).toContainEqual(expect.objectContaining({ what: "users.used_quota", id: "2" }));
    expect(report.differences.filter(({ what }) => what.includes("secret"))).toEqual([]);
  });
});
