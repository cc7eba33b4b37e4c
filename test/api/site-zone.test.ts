// The site's own time zone: taken from the browser that sets it up, refused where nobody knows it, and the days of the
// figures cut in it, also those of 23 and 25 hours.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

const HOUR = 3600;
/** In Berlin 2026-03-29 has 23 hours and 2026-10-25 has 25. */
const NOW = Date.UTC(2026, 10, 10, 12) / 1000;
const ACCOUNT = { username: "owner", password: "long enough", confirmPassword: "long enough" };

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let app: TestApp;
  let root: TestUser;
  beforeAll(async () => {
    app = await startTestApp({ database, clock: { nowMs: () => NOW * 1000 } });
  });
  afterAll(() => app.close());

  test("setting up with a zone that nobody knows is refused and makes nothing; with the browser's, it is the site's", async () => {
    const refused = await app.call("POST", "/api/setup", { ...ACCOUNT, time_zone: "Mars/Base" });
    expect([refused.status, refused.body["code"]]).toEqual([400, "option_not_time_zone"]);
    expect((await app.call<{ data: unknown }>("GET", "/api/setup")).body.data).toMatchObject({
      status: false,
      root_init: false,
    });
    const done = await app.call("POST", "/api/setup", { ...ACCOUNT, time_zone: "Europe/Berlin" });
    expect(done.body["success"]).toBe(true);
    expect(app.deps.options.get("site.time_zone")).toBe("Europe/Berlin");
    expect((await app.call<{ data: unknown }>("GET", "/api/status")).body.data).toMatchObject({
      time_zone: "Europe/Berlin",
    });
  });

  test.each(["", "Mars/Base", "UTC+8", "+08:00", "+0800", "Asia/Shanghai ", "東京"])(
    "the option refuses %p in both languages and stays as it is",
    async (zone) => {
      root ??= await app.createUser({ role: 100 });
      const put = (language: string) =>
        app.call(
          "PUT",
          "/api/option/",
          { key: "site.time_zone", value: zone },
          {
            ...root,
            headers: { ...root.headers, "accept-language": language },
          },
        );
      expect((await put("en")).body).toMatchObject({
        success: false,
        code: "option_not_time_zone",
        message: "This is not the name of a time zone, such as Asia/Shanghai",
      });
      expect((await put("zh")).body["message"]).toBe("不是时区名称，应形如 Asia/Shanghai");
      expect(app.deps.options.get("site.time_zone")).toBe("Europe/Berlin");
    },
  );

  test.each([
    ["the shortest", [2026, 2, 28], 23],
    ["the longest", [2026, 9, 24], 25],
  ] as const)("a summary counts %s day of the site's year as one", async (_, [year, month, day], hours) => {
    root ??= await app.createUser({ role: 100 });
    // Three days from midnight in Berlin, the changed one in the middle.
    const offset = month === 2 ? 1 : 2;
    const from = Date.UTC(year, month, day) / 1000 - offset * HOUR;
    const to = from + (48 + hours) * HOUR;
    const found = await app.call<{ data: { at: number[]; to: number } }>(
      "GET",
      `/api/data/summary?start_timestamp=${from}&end_timestamp=${to - 1}&granularity=day`,
      undefined,
      root,
    );
    const { at } = found.body.data;
    expect([...at, found.body.data.to].map((each) => (each - from) / HOUR)).toEqual([
      0,
      24,
      24 + hours,
      48 + hours,
    ]);
    // Who names a zone gets that one's days.
    const utc = await app.call<{ data: { at: number[] } }>(
      "GET",
      `/api/data/summary?start_timestamp=${from}&end_timestamp=${to - 1}&granularity=day&time_zone=UTC`,
      undefined,
      root,
    );
    expect(utc.body.data.at.slice(1).every((each) => each % (24 * HOUR) === 0)).toBe(true);
  });
});
