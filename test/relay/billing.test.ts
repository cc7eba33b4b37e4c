// The billing calls of old OpenAI clients: whose sums they show, in which unit, and to whom.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway } from "./support.ts";
import type { Gateway } from "./support.ts";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({ quota: 5_000_000 });
});
afterAll(() => g.close());

async function get(path: string, key = g.key): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(g.app.url + path, { headers: { authorization: `Bearer ${key}` } });
  expect(response.headers.get("cache-control")).toBe("no-store");
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** Spends 9 × 0.075 + 3 × 4 × 0.075 units, rounded: the fake upstream's usage at the model's price. */
async function spend(key: string): Promise<number> {
  const response = await g.chat({}, { authorization: `Bearer ${key}` });
  expect(response.status).toBe(200);
  return (await g.lastCharge())?.quota ?? 0;
}

describe.each(["/v1/dashboard/billing", "/dashboard/billing"])("%s", (prefix) => {
  test("a limited key shows its own sums in dollars and cents, and its expiry", async () => {
    const { key } = await g.app.createToken(g.user.id, {
      remainQuota: 1_000_000,
      unlimitedQuota: false,
      expiredTime: 4_000_000_000,
    });
    const spent = await spend(key);
    expect(spent).toBeGreaterThan(0);
    expect((await get(`${prefix}/subscription`, key)).body).toEqual({
      object: "billing_subscription",
      has_payment_method: true,
      soft_limit_usd: 2,
      hard_limit_usd: 2,
      system_hard_limit_usd: 2,
      access_until: 4_000_000_000,
    });
    const dates = "?start_date=2025-01-01&end_date=2025-02-01";
    expect((await get(`${prefix}/usage${dates}`, key)).body).toEqual({
      object: "list",
      total_usage: (spent / 500_000) * 100,
    });
  });

  test("an unlimited key reports the large limit", async () => {
    expect((await get(`${prefix}/subscription`)).body).toMatchObject({
      hard_limit_usd: 100_000_000,
      access_until: 0,
    });
  });

  test("the owner's sums where the site shows those, in units where it shows no currency", async () => {
    await g.setOption("DisplayTokenStatEnabled", "false");
    await g.setOption("DisplayInCurrencyEnabled", "false");
    await spend(g.key);
    const { quota, used } = await g.balance();
    expect((await get(`${prefix}/subscription`)).body).toMatchObject({ hard_limit_usd: quota + used });
    expect((await get(`${prefix}/usage`)).body).toEqual({ object: "list", total_usage: used * 100 });
    await g.setOption("DisplayTokenStatEnabled", "true");
    await g.setOption("DisplayInCurrencyEnabled", "true");
  });

  test("no key and unknown keys are refused like everywhere", async () => {
    expect(await get(`${prefix}/usage`, "")).toMatchObject({
      status: 401,
      body: { error: { type: "new_api_error" } },
    });
    expect((await get(`${prefix}/subscription`, "sk-unknown")).status).toBe(401);
  });
});
