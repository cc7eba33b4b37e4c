// The profile's first state: the threshold of warnings that is in force, one's own or the site's. A fresh site warns below a
// dollar; a site from before keeps what it had.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { PersonalData } from "../../islands/screens/personal.tsx";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  beforeAll(async () => {
    app = await startTestApp({ database });
  });
  afterAll(() => app.close());

  const shown = async (user: TestUser) => {
    const { text } = await app.call("GET", "/personal", undefined, user);
    const json = /<script[^>]*type="application\/json"[^>]*>([^<]*)<\/script>/.exec(text)?.[1] ?? "";
    return (JSON.parse(json) as { data: PersonalData }).data.threshold;
  };

  test("the site's until one has chosen, then one's own; the same that warnings go by", async () => {
    // An installation from before this release: set up, with nothing stored.
    expect(app.deps.options.get("QuotaRemindThreshold")).toBe(1000);
    const account = { username: "owner", password: "long enough", confirmPassword: "long enough" };
    expect((await app.call("POST", "/api/setup", account)).body["success"]).toBe(true);
    expect(app.deps.options.get("QuotaRemindThreshold")).toBe(500_000);
    const user = await app.createUser();
    expect(await shown(user)).toBe(500_000);
    await app.deps.options.set("QuotaRemindThreshold", "20000");
    expect(await shown(user)).toBe(20_000);
    const setting = { notify_type: "email", quota_warning_threshold: 7000 };
    expect((await app.call("PUT", "/api/user/setting", setting, user)).body["success"]).toBe(true);
    expect(await shown(user)).toBe(7000);
  });
});
