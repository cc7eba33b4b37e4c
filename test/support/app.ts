// A whole running application for tests: real HTTP on loopback, real database, an own data directory.
// Refuses shortcuts around the server: calls go over the wire; only rows are prepared directly.
import { randomBytes, randomInt } from "node:crypto";
import { Elysia } from "elysia";
import { createApp, createServices } from "../../src/app.ts";
import type { Overrides, Services } from "../../src/app.ts";
import type { Deps } from "../../src/core/deps.ts";
import type { Lookup } from "../../src/net/guard.ts";
import { writeKeys } from "../../src/core/channels/key-rows.ts";
import { sha256Hex } from "../../src/core/kit/seal.ts";
import { q } from "../../src/db/database.ts";
import { readEnv } from "../../src/env.ts";
import { listen } from "../../src/http/listen.ts";
import { claimsOf, sessionTokens } from "../../src/http/session.ts";
import { dateFreshSite, FRESH_POSTGRES, placeFreshFile } from "./fresh-sites.ts";
import { lightenHashes } from "./light-hashes.ts";
import { createTestDatabase } from "./postgres.ts";
import type { DatabaseKind } from "./postgres.ts";

export interface TestUser {
  id: number;
  username: string;
  /** Cookie and New-Api-User: what the console sends. */
  headers: Record<string, string>;
}

export interface Answer<T = Record<string, unknown>> {
  status: number;
  headers: Headers;
  body: T;
  text: string;
}

export interface TestApp {
  /** http://127.0.0.1:port */
  url: string;
  /** Undefined: the embedded database. */
  databaseUrl: string | undefined;
  /** The listening server. */
  server: object;
  deps: Deps;
  services: Services;
  /** A console call: JSON in, JSON out; `as` signs it. */
  call<T = Record<string, unknown>>(
    method: string,
    path: string,
    body?: unknown,
    as?: TestUser,
  ): Promise<Answer<T>>;
  createUser(fields?: {
    username?: string;
    role?: number;
    quota?: number;
    group?: string;
    status?: number;
  }): Promise<TestUser>;
  /** Returns the key with its sk- prefix. */
  createToken(userId: number, fields?: Record<string, unknown>): Promise<{ id: number; key: string }>;
  createChannel(fields: Record<string, unknown>): Promise<number>;
  /** In the place of those that the channel has; a key that stays keeps its row. */
  setKeys(channelId: number, ...keys: string[]): Promise<void>;
  /** Stops the server and removes its data. */
  close(): Promise<void>;
}

let serial = randomInt(0x1000000);
/** Thousands of accounts in one test must not meet by chance; other processes begin elsewhere. */
function nextName(): string {
  serial = (serial + 1) % 0x1000000;
  return `user${serial.toString(16).padStart(6, "0")}`;
}

export interface TestAppOptions extends Overrides {
  database?: DatabaseKind;
  env?: Record<string, string>;
}

/** Tests ask no name server: only this machine has a name. */
const noNames: Lookup = (hostname) =>
  hostname === "localhost"
    ? Promise.resolve(["127.0.0.1"])
    : Promise.reject(Object.assign(new Error(`getaddrinfo ENOTFOUND ${hostname}`), { code: "ENOTFOUND" }));

