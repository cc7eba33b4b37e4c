// The keys of a channel in its editor: how each is and why, and what is done to them at once, without saving the channel.
import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { countKeys } from "../../islands/screens/channel/keys/add-keys.tsx";
import type { ChannelKeys, ChannelKeyState } from "../../islands/lib/wire.ts";
import { calls, channel, done, openChannels, writes } from "./channel-fixture.ts";
import type { OpenOptions } from "./channel-fixture.ts";
import type { Island, SentRequest } from "./render.tsx";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;
const VERTEX = 41;

beforeAll(async () => {
  // Parts that are loaded on demand: a slow first import must not decide a test.
  await import("../../islands/screens/channel/drawer.tsx");
  await import("../../islands/screens/channel/keys/keys-part.tsx");
  await import("../../islands/screens/channel/routing-part.tsx");
  await import("../../islands/screens/channel/rewrite-part.tsx");
});
beforeEach(() => {
  localStorage.clear();
  sessionStorage.clear();
});

function key(id: number, part: Partial<ChannelKeyState> = {}): ChannelKeyState {
  return {
    index: id - 1,
    key_id: id,
    tail: String(id).repeat(4),
    label: "",
    status: 1,
    disabled_reason: "",
    disabled_time: 0,
    max_concurrency: 0,
    rpm_limit: 0,
    tpm_limit: 0,
    used_quota: 0,
    last_used: 0,
    requests: 0,
    limited_requests: 0,
    in_flight: 0,
    rests_until: 0,
    reason: "",
    detail: "",
    models: [],
    ...part,
  };
}

const KEYS = [
  key(1, {
    label: "team A",
    used_quota: 500_000,
    last_used: NOW - 120,
    requests: 12,
    limited_requests: 3,
    in_flight: 2,
    max_concurrency: 5,
    tpm_limit: 100_000,
    models: [{ model: "gpt-5", rests_until: NOW, reason: "limited", detail: "" }],
  }),
  key(2, {
    rests_until: NOW + 3600,
    reason: "rejected",
    detail: '{"error":{"message":"Incorrect key"}}',
  }),
  key(3, { status: 3, disabled_reason: "Account deactivated", disabled_time: NOW - 7200 }),
  key(4, { status: 2, disabled_time: NOW - 86_400, tail: "" }),
];

function page(keys: readonly ChannelKeyState[], part: Partial<ChannelKeys> = {}): ChannelKeys {
  const count = (status: number) => keys.filter((each) => each.status === status).length;
  const resting = keys.filter((each) => each.status === 1 && each.rests_until > 0);
  return {
    changed: 0,
    tests: [],
    keys: [...keys],
    total: keys.length,
    page: 1,
    page_size: 20,
    total_pages: 1,
    enabled_count: count(1),
    manual_disabled_count: count(2),
    auto_disabled_count: count(3),
    resting_count: resting.length,
    resting_until: resting[0]?.rests_until ?? 0,
    ...part,
  };
}

const ROWS = [channel(5, { name: "echo", key_count: 4, keys_on: 2 })];

async function openKeys(
  answer: (sent: Record<string, unknown>) => ChannelKeys = () => page(KEYS),
  options: OpenOptions = {},
): Promise<Island> {
  const island = openChannels({ url: "/channel?edit=5", rows: ROWS, ...options });
  island.answer("POST /api/channel/multi_key/manage", ({ body }: SentRequest) => ({
    success: true,
    data: answer(body as Record<string, unknown>),
  }));
  await screen.findByRole("group", { name: options.language === "zh" ? "密钥状态" : "Key status" });
  await done();
  return island;
}

const manager = () => within(screen.getByRole("group", { name: "Key status" }));
const rows = () => manager().getAllByRole("listitem");
const actions = (island: Island) =>
  calls(island)
    .filter(([, path]) => String(path).endsWith("/manage"))
    .map(([, , body]) => body as Record<string, unknown>);

async function choose(island: Island, name: string, item: string): Promise<void> {
  await island.user.click(manager().getByRole("button", { name }));
  await island.user.click(manager().getByRole("menuitem", { name: item }));
  await done();
}

