// The ways out: names, the mail server's greeting, every upstream's address, the proxy in front.
// Refuses to spend anything: an upstream is asked for nothing that it bills, and no key leaves.
import { eq } from "drizzle-orm";
import type { Database } from "../../db/database.ts";
import { greetMailServer } from "../../net/mail.ts";
import { createGuard, systemLookup } from "../../net/guard.ts";
import { createReach } from "../../net/reach.ts";
import { ChannelStatus } from "../../shared/enums.ts";
import { jsonObject } from "../../shared/json-object.ts";
import type { OptionStore } from "../options/store.ts";
import { mailServer } from "../users/mail-server.ts";
import type { CheckRow, Finding } from "./report.ts";

export interface NetworkSettings {
  upstreamNetworks: string[];
  trustedProxies: string[];
  /** The address of a provider where a channel names none. */
  baseUrlOf: (type: number) => string;
  nowMs: () => number;
}

const UPSTREAM_LIMIT_MS = 5000;
const NAME_LIMIT_MS = 3000;
const AT_ONCE = 8;
/** Dates of answers are whole seconds. */
const SKEW_WARN_MS = 5000;

interface Upstream {
  origin: string;
  /** Names of the channels that go there. */
  names: string[];
  baseUrl: string;
  setting: Record<string, unknown>;
}

export function networkChecks(db: Database, options: OptionStore, settings: NetworkSettings): CheckRow[] {
  /** Clock differences that upstreams' answers showed. */
  const skews: number[] = [];
  return [
    { id: "proxy", look: () => proxy(options, settings) },
    { id: "dns", look: () => names(db, options, settings) },
    { id: "smtp", look: () => smtp(options) },
    { id: "upstreams", look: () => upstreams(db, settings, skews) },
    ...(db.kind === "sqlite" ? [{ id: "clock", look: () => clock(skews) }] : []),
  ];
}

function proxy(options: OptionStore, { trustedProxies }: NetworkSettings): Finding {
  const address = options.get("ServerAddress");
  const isBehind = address.startsWith("https://");
  if (isBehind && trustedProxies.length === 0)
    return {
      status: "warn",
      text: `the site is ${new URL(address).host} by https, and TRUSTED_PROXIES is empty`,
      advice:
        "Whatever ends TLS is a proxy: name its address (127.0.0.1,::1 on this machine), else all visitors share its limits and its address in the log.",
    };
  return {
    status: "ok",
    text:
      trustedProxies.length > 0
        ? `headers count from ${trustedProxies.join(", ")}`
        : "none, and none is expected",
  };
}

const within = <T>(ms: number, work: Promise<T>): Promise<T> => {
  const limit = Promise.withResolvers<never>();
  const timer = setTimeout(() => limit.reject(new Error(`no answer within ${ms / 1000} seconds`)), ms);
  return Promise.race([work, limit.promise]).finally(() => clearTimeout(timer));
};

async function names(db: Database, options: OptionStore, settings: NetworkSettings): Promise<Finding> {
  const hosts = new Set<string>();
  const add = (address: string) => {
    const host = URL.parse(address)?.hostname.replace(/^\[|\]$/g, "") ?? "";
    if (host !== "" && host !== "localhost" && !/^[\d.]+$|:/.test(host)) hosts.add(host);
  };
  add(options.get("ServerAddress"));
  add(`smtp://${options.get("SMTPServer") || "localhost"}`);
  for (const { origin } of await upstreamsOf(db, settings)) add(origin);
  if (hosts.size === 0) return { status: "ok", text: "no names to look up" };
  const unknown: string[] = [];
  let slowestMs = 0;
  await inLanes([...hosts], async (host) => {
    const beganMs = performance.now();
    const found = await within(NAME_LIMIT_MS, Promise.resolve(systemLookup(host))).catch(() => []);
    if (found.length === 0) unknown.push(host);
    slowestMs = Math.max(slowestMs, performance.now() - beganMs);
  });
  return {
    status: unknown.length > 0 ? "fail" : slowestMs > 1000 ? "warn" : "ok",
    text:
      unknown.length > 0
        ? `${unknown.length} of ${hosts.size} names are not known here: ${unknown.sort().join(", ")}`
        : `${hosts.size} names, the slowest in ${Math.round(slowestMs)} ms`,
    advice: "Look at /etc/resolv.conf of this machine or container, and at the names for slips.",
    figures: { names: hosts.size, unknown: unknown.length, slowest_ms: Math.round(slowestMs) },
  };
}

