// The islands' library: calls and their failures, lists that follow the address, formats, ranges of time.
import { describe, expect, test } from "bun:test";
import { act, screen } from "@testing-library/react";
import { ApiFailure, api, call, fetchChecked, transport } from "../../islands/lib/api.ts";
import {
  formatCompact,
  formatDateTime,
  formatDollars,
  formatDuration,
  formatQuota,
  formatWhen,
  maskSecret,
} from "../../islands/lib/format.ts";
import { useList } from "../../islands/lib/list.ts";
import { setLanguage } from "../../islands/lib/i18n.ts";
import { useTableQuery } from "../../islands/lib/table-query.ts";
import { parseLocal, rangeOf, shiftRange, startOfDay } from "../../islands/lib/time-range.ts";
import { patchUrl, setQuery } from "../../islands/lib/url-state.ts";
import { TEST_STATUS, renderPart, settle } from "./render.tsx";

async function failureOf(running: Promise<unknown>): Promise<ApiFailure> {
  const error = await running.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ApiFailure);
  return error as ApiFailure;
}

describe("calls", () => {
  test("carry the user's id and give the envelope's data untouched", async () => {
    const island = renderPart(null);
    island.answer("GET /api/status", {
      success: true,
      message: "",
      data: { system_name: "2024-01-01T00:00:00Z", version: "007" },
    });
    const status = await call(api.status.get());
    expect(island.requests[0]?.headers["new-api-user"]).toBe("7");
    expect(status.system_name).toBe("2024-01-01T00:00:00Z");
    expect(status.version).toBe("007");
  });

  test("refused ones fail with the server's text, code and field, although the status is 200", async () => {
    const island = renderPart(null);
    island.answer("GET /api/status", {
      success: false,
      message: "No such thing",
      code: "gone",
      field: "name",
    });
    const failure = await failureOf(call(api.status.get()));
    expect(failure).toMatchObject({ message: "No such thing", code: "gone", field: "name", status: 200 });
  });

  test.each([
    [429, "", { "retry-after": "12" }, "Too many requests. Try again in 12 s."],
    [429, "", {}, "Too many requests. Try again later."],
    [500, "", {}, "Internal server error. Contact your administrator."],
    [405, "", {}, "This site is for demonstration only and has no server"],
    [200, "<html>", {}, "The server sent a response that cannot be read"],
  ])("status %d without a readable body says what to do", async (status, body, headers, text) => {
    const island = renderPart(null);
    island.answer(
      "GET /api/status",
      () => new Response(body, { status, headers: headers as Record<string, string> }),
    );
    expect((await failureOf(call(api.status.get()))).message).toBe(text);
    expect(island.visited).toEqual([]);
  });

  test("an unreachable server is told as such, a call given up on purpose is not a failure", async () => {
    renderPart(null);
    transport.fetch = () => Promise.reject(new TypeError("failed"));
    expect(await failureOf(call(api.status.get()))).toMatchObject({
      code: "network",
      message: "Cannot reach the server",
    });
    transport.fetch = () => Promise.reject(new DOMException("gone", "AbortError"));
    const error = await call(api.status.get()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DOMException);
  });

  test("untyped ones fail in the same way", async () => {
    const island = renderPart(null);
    island.answer("POST /pg/chat/completions", () =>
      Response.json({ error: { message: "Choose a model", code: "model_required" } }, { status: 400 }),
    );
    const failure = await failureOf(fetchChecked("/pg/chat/completions", { method: "POST", body: "{}" }));
    expect(failure).toMatchObject({ code: "model_required", message: "Choose a model", status: 400 });
  });
});

