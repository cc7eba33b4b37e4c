// B9 from outside: the time of day of a running server is set back and forth; nobody waits longer than the rule says.
// Refuses the machine's clock: the server has one of its own, where a C compiler is there to make it.
import { expect, test } from "bun:test";
import { hasCompiler, makeClock } from "../support/process-clock.ts";
import { askFrom } from "../support/outsider.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";
import { callPlan, PASSWORD, startSite } from "./site.ts";

const DAY_SECONDS = 86_400;
const LONGEST_WAIT_SECONDS = 900;

test.if(hasCompiler).each(DATABASE_KINDS)(
  "B9: 40 days back and forth on %s",
  async (kind) => {
    const clock = makeClock();
    const site = await startSite({ kind, env: clock.env });
    const person = await site.person(1_000_000);
    const key = await person.key();
    await site.set("ModelRequestRateLimitEnabled", "true");
    await site.set("ModelRequestRateLimitSuccessCount", "1000");
    await site.set("ModelRequestRateLimitCount", "8");
    const login = (password: string, from: string) =>
      askFrom(from, site.server.url, {
        method: "POST",
        path: "/api/user/login",
        body: JSON.stringify({ username: person.username, password }),
      });
    const retryAfter = (headers: string) => Number(/retry-after: (\d+)/i.exec(headers)?.[1] ?? 0);
    const date = async () =>
      Date.parse(
        ((await fetch(`${site.server.url}/api/status`)).headers.get("date") ?? "") || new Date().toString(),
      );
    expect(await date()).toBeGreaterThan(0);

    for (let number = 0; number < 5; number++) await login("wrong", "127.0.0.2");
    for (let number = 0; number < 8; number++) await callPlan(site.server.url, key, { id: "before" });
    for (const days of [-40, 0, 40, 0]) {
      clock.set(days * DAY_SECONDS);
      const wrong = await login("wrong", "127.0.0.2");
      expect(retryAfter(wrong.headers)).toBeLessThanOrEqual(LONGEST_WAIT_SECONDS);
      // The owner at another address waits for nothing.
      const right = await login(PASSWORD, "127.0.0.3");
      expect([days, right.status]).toEqual([days, 200]);
      const answer = await fetch(`${site.server.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "mock-chat", messages: [{ role: "user", content: "hi" }] }),
      });
      await answer.text();
      // The window has not moved: eight calls a minute, whatever the day is called.
      expect([days, answer.status]).toEqual([days, 429]);
      expect(Number(answer.headers.get("retry-after") ?? 0)).toBeLessThanOrEqual(60);
    }
    clock.set(0);
    await site.set("ModelRequestRateLimitEnabled", "false");
    expect((await callPlan(site.server.url, key, { id: "after" })).status).toBe(200);
    await site.server.stop();
    expect(site.server.audit()).toMatchObject({ code: 0 });
    await site.remove();
    clock.remove();
  },
  60_000,
);