export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  lightenHashes();
  const kind = options.database ?? "sqlite";
  const database = await createTestDatabase(kind, FRESH_POSTGRES);
  const { dataDir } = database;
  const env = readEnv({
    PORT: "0",
    HOST: "127.0.0.1",
    DATA_DIR: dataDir,
    DATABASE_URL: database.databaseUrl ?? "",
    LOG_LEVEL: "silent",
    // One address and few accounts make all the calls of a test; tests of the limits switch them on.
    GLOBAL_API_RATE_LIMIT_ENABLE: "false",
    ...options.env,
  });
  const needsFile = env.databaseUrl === "" && env.dataDir === dataDir;
  if (needsFile) await placeFreshFile(dataDir);
  const services = await createServices(env, { lookup: noNames, ...options });
  const { deps } = services;
  if (needsFile || env.databaseUrl === database.databaseUrl) await dateFreshSite(deps);
  const app = await createApp(services);
  listen(app, services.session.visitors, { port: 0, hostname: "127.0.0.1" });
  const url = `http://127.0.0.1:${app.server?.port}`;
  const signer = new Elysia()
    .use(sessionTokens(services.session.secret))
    .get("/sign/:id/:version/:sid", ({ sessionJwt, params }) =>
      sessionJwt.sign(
        claimsOf({ id: Number(params.id), sessionVersion: Number(params.version) }, params.sid),
      ),
    );

  let channelCount = 0;
  const setKeys = async (channelId: number, ...keys: string[]): Promise<void> => {
    await deps.db.atomic(function* (tx) {
      yield* writeKeys(deps.db, tx, deps.seal, {
        channelId,
        keys: keys.map((text) => ({ text })),
        how: "replace",
      });
    });
    await deps.routing.refresh([channelId]);
  };

  return {
    url,
    setKeys,
    databaseUrl: env.databaseUrl || undefined,
    server: app.server ?? {},
    deps,
    services,
    async call<T>(method: string, path: string, body?: unknown, as?: TestUser) {
      const answer = await fetch(url + path, {
        method,
        redirect: "manual",
        headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...as?.headers },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await answer.text();
      let parsed: unknown;
      try {
        parsed = JSON.parse(text);
      } catch {
        parsed = undefined;
      }
      return { status: answer.status, headers: answer.headers, body: parsed as T, text };
    },
    async createUser(fields = {}) {
      const username = fields.username ?? nextName();
      const { users } = deps.db.t;
      const row = await deps.ledger.atomic(function* (tx, credit) {
        const [user] = yield* q(
          tx
            .insert(users)
            .values({
              username,
              displayName: username,
              role: fields.role ?? 1,
              status: fields.status ?? 1,
              group: fields.group ?? "default",
            })
            .returning({ id: users.id, version: users.sessionVersion }),
        );
        if (!user) throw new Error("no user row");
        if (fields.quota) yield* credit({ userId: user.id, amount: fields.quota, kind: "import" });
        return user;
      });
      await deps.accounts.userChanged(row.id);
      const sid = await deps.sessions.open({
        userId: row.id,
        sessionVersion: row.version,
        method: "password",
        ip: "127.0.0.1",
        userAgent: "test",
      });
      const token = await (
        await signer.handle(new Request(`http://localhost/sign/${row.id}/${row.version}/${sid}`))
      ).text();
      return {
        id: row.id,
        username,
        headers: { cookie: `session=${token}`, "new-api-user": String(row.id) },
      };
    },
    async createToken(userId, fields = {}) {
      const key = randomBytes(24).toString("hex");
      const { tokens } = deps.db.t;
      const remainQuota = typeof fields.remainQuota === "number" ? fields.remainQuota : 0;
      const [row] = await deps.db.orm
        .insert(tokens)
        .values({
          userId,
          name: "test key",
          unlimitedQuota: fields.remainQuota === undefined,
          ...fields,
          keyHash: sha256Hex(key),
          keySealed: deps.seal.seal("token", key),
          keyHead: key.slice(0, 4),
          keyTail: key.slice(-4),
          quotaBase: remainQuota,
        })
        .returning({ id: tokens.id });
      if (!row) throw new Error("no token row");
      await deps.accounts.tokenChanged(row.id);
      return { id: row.id, key: `sk-${key}` };
    },
    async createChannel(fields) {
      const { channels } = deps.db.t;
      const { key, ...rest } = fields;
      const [row] = await deps.db.orm
        .insert(channels)
        .values({
          name: "test channel",
          type: 1,
          models: "gpt-4o-mini",
          ...rest,
        })
        .returning({ id: channels.id });
      if (!row) throw new Error("no channel row");
      // Equal keys are one account and rest together: each channel has its own.
      const own = channelCount++ === 0 ? "upstream-key" : `upstream-key-${row.id}`;
      const lines = (typeof key === "string" ? key : own).split("\n").map((line) => line.trim());
      await setKeys(row.id, ...lines.filter((line) => line !== ""));
      await deps.routing.reload();
      return row.id;
    },
    async close() {
      await app.server?.stop(true);
      await services.close();
      await database.drop();
    },
  };
}