describe("lists", () => {
  const pages: Record<string, PromiseWithResolvers<string[]>> = {};

  let refresh: () => Promise<void>;
  let patch: (change: (rows: readonly string[]) => readonly string[]) => () => void;

  function List() {
    const table = useTableQuery(10);
    const queryKey = String(table.page);
    const list = useList<string>({
      initial: { rows: ["first"], total: 30 },
      queryKey,
      load: async () => {
        const waiting = (pages[queryKey] ??= Promise.withResolvers<string[]>());
        return { rows: await waiting.promise, total: 30 };
      },
    });
    ({ refresh, patch } = list);
    return (
      <p>
        {list.phase}: {list.rows.join()} {list.failure}
      </p>
    );
  }
  const shown = () => screen.getByText(/:/).textContent;

  test("ask nothing for the first page and only show the latest question's answer", async () => {
    renderPart(<List />, { url: "/x" });
    expect(shown()).toBe("ready: first ");
    expect(pages).toEqual({});
    act(() => setQuery({ p: 2 }));
    act(() => setQuery({ p: 3 }));
    expect(shown()).toBe("refreshing: first ");
    pages["3"]?.resolve(["third"]);
    await settle();
    pages["2"]?.resolve(["second"]);
    await settle();
    expect(shown()).toBe("ready: third ");
    expect(location.search).toBe("?p=3");
  });

  test("a late action reads the page that is shown then, and notes it under its own address", async () => {
    for (const page of ["1", "5", "6"]) pages[page] = Promise.withResolvers();
    renderPart(<List />, { url: "/x?p=5" });
    const [late, undo] = [refresh, patch(() => ["patched"])];
    act(() => setQuery({ p: 6 }));
    pages["6"]?.resolve(["sixth"]);
    await settle();
    await act(late);
    act(undo);
    expect(shown()).toBe("ready: sixth ");
    pages["5"]?.resolve(["fifth"]);
    act(() => setQuery({ p: 5 }));
    await settle();
    expect(shown()).toBe("ready: fifth ");
  });

  test("a failed page keeps the rows that were there", async () => {
    renderPart(<List />, { url: "/x" });
    act(() => setQuery({ p: 4 }));
    pages["4"]?.reject(new ApiFailure("x", 500, "Broken"));
    await settle();
    expect(shown()).toBe("failed: first Broken");
  });

  test("Back before the answer, or after its failure, shows the page anew", async () => {
    for (const page of ["1", "7", "8"]) pages[page] = Promise.withResolvers();
    renderPart(<List />, { url: "/x" });
    act(() => setQuery({ p: 7 }));
    act(() => setQuery({ p: undefined }));
    pages["1"]?.resolve(["first anew"]);
    await settle();
    expect(shown()).toBe("ready: first anew ");
    act(() => setQuery({ p: 8 }));
    pages["8"]?.reject(new ApiFailure("x", 500, "Broken"));
    await settle();
    expect(shown()).toBe("failed: first anew Broken");
    act(() => setQuery({ p: undefined }));
    await settle();
    expect(shown()).toBe("ready: first anew ");
  });
});

describe("formats", () => {
  test("money has two decimals, tiny amounts as many as they need", () => {
    expect(
      [0, 12.3, 1234.5, 0.25, 0.0024, 0.0000181, 0.0000001, -3].map((value) => formatDollars(value)),
    ).toEqual(["$0", "$12.30", "$1,234.50", "$0.25", "$0.0024", "$0.000018", "<$0.000001", "-$3.00"]);
    expect(formatQuota(1_000_000, TEST_STATUS)).toBe("$2.00");
    expect(formatQuota(1_000_000, { ...TEST_STATUS, display_in_currency: false })).toBe("1,000,000");
  });

  test("durations, tokens and secrets", () => {
    expect([420, 3210, 59_960, 125_000, 3_900_000].map(formatDuration)).toEqual([
      "420 ms",
      "3.2 s",
      "1 m 00 s",
      "2 m 05 s",
      "1 h 05 m",
    ]);
    expect([950, 12_345, 4_560_000, 1_200_000_000].map(formatCompact)).toEqual([
      "950",
      "12.3k",
      "4.56M",
      "1.2B",
    ]);
    // From 10,000 on, and never "1000k".
    expect(
      [0, 4900, 9999, 10_000, 10_049, 999_949, 999_960, 1_000_000, 999_999_999].map(formatCompact),
    ).toEqual(["0", "4,900", "9,999", "10k", "10k", "999.9k", "1M", "1M", "1B"]);
    expect([-9999, -10_000, -999_999, 1e15].map(formatCompact)).toEqual([
      "-9,999",
      "-10k",
      "-1M",
      "1000000B",
    ]);
    expect(maskSecret("sk-abcdef1234")).toBe("••••1234");
    expect(maskSecret("abc")).toBe("••••");
  });

  test("times are relative within a day and local beyond it, in both languages", () => {
    const now = Date.UTC(2026, 10, 20, 12);
    setLanguage("en");
    expect(formatWhen(now - 3 * 60_000, now, "UTC")).toBe("3 min ago");
    expect(formatWhen(now - 2 * 86_400_000, now, "Asia/Shanghai")).toBe("2026-11-18 20:00");
    setLanguage("zh");
    expect(formatWhen(now - 3 * 60_000, now, "UTC")).toBe("3 分钟前");
    // The server's clock may be ahead of the browser's; nothing that was noted lies in the future.
    for (const ahead of [1, 60_000, 299_000]) expect(formatWhen(now + ahead, now, "UTC")).toBe("刚刚");
    expect(formatWhen(now + 2 * 3_600_000, now, "UTC")).toBe("2026-11-20 14:00");
    expect(formatDateTime(now, "America/New_York")).toBe("2026-11-20 07:00:00");
  });
});