async function smtp(options: OptionStore): Promise<Finding> {
  const server = mailServer({ options });
  if (!server)
    return {
      status: "ok",
      text: "no mail server is set: no letters, no password reset by mail",
    };
  const place = `${server.host}:${server.port}`;
  const beganMs = performance.now();
  try {
    await greetMailServer(server);
  } catch (error) {
    return {
      status: "fail",
      text: `${place} does not take us: ${error instanceof Error ? error.message : String(error)}`,
      advice:
        "See SMTPServer, SMTPPort, SMTPSSLEnabled, SMTPAccount and SMTPToken in the settings, and the firewall.",
    };
  }
  const ms = Math.round(performance.now() - beganMs);
  return { status: "ok", text: `${place} greets and takes the login, ${ms} ms`, figures: { ms } };
}

async function upstreamsOf(db: Database, { baseUrlOf }: NetworkSettings): Promise<Upstream[]> {
  const { channels } = db.t;
  const rows = await db.orm
    .select({
      name: channels.name,
      type: channels.type,
      baseUrl: channels.baseUrl,
      setting: channels.setting,
    })
    .from(channels)
    .where(eq(channels.status, ChannelStatus.enabled));
  const found = new Map<string, Upstream>();
  for (const { name, type, baseUrl, setting } of rows) {
    const origin = URL.parse(baseUrl || baseUrlOf(type))?.origin;
    if (origin === undefined || origin === "null") continue;
    const known = found.get(origin);
    if (known) known.names.push(name);
    else
      found.set(origin, {
        origin,
        names: [name],
        baseUrl: baseUrl ?? "",
        setting: jsonObject(setting) ?? {},
      });
  }
  return [...found.values()];
}

async function upstreams(db: Database, settings: NetworkSettings, skews: number[]): Promise<Finding[]> {
  const all = await upstreamsOf(db, settings);
  const findings: Finding[] = [];
  const reach = createReach(settings.upstreamNetworks, { monotonicMs: () => performance.now() });
  const guard = createGuard();
  const tookMs: number[] = [];
  await inLanes(all, async ({ origin, names: channelNames, baseUrl, setting }) => {
    const allow = reach.networks(origin, { baseUrl, setting });
    const { proxy: via } = setting;
    const who = `${new URL(origin).host} (${channelNames.slice(0, 3).join(", ")}${channelNames.length > 3 ? ", …" : ""})`;
    const beganMs = performance.now();
    try {
      const answer = await guard(origin, {
        method: "HEAD",
        timeoutMs: UPSTREAM_LIMIT_MS,
        allow,
        maxBytes: 1024 ** 3,
        ...(typeof via === "string" && via !== "" ? { proxy: via } : {}),
      });
      tookMs.push(performance.now() - beganMs);
      const date = Date.parse(answer.headers.get("date") ?? "");
      if (!Number.isNaN(date)) skews.push(settings.nowMs() - date);
    } catch (error) {
      findings.push({
        status: "fail",
        text: `${who} cannot be reached: ${reasonOf(error)}`,
        advice:
          "Look at the channel's address and proxy, the firewall, and UPSTREAM_NETWORKS for closed networks.",
      });
    }
  });
  const slowest = Math.round(Math.max(0, ...tookMs));
  if (tookMs.length > 0 || all.length === 0)
    findings.unshift({
      status: "ok",
      text:
        all.length === 0
          ? "no channel is switched on"
          : `${tookMs.length} of ${all.length} addresses answer, the slowest in ${slowest} ms; asked for nothing that costs`,
      figures: { reached: tookMs.length, addresses: all.length, slowest_ms: slowest },
    });
  return findings;
}

/** The sentence of a failure that is for operators, where it has one. */
function reasonOf(error: unknown): string {
  const { internal } = error as { internal?: unknown };
  if (typeof internal === "string" && internal !== "") return internal;
  return error instanceof Error ? error.message : String(error);
}

/** Without a shared database nobody but the world tells the time: what answers of upstreams say of it. */
function clock(skews: readonly number[]): Finding {
  const middle = skews.toSorted((a, b) => a - b)[Math.floor(skews.length / 2)];
  if (middle === undefined) return { status: "ok", text: "no upstream told the time: not compared" };
  const off = Math.abs(middle);
  return {
    status: off > SKEW_WARN_MS ? "warn" : "ok",
    text: `within ${Math.ceil(off / 1000)} s of what ${skews.length} ${skews.length === 1 ? "upstream says" : "upstreams say"}`,
    advice:
      "Let a time service (chrony, systemd-timesyncd) set the clock: sign-ins by code, signed requests and days hang on it.",
    figures: { skew_ms: Math.round(middle) },
  };
}

async function inLanes<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const waiting = [...items];
  const lane = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}
