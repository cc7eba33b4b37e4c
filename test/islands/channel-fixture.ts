// A channel screen with five rows and a server that answers every call of it, for the tests beside this file.
// Refuses calls that nobody prepared, like the page's own support.
import { screen } from "@testing-library/react";
import ChannelScreen from "../../islands/screens/channel.tsx";
import type { ChannelPageData } from "../../islands/screens/channel/row.ts";
import { renderScreen, settle } from "./render.tsx";
import type { SentRequest, Island, IslandOptions } from "./render.tsx";
import type { ChannelKeys, ChannelRow } from "../../islands/lib/wire.ts";

const NOW = Date.UTC(2026, 10, 20, 12) / 1000;

export function channel(id: number, part: Partial<ChannelRow> = {}): ChannelRow {
  return {
    key: "",
    max_input_tokens: 0,
    id,
    type: 1,
    name: `channel ${id}`,
    status: 1,
    models: "gpt-4o,gpt-4o-mini",
    group: "default",
    priority: 0,
    weight: 0,
    tag: null,
    base_url: "",
    other: "",
    openai_organization: null,
    test_model: null,
    auto_ban: 1,
    model_mapping: "",
    status_code_mapping: "",
    param_override: "",
    settings: "",
    header_override: "",
    setting: "",
    other_info: "",
    response_time: 0,
    test_time: 0,
    balance: 0,
    balance_updated_time: 0,
    used_quota: 0,
    created_time: NOW - 86_400,
    multi_key_mode: "polling",
    max_concurrency: 0,
    rpm_limit: 0,
    tpm_limit: 0,
    key_count: 1,
    keys_on: 1,
    keys_resting: 0,
    cells_resting: 0,
    channel_info: {
      is_multi_key: false,
      multi_key_size: 0,
      multi_key_status_list: {},
      multi_key_disabled_reason: {},
      multi_key_disabled_time: {},
      multi_key_mode: "polling",
    },
    ...part,
  };
}

export const ROWS = [
  channel(1, {
    name: "alpha",
    priority: 5,
    tag: "east",
    response_time: 1000,
    test_time: NOW,
    used_quota: 500_000,
  }),
  channel(2, {
    name: "bravo",
    status: 3,
    tag: "east",
    priority: 1,
    response_time: 3000,
    test_time: NOW,
    other_info: JSON.stringify({ status_reason: "invalid key", status_time: NOW - 3600 }),
  }),
  channel(3, { name: "charlie", status: 2, tag: "west", balance: -1, balance_updated_time: NOW - 3600 }),
  channel(4, {
    name: "delta",
    type: 14,
    models: "claude-a,claude-b,claude-c",
    balance: 12.5,
    balance_updated_time: NOW - 60,
  }),
  channel(5, { name: "echo", key_count: 3, keys_on: 3, keys_resting: 1 }),
];

const SUMMARY = {
  total: 5,
  enabled: 3,
  disabled: 1,
  auto_disabled: 1,
  untested: 3,
  tags: [
    { tag: "east", count: 2 },
    { tag: "west", count: 1 },
  ],
};

const NO_KEYS: ChannelKeys = {
  changed: 0,
  tests: [],
  keys: [],
  total: 0,
  page: 1,
  page_size: 20,
  total_pages: 0,
  enabled_count: 0,
  manual_disabled_count: 0,
  auto_disabled_count: 0,
  resting_count: 0,
  resting_until: 0,
};

export interface OpenOptions extends IslandOptions {
  rows?: ChannelRow[];
  page?: Partial<ChannelPageData>;
}

export function openChannels(options: OpenOptions = {}): Island {
  const { rows = ROWS, page, ...rest } = options;
  const data: ChannelPageData = {
    rows,
    total: rows.length,
    pageSize: 10,
    summary: SUMMARY,
    groups: ["default", "vip"],
    types: { "1": "OpenAI", "14": "Anthropic Claude", "18": ["讯飞星火认知", "iFlytek Spark"] },
    remembered: {},
    ...page,
  };
  const island = renderScreen(ChannelScreen, { data, url: "/channel", user: { role: 10 }, ...rest });
  island.answer("GET /api/channel/search", { success: true, data: rows, total: rows.length });
  island.answer("GET /api/channel/summary", { success: true, data: data.summary });
  island.answer("PUT /api/channel", ({ body }: SentRequest) => ({
    success: true,
    data: { ...rows.find(({ id }) => id === (body as { id: number }).id), ...(body as object) },
  }));
  for (const row of rows) island.answer(`GET /api/channel/${row.id}`, { success: true, data: row });
  island.answer("POST /api/channel/multi_key/manage", { success: true, data: NO_KEYS });
  island.answer("GET /api/models", {
    success: true,
    data: { "1": ["gpt-4o", "gpt-4o-mini", "gpt-5"], "14": ["claude-a"], "18": [], "8": null },
  });
  island.answer("GET /api/channel/models", {
    success: true,
    data: ["gpt-4o", "gpt-5", "text-embedding-3", "claude-a"].map((id) => ({ id })),
  });
  return island;
}

export const rowOf = (name: string) => screen.getByRole("row", { name: new RegExp(name) });
/** The family reads the states of keys by POST. */
const isRead = ({ method, body }: SentRequest): boolean =>
  method === "GET" || (body as { action?: string } | undefined)?.action === "get_key_status";
export const writes = (island: Island) => island.requests.filter((request) => !isRead(request));
export const calls = (island: Island) =>
  writes(island).map(({ method, path, body }) => [method, path.replace(/\/$/, ""), body]);

/** Waits until what was loaded on demand has done its work. */
export async function done(): Promise<void> {
  for (let round = 0; round < 5; round++) await settle();
}

export async function menu(island: Island, name: string, item: string | RegExp): Promise<void> {
  await island.user.click(screen.getByRole("button", { name: `Actions for ${name}` }));
  await island.user.click(screen.getByRole("menuitem", { name: item }));
  await done();
}

export async function pageMenu(island: Island, item: string | RegExp): Promise<void> {
  await island.user.click(screen.getByRole("button", { name: "More actions" }));
  await island.user.click(screen.getByRole("menuitem", { name: item }));
  await done();
}