describe("ranges", () => {
  const now = Date.UTC(2026, 10, 20, 12, 0, 0);
  test("presets stay relative, fixed ones are read from the API's names, wrong ones fall back", () => {
    expect(rangeOf({ range: "1h" }, now, "UTC", "24h")).toEqual({
      preset: "1h",
      from: now / 1000 - 3600,
      to: now / 1000,
    });
    expect(rangeOf({ start_timestamp: "10", end_timestamp: "20" }, now, "UTC", "24h")).toEqual({
      preset: undefined,
      from: 10,
      to: 20,
    });
    expect(rangeOf({ start_timestamp: "20", end_timestamp: "10" }, now, "UTC", "7d").preset).toBe("7d");
    expect(shiftRange({ preset: "1h", from: 100, to: 200 }, -1)).toEqual({ from: 0, to: 100 });
  });

  test("days begin and fields are read in the zone of the person", () => {
    expect(startOfDay(now, "Asia/Shanghai")).toBe(Date.UTC(2026, 10, 19, 16) / 1000);
    expect(parseLocal("2026-11-20T20:00", "Asia/Shanghai")).toBe(now / 1000);
    expect(parseLocal("rubbish", "UTC")).toBeUndefined();
  });

  test.each([
    // Six hours before and behind both changes of a year, and within them.
    ["America/New_York", "2026-03-08T01:30", "2026-03-08T06:30Z"],
    ["America/New_York", "2026-03-08T03:30", "2026-03-08T07:30Z"],
    ["America/New_York", "2026-03-08T02:30", "2026-03-08T07:30Z"],
    ["America/New_York", "2026-11-01T00:00", "2026-11-01T04:00Z"],
    ["America/New_York", "2026-11-01T01:30", "2026-11-01T05:30Z"],
    ["America/New_York", "2026-11-01T03:00", "2026-11-01T08:00Z"],
    ["Europe/Berlin", "2026-03-29T01:30", "2026-03-29T00:30Z"],
    ["Europe/Berlin", "2026-03-29T03:30", "2026-03-29T01:30Z"],
    ["Europe/Berlin", "2026-10-25T01:00", "2026-10-24T23:00Z"],
    ["Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30Z"],
    ["Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00Z"],
  ])("near a change of the clock in %s, %s is %s", (zone, text, moment) => {
    expect(parseLocal(text, zone)).toBe(Date.parse(moment) / 1000);
  });
});

test("the address drops what is empty and keeps the rest", () => {
  expect(patchUrl("/log?type=2&p=3", { p: undefined, model_name: "a b" })).toBe("/log?type=2&model_name=a+b");
  expect(patchUrl("/log?p=3", { p: null })).toBe("/log");
});