async function answerYes(island: Island, name: string): Promise<void> {
  await island.user.click(
    within(screen.getByRole("dialog", { name })).getByRole("button", { name: /^(Delete|Switch)/ }),
  );
  await done();
}

describe("each key", () => {
  test("says whether it is on, rests, went off by itself or by hand; since when, why, what it did; the key itself never", async () => {
    await openKeys();
    expect(
      manager().getByText("1 of 4 on, 1 resting until 11-20 13:00, 1 off by itself, 1 off by hand"),
    ).toBeTruthy();
    const [first, second, third, fourth] = rows().map((row) => row.textContent);
    expect(first).toContain("••••1111team AActive");
    expect(first).toContain("gpt-5: resting until 11-20 12:00Rate-limited by the upstream");
    expect(first).toContain("12 requests · 3 × 429 · 2 in flight");
    expect(first).toContain("Used $1.00");
    expect(first).toContain("≤ 5 at once≤ 100,000 tokens a minute");
    expect(second).toContain("Resting until 11-20 13:00Rejected by the upstream: Incorrect key");
    expect(third).toContain("Off by itself since 11-20 10:00Account deactivated");
    expect(fourth).toContain("Key 4Off by hand since 11-19 12:00");
    expect(screen.getByRole<HTMLInputElement>("textbox", { name: /^Key\b/ }).value).toBe("");
  });

  test("a key that rests by hand says so, in both languages", async () => {
    const resting = key(1, { rests_until: NOW, reason: "by_hand" });
    await openKeys(() => page([resting]), { language: "zh" });
    expect(screen.getByText("手动暂停")).toBeTruthy();
  });
});

describe("what is done to one key", () => {
  test("tested: the answer stands in its row", async () => {
    const island = await openKeys(({ action, key_id: id }) =>
      page(KEYS, {
        tests:
          action !== "test_key"
            ? []
            : id === 1
              ? [{ index: 0, key_id: 1, success: true, message: "", time: 0.314 }]
              : [
                  {
                    index: 1,
                    key_id: 2,
                    success: false,
                    message: "Incorrect key",
                    code: "upstream_auth",
                    time: 0.1,
                  },
                ],
      }),
    );
    await island.user.click(manager().getByRole("button", { name: "Test team A (••••1111)" }));
    await island.user.click(manager().getByRole("button", { name: "Test ••••2222" }));
    await done();
    expect(rows()[0]?.textContent).toContain("Answered after 0.31 s");
    expect(rows()[1]?.textContent).toContain("Test failed: Incorrect key");
  });

  test("rested, let go on, switched off with undo, on, deleted after a question: each is one call", async () => {
    const island = await openKeys();
    await choose(island, "Actions for team A (••••1111)", "Rest for an hour");
    await choose(island, "Actions for ••••2222", "End the rest");
    await choose(island, "Actions for ••••3333", "Switch on");
    await choose(island, "Actions for team A (••••1111)", "Switch off");
    await island.user.click(screen.getByRole("button", { name: "Undo" }));
    await done();
    await choose(island, "Actions for Key 4", "Delete");
    await answerYes(island, "Delete Key 4?");
    const on = { channel_id: 5, page: 1, page_size: 20 };
    expect(actions(island)).toEqual([
      { ...on, action: "rest_key", key_id: 1, minutes: 60 },
      { ...on, action: "rest_key", key_id: 2, minutes: 0 },
      { ...on, action: "enable_key", key_id: 3 },
      { ...on, action: "disable_key", key_id: 1 },
      { ...on, action: "enable_key", key_id: 1 },
      { ...on, action: "delete_key", key_id: 4 },
    ]);
    // What was deleted took its buttons along.
    expect(document.activeElement?.textContent).toBe("Add keys");
  });

  test("named and capped in its place; what is no number stays there", async () => {
    const island = await openKeys();
    await choose(island, "Actions for team A (••••1111)", "Name and caps");
    const form = within(manager().getByRole("group", { name: "Name and caps of team A (••••1111)" }));
    const type = async (name: string, text: string) => {
      await island.user.clear(form.getByRole("textbox", { name }));
      await island.user.type(form.getByRole("textbox", { name }), text);
    };
    await type("Name", "team B");
    await type("Requests a minute", "-3");
    await island.user.keyboard("{Enter}");
    expect(form.getByRole("alert").textContent).toBe("Enter a whole number of at least 0");
    await type("Requests a minute", "60");
    await type("Calls at once", "0");
    await island.user.keyboard("{Enter}");
    await done();
    const caps = { max_concurrency: 0, rpm_limit: 60, tpm_limit: 100_000 };
    expect(actions(island)).toMatchObject([{ action: "edit_key", key_id: 1, label: "team B", ...caps }]);
    expect(manager().queryByRole("group", { name: /^Name and caps/ })).toBeNull();
    // The channel itself was not saved.
    expect(writes(island).map(({ method }) => method)).not.toContain("PUT");
  });

  test("the last key cannot be deleted", async () => {
    const island = await openKeys(() => page([key(1)]));
    await island.user.click(manager().getByRole("button", { name: "Actions for ••••1111" }));
    expect(manager().getByRole("menuitem", { name: "Delete" }).getAttribute("aria-disabled")).toBe("true");
  });
});

