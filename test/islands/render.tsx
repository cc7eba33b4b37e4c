// Renders a screen or a part of the kit as a page would: boot data, texts, and a server made of prepared answers.
// Refuses calls that no test prepared: they fail with what was requested.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { act, render } from "@testing-library/react";
import type { RenderResult } from "@testing-library/react";
import userEvent, { PointerEventsCheckLevel } from "@testing-library/user-event";
import type { UserEvent } from "@testing-library/user-event";
import { createElement } from "react";
import type { ComponentType, ReactNode } from "react";
import { interceptNavigation, transport } from "../../islands/lib/api.ts";
import type { SiteStatus } from "../../islands/lib/api.ts";
import { installBoot } from "../../islands/lib/boot.ts";
import type { BootUser } from "../../islands/lib/boot.ts";
import { addTexts, setLanguage } from "../../islands/lib/i18n.ts";
import { listenForKeys } from "../../islands/lib/keys.ts";
import { openPartsFetched } from "../../islands/lib/lazy-part.tsx";
import { IslandRoot } from "../../islands/ui/root.tsx";
import { followHistory } from "../../islands/lib/url-state.ts";
import { dismissQuestion } from "../../islands/ui/confirm.tsx";
import { clearToasts } from "../../islands/lib/toasts.ts";

export const TEST_STATUS = {
  version: "0.1.0",
  setup: true,
  system_name: "Weir",
  logo: "",
  footer_html: "",
  server_address: "http://localhost",
  docs_link: "",
  quota_per_unit: 500_000,
  display_in_currency: true,
  enable_drawing: true,
  enable_task: true,
  enable_data_export: true,
  demo_site_enabled: false,
  self_use_mode_enabled: false,
  chats: [],
} as unknown as SiteStatus;

const TEST_USER: BootUser = {
  id: 7,
  username: "ada",
  display_name: "Ada",
  role: 1,
  group: "default",
  quota: 5_000_000,
};

export interface SentRequest {
  method: string;
  path: string;
  query: Record<string, string>;
  body: unknown;
  headers: Record<string, string>;
}

export interface IslandOptions {
  data?: unknown;
  status?: Partial<SiteStatus>;
  user?: Partial<BootUser> | null;
  url?: string;
  language?: "zh" | "en";
  params?: Record<string, string>;
  /** Address of the texts of closed parts; by default all texts are there. */
  allTexts?: string;
  /** For what the page asks for as it comes up: `answer` would be too late. */
  answers?: Record<string, unknown>;
}

export interface Island extends RenderResult {
  user: UserEvent;
  /** Every call so far. */
  requests: SentRequest[];
  /** "GET /api/token": the envelope to answer, a function of what was sent, or a Response. Last one wins. */
  answer(call: string, reply: unknown): void;
  /** Addresses that the page was sent to. */
  visited: string[];
}

// As on a page that has been idle once: the first call of a test is no later than the others.
await import("../../islands/lib/api-client.ts");

for (const language of ["zh", "en"] as const) {
  const dir = join(import.meta.dir, "../../locales", language);
  for (const file of readdirSync(dir)) {
    const area = file.replace(/\.json$/, "");
    const texts = JSON.parse(readFileSync(join(dir, file), "utf8")) as Record<string, string>;
    addTexts(
      language,
      Object.fromEntries(Object.entries(texts).map(([key, text]) => [`${area}.${key}`, text])),
    );
  }
}

let stopListening: (() => void)[] = [];

function Pass({ children }: { children: ReactNode }) {
  return children;
}

/** A part of the kit inside the same surroundings. */
export function renderPart(part: ReactNode, options: IslandOptions = {}): Island {
  return renderScreen(() => createElement(Pass, null, part), options);
}

export function renderScreen(screen: ComponentType, options: IslandOptions = {}): Island {
  const language = options.language ?? "en";
  const url = options.url ?? "/";
  const requests: SentRequest[] = [];
  const visited: string[] = [];
  const replies = new Map<string, unknown>(Object.entries(options.answers ?? {}));
  for (const stop of stopListening) stop();
  clearToasts();
  dismissQuestion();
  history.replaceState(null, "", url);
  setLanguage(language);
  installBoot({
    screen: "test",
    chunk: "",
    url,
    params: options.params ?? {},
    status: { ...TEST_STATUS, ...options.status },
    user: options.user === null ? null : { ...TEST_USER, ...options.user },
    language,
    theme: "light",
    timeZone: "UTC",
    nowMs: Date.UTC(2026, 10, 20, 12),
    texts: {},
    allTexts: options.allTexts ?? "",
    data: options.data ?? null,
  });
  transport.fetch = async (input, init) => {
    const at = new URL(input, "http://localhost");
    const method = init?.method ?? "GET";
    const text = typeof init?.body === "string" ? init.body : "";
    const call: SentRequest = {
      method,
      path: at.pathname,
      query: Object.fromEntries(at.searchParams),
      body: text === "" ? undefined : JSON.parse(text),
      headers: Object.fromEntries(new Headers(init?.headers).entries()),
    };
    requests.push(call);
    const prepared = replies.get(`${method} ${at.pathname.replace(/\/$/, "")}`);
    if (prepared === undefined) throw new Error(`no answer was prepared for ${method} ${at.pathname}`);
    const reply =
      typeof prepared === "function" ? await (prepared as (call: SentRequest) => unknown)(call) : prepared;
    return reply instanceof Response ? reply : Response.json(reply);
  };
  interceptNavigation((to) => visited.push(to));
  stopListening = [listenForKeys(), followHistory()];
  const result = render(createElement(IslandRoot, { screen }));
  return {
    ...result,
    // No style sheet is loaded here, so that everything takes pointers: looking is a tenth of the time, for nothing.
    user: userEvent.setup({ pointerEventsCheck: PointerEventsCheckLevel.Never }),
    requests,
    visited,
    answer: (call, reply) => replies.set(call.replace(/\/$/, ""), reply),
  };
}

const dueHappens = () => new Promise<void>((resolve) => setTimeout(resolve));

/** Lets promises and effects that are already due happen, those of parts that were opened just now among them. */
export async function settle(): Promise<void> {
  await act(dueHappens);
  if (await act(openPartsFetched)) await act(dueHappens);
}
