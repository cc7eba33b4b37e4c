// What a program reads of its own key, by the key alone.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

describe.each(DATABASE_KINDS)("the use of a key on %s", (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  const read = (key: string, path = "/api/usage/token") =>
    fetch(app.url + path, { headers: { authorization: `Bearer ${key}` } });

  test("tells what was granted, used and is left, in units, and the models it may call", async () => {
    const user = await app.createUser({ quota: 1_000_000 });
    const { key } = await app.createToken(user.id, {
      name: "robot",
      remainQuota: 700,
      usedQuota: 300,
      unlimitedQuota: false,
      expiredTime: 4_000_000_000,
      modelLimitsEnabled: true,
      modelLimits: "gpt-4o-mini,claude-sonnet-4-5",
    });
    for (const path of ["/api/usage/token", "/api/usage/token/"]) {
      const answer = await read(key, path);
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect([answer.status, await answer.json()]).toEqual([
        200,
        {
          code: true,
          message: "ok",
          data: {
            object: "token_usage",
            name: "robot",
            total_granted: 1000,
            total_used: 300,
            total_available: 700,
            unlimited_quota: false,
            model_limits: { "gpt-4o-mini": true, "claude-sonnet-4-5": true },
            model_limits_enabled: true,
            expires_at: 4_000_000_000,
            limits: null,
          },
        },
      ]);
    }
  });

  test("a key without limits says so; a used-up one may still ask", async () => {
    const user = await app.createUser();
    const open = await app.createToken(user.id, { unlimitedQuota: true });
    expect(await (await read(open.key)).json()).toMatchObject({
      data: { unlimited_quota: true, model_limits: {}, model_limits_enabled: false, expires_at: 0 },
    });
    const empty = await app.createToken(user.id, { remainQuota: 0, unlimitedQuota: false, status: 4 });
    expect(await (await read(empty.key)).json()).toMatchObject({ data: { total_available: 0 } });
  });

  test("an unknown key and none are refused, and nobody asks without end", async () => {
    for (const key of [`sk-${"x".repeat(48)}`, ""]) {
      const answer = await read(key);
      expect([answer.status, await answer.json()]).toMatchObject([
        401,
        { success: false, code: "token_invalid" },
      ]);
    }
    const user = await app.createUser();
    const { key } = await app.createToken(user.id);
    const statuses = new Set<number>();
    let refused: Response | undefined;
    for (let i = 0; i < 70; i++) {
      const answer = await read(key);
      statuses.add(answer.status);
      if (answer.status === 429) refused = answer;
    }
    expect([...statuses]).toEqual([200, 429]);
    expect(Number(refused?.headers.get("retry-after"))).toBeGreaterThan(0);
  });
});