describe("what is done to all", () => {
  test("pasted keys join those before", async () => {
    const island = await openKeys();
    await island.user.click(manager().getByRole("button", { name: "Add keys" }));
    await island.user.type(
      manager().getByRole("textbox", { name: "One key per line" }),
      "sk-a\n\nsk-b\nsk-a",
    );
    await island.user.click(manager().getByRole("button", { name: "Add 2 keys" }));
    await done();
    const put = calls(island).find(([method]) => method === "PUT");
    expect(put?.[2]).toEqual({ id: 5, key: "sk-a\n\nsk-b\nsk-a", key_mode: "append" });
    expect(manager().queryByRole("textbox", { name: "One key per line" })).toBeNull();
    expect(countKeys('[{"a":1},{"b":2}]', VERTEX)).toBe(2);
    expect(countKeys('{"a":\n1}', VERTEX)).toBe(1);
  });

  test("switched on, off and deleted after a question, tested; each is one call", async () => {
    const island = await openKeys();
    const all = "Actions for all keys";
    await choose(island, all, "Switch all on");
    await choose(island, all, "Switch all off");
    await answerYes(island, "Switch 4 keys off?");
    await choose(island, all, "Delete keys that are off");
    await answerYes(island, "Delete 2 keys that are off?");
    await choose(island, all, "Test all");
    expect(actions(island).map(({ action }) => action)).toEqual([
      "enable_all_keys",
      "disable_all_keys",
      "delete_disabled_keys",
      "test_all_keys",
    ]);
  });

  test("many keys come in pages, and a refusal is told", async () => {
    const island = await openKeys(({ page: shown }) =>
      page([key(Number(shown))], { page: Number(shown), total: 21, total_pages: 2 }),
    );
    expect(manager().getByText("Page 1 of 2")).toBeTruthy();
    await island.user.click(manager().getByRole("button", { name: "Next keys" }));
    await done();
    expect(rows()[0]?.textContent).toContain("••••2222");
    island.answer("POST /api/channel/multi_key/manage", {
      success: false,
      message: "one key must stay",
      code: "x",
    });
    await choose(island, "Actions for ••••2222", "Switch off");
    expect(screen.getByText("one key must stay")).toBeTruthy();
  });
});

test("the channel's own caps and turns are saved with it", async () => {
  const island = await openKeys();
  const editor = within(screen.getByRole("dialog"));
  await island.user.selectOptions(editor.getByRole("combobox", { name: /^Turns/ }), "By user");
  await island.user.type(editor.getByRole("spinbutton", { name: /^Calls at once/ }), "7");
  await island.user.click(editor.getByRole("button", { name: "Save" }));
  await done();
  const put = calls(island).find(([method]) => method === "PUT");
  expect(put?.[2]).toEqual({ id: 5, multi_key_mode: "affinity", max_concurrency: 7 });
});
