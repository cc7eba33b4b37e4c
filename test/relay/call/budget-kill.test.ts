// A budget outlives its process: the built program is stopped, and killed, and counts on from where it was. On both databases.
import { expect, test } from "bun:test";
import { startFakeUpstream } from "../../support/fake-upstream.ts";
import { startOperator } from "../../support/operator.ts";
import { createTestDatabase, DATABASE_KINDS } from "../../support/postgres.ts";
import { startServerProcess } from "../../support/server.ts";

const MODEL = "gpt-4o-mini";
const PRICE = 10;

test.concurrent.each(DATABASE_KINDS)(
  "on %s what was spent is still spent after a stop and after kill -9",
  async (kind) => {
    const upstream = await startFakeUpstream();
    const database = await createTestDatabase(kind);
    const server = await startServerProcess({ DATABASE_URL: database.databaseUrl ?? "" });
    const operator = await startOperator(server, { base_url: upstream.url, models: MODEL });
    await operator.send("PUT", "/api/option/", {
      key: "ModelPrice",
      value: JSON.stringify({ [MODEL]: PRICE / 500_000 }),
    });
    const made = await operator.send("POST", "/api/token/", {
      name: "agent",
      unlimited_quota: true,
      budget_quota: 4 * PRICE,
      budget_period: "month",
    });
    const { id, key } = made as { id: number; key: string };
    const call = async () => {
      const response = await fetch(`${server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer sk-${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "hi" }] }),
      });
      await response.text();
      return [response.status, response.headers.get("x-weir-error-code")];
    };
    const spent = async () =>
      (await operator.send("GET", `/api/token/${id}`)) as { budget_used: number; budget_resets_at: number };

    expect([await call(), await call()]).toEqual([
      [200, null],
      [200, null],
    ]);
    await server.kill();
    await server.restart();
    expect(await spent()).toMatchObject({ budget_used: 2 * PRICE });
    expect(await call()).toEqual([200, null]);
    await server.stop();
    await server.restart();
    expect(await call()).toEqual([200, null]);
    expect(await call()).toEqual([429, "budget_exceeded"]);
    await server.kill();
    await server.restart();
    expect(await call()).toEqual([429, "budget_exceeded"]);
    const told = await spent();
    expect(told.budget_used).toBe(4 * PRICE);
    expect(told.budget_resets_at).toBeGreaterThan(Date.now() / 1000);

    await server.stop();
    expect(server.audit()).toMatchObject({ code: 0 });
    await server.remove();
    await database.drop();
    upstream.stop();
  },
  60_000,
);
