// Makes a fresh gateway ready for the bench through its REST calls: setup, sign-in, one channel, one key.
// Refuses the database and any switch that a busy operator would not leave on: auth, billing and log stay as shipped.

import { DIALECTS, UPSTREAMS } from "./dialects.ts";
import { CHAT_MODEL } from "./mock-upstream.ts";

/** The model that the ordinary HTTP server answers for. */
export const HTTP_MODEL = "gpt-4o";

const ROOT = { username: "root", password: "bench-password-1" };
/** More than the longest run can spend: a bench of refusals measures nothing. */
const TOKEN_QUOTA = 1_000_000_000_000;

interface Envelope {
  success: boolean;
  message?: string;
  data?: unknown;
}

export interface Prepared {
  /** What goes after "Bearer ". */
  key: string;
  headers: Record<string, string>;
}

async function call(
  baseUrl: string,
  method: string,
  path: string,
  body?: object,
  headers = {},
): Promise<Response> {
  const init: RequestInit = { method, headers: { "content-type": "application/json", ...headers } };
  if (body) init.body = JSON.stringify(body);
  return await fetch(baseUrl + path, init);
}

/** The data of a good answer; a refusal becomes an error that names the call. */
async function dataOf(response: Response, what: string): Promise<unknown> {
  const text = await response.text();
  let envelope: Envelope;
  try {
    envelope = JSON.parse(text) as Envelope;
  } catch {
    throw new Error(`${what}: ${response.status} ${text.slice(0, 200)}`);
  }
  if (!envelope.success)
    throw new Error(`${what}: ${response.status} ${envelope.message ?? text.slice(0, 200)}`);
  return envelope.data;
}

/** A list answer is a bare array or a page object, as the call has it. */
function itemsOf(data: unknown): Record<string, unknown>[] {
  const items = Array.isArray(data) ? data : (data as { items?: unknown } | undefined)?.items;
  return Array.isArray(items) ? (items as Record<string, unknown>[]) : [];
}

async function signIn(baseUrl: string): Promise<Record<string, string>> {
  const response = await call(baseUrl, "POST", "/api/user/login", ROOT);
  const cookies = response.headers.getSetCookie().map((cookie) => cookie.split(";")[0] ?? "");
  const user = (await dataOf(response, "sign-in")) as { id?: number } | undefined;
  return { cookie: cookies.join("; "), "New-Api-User": String(user?.id ?? 1) };
}

/**
 * Sets a gateway with an empty database up to relay to the mock at `upstreamUrl`, for one model to `httpUrl`; `limits`: of
 * its key, as the REST call names them.
 */
export async function prepareGateway(
  baseUrl: string,
  upstreamUrl: string,
  httpUrl: string,
  limits: Readonly<Record<string, number>> = {},
): Promise<Prepared> {
  const setup = {
    ...ROOT,
    confirmPassword: ROOT.password,
    SelfUseModeEnabled: false,
    DemoSiteEnabled: false,
  };
  await dataOf(await call(baseUrl, "POST", "/api/setup", setup), "setup");
  const headers = await signIn(baseUrl);
  const channel = {
    type: 1,
    name: "bench",
    key: "sk-upstream",
    base_url: upstreamUrl,
    models: `${CHAT_MODEL},text-embedding-3-small`,
    group: "default",
    priority: 0,
    weight: 1,
    // Aborted streams and a killed mock must not switch the only channel off.
    auto_ban: 0,
  };
  const more = [
    { name: "bench realtime", models: "gpt-4o-realtime-preview" },
    { name: "bench http", models: HTTP_MODEL, base_url: httpUrl },
    ...DIALECTS.map((name) => ({ name, type: UPSTREAMS[name].type, models: UPSTREAMS[name].model })),
  ];
  for (const fields of [{}, ...more])
    await dataOf(await call(baseUrl, "POST", "/api/channel/", { ...channel, ...fields }, headers), "channel");
  // Every model of the pairs needs a price; the newest ones have none of their own.
  const price = { key: "ModelPrice", value: JSON.stringify({ [UPSTREAMS.responses.model]: 0.0001 }) };
  await dataOf(await call(baseUrl, "PUT", "/api/option/", price, headers), "price");
  const token = {
    name: "bench",
    expired_time: -1,
    remain_quota: TOKEN_QUOTA,
    unlimited_quota: false,
    ...limits,
  };
  await dataOf(await call(baseUrl, "POST", "/api/token/", token, headers), "token");
  const tokens = itemsOf(
    await dataOf(await call(baseUrl, "GET", "/api/token/?p=0&size=10", undefined, headers), "tokens"),
  );
  const key = tokens.find((row) => row.name === "bench")?.key;
  if (typeof key !== "string") throw new Error("the token list shows no key");
  return { key: key.startsWith("sk-") ? key : `sk-${key}`, headers };
}

/** How many calls the gateway has on its books for the bench's user, and their price. */
export async function readAccount(
  baseUrl: string,
  prepared: Prepared,
): Promise<{ calls: number; usedQuota: number }> {
  const data = await dataOf(
    await call(baseUrl, "GET", "/api/user/self", undefined, prepared.headers),
    "account",
  );
  const account = data as { request_count?: number; used_quota?: number } | undefined;
  return { calls: account?.request_count ?? 0, usedQuota: account?.used_quota ?? 0 };
}
