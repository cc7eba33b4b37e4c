// The only reader of process.env: every setting of the process, checked once at the start.
// Refuses a wrong value with one sentence that names the variable.
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import ipaddr from "ipaddr.js";
import { workerDirOf } from "./cluster/directories.ts";
import type { LimitSettings } from "./core/kit/site-limits.ts";
import { parseValkeyUrl } from "./db/valkey-url.ts";
import type { ValkeyAddress } from "./db/valkey-url.ts";
import type { Language } from "./shared/enums.ts";
import { RUNTIME_OPTIONS } from "./runtime-options.ts";
import { SAMPLERS } from "./observe/samplers.ts";
import type { TraceSettings } from "./observe/traces.ts";

type LogLevel = "debug" | "info" | "warn" | "error" | "silent";

export interface Env {
  port: number;
  host: string;
  /** SQLite file, session secret, journal; of a worker: its own one below DATA_DIR. */
  dataDir: string;
  /** Where the key file lies: DATA_DIR, which workers share. */
  keyDir: string;
  /** How many processes serve; with more than one this is their parent. */
  workers: number;
  /** Which of them this is, where a parent has started it. */
  worker: number | undefined;
  /** Connections to PostgreSQL, besides the one that listens. */
  databasePool: number;
  /** postgres://… or empty for the embedded database. */
  databaseUrl: string;
  /** The same database past a pooler, for what needs a session; empty: databaseUrl serves for it. */
  databaseDirectUrl: string;
  /** What processes share limits and messages through; undefined: each has its own limits. */
  valkey: ValkeyAddress | undefined;
  /** Empty: a random one is made and kept sealed in the database. `new,old`: the first signs, each is taken. */
  sessionSecret: string;
  /** Empty: a key file is made in the data directory. */
  encryptionKey: string;
  /** For `weir rotate` alone: what everything is sealed with from then on. */
  newEncryptionKey: string;
  /** Wraps the encryption key in a backup that carries it, and opens it again. */
  keyPassphrase: string;
  /** Where copies are made by themselves each day; empty: nowhere. */
  backupDir: string;
  /** When, in the site's time zone: minutes since midnight. */
  backupAtMinutes: number;
  /** What the operator's terminal speaks. */
  language: Language;
  /** Addresses or CIDR ranges whose forwarded headers count. */
  trustedProxies: string[];
  /** Addresses or CIDR ranges (offices) that have no limits per address. */
  rateLimitTrusted: string[];
  /** The general limits of the console's routes. */
  limits: LimitSettings;
  /** Closed networks that channels' addresses may lie in, as addresses and CIDR ranges. */
  upstreamNetworks: string[];
  /** The runtime sends plain requests through a proxy (HTTP_PROXY, which it reads by itself). */
  hasProxy: boolean;
  logLevel: LogLevel;
  /** What the last bytes of an answer wait for; on the embedded database both are one. */
  durability: "journal" | "database";
  /** So long journal files stay whose entries the database has. */
  journalKeepMinutes: number;
  /** Calls and errors leave the log after so many days; 0 = never. Their sums stay. */
  logRetentionDays: number;
  /** A data directory that had a product may start on an empty database. */
  startsNew: boolean;
  /** How long a start waits for a PostgreSQL that is not there yet; 0 = not at all. */
  databaseWaitSeconds: number;
  /** Whoever sends it reads /metrics from elsewhere; empty: only this machine does. */
  metricsToken: string;
  /** One line for each call. */
  accessLog: boolean;
  /** Where traces go; undefined: nowhere. */
  tracing: Omit<TraceSettings, "version" | "instance"> | undefined;
  /** How long running answers may go on after SIGTERM; then they are settled, told and closed. */
  drainSeconds: number;
  /** How long /readyz says no before the port closes: until balancers have noticed. */
  drainDelaySeconds: number;
}

/** Thrown for a wrong setting; the start prints its sentence and ends. */
export class EnvError extends Error {}

/** Words for networks that operators commonly run upstreams in. */
const NETWORK_WORDS: Readonly<Record<string, readonly string[]>> = {
  loopback: ["127.0.0.0/8", "::1/128"],
  private: ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"],
  none: [],
};

const MAX_DRAIN_SECONDS = 3600;
const MAX_DRAIN_DELAY_SECONDS = 300;
const MAX_DATABASE_WAIT_SECONDS = 3600;

const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error", "silent"];

/** The entries of a comma list. */
function entriesOf(text: string): string[] {
  return text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

/** Written in full: "10.0.0" is an address to some parsers, but no operator means 10.0.0.0 by it. */
function isNetwork(entry: string): boolean {
  const [address = ""] = entry.split("/");
  const isFull = ipaddr.IPv4.isValidFourPartDecimal(address) || ipaddr.IPv6.isValid(address);
  return isFull && (address === entry || ipaddr.isValidCIDR(entry));
}

/** Variables that may stand in a file, as containers get their secrets: `<NAME>_FILE` names it. */
const SECRET_VARIABLES = new Set([
  "DATABASE_URL",
  "DATABASE_DIRECT_URL",
  "REDIS_URL",
  "SESSION_SECRET",
  "ENCRYPTION_KEY",
  "NEW_ENCRYPTION_KEY",
  "KEY_PASSPHRASE",
  "METRICS_TOKEN",
]);

function secretFromFile(source: Record<string, string | undefined>, name: string): string {
  const path = source[`${name}_FILE`]?.trim() ?? "";
  if (path === "") return "";
  if ((source[name]?.trim() ?? "") !== "")
    throw new EnvError(`${name} and ${name}_FILE are both set: leave one of them empty.`);
  let found: string;
  try {
    found = readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new EnvError(`${name}_FILE names ${path}, which cannot be read: ${String(error)}.`);
  }
  if (found === "") throw new EnvError(`${name}_FILE names ${path}, which is empty.`);
  return found;
}

/** "03:30" as minutes since midnight. */
function readTimeOfDay(name: string, value: string): number {
  const match = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(value);
  if (!match) throw new EnvError(`${name} must be a time of day such as 03:30, not "${value}".`);
  return Number(match[1]) * 60 + Number(match[2]);
}

function readSecrets(
  text: (name: string) => string,
): Pick<Env, "sessionSecret" | "encryptionKey" | "newEncryptionKey"> {
  const secret = (name: string): string => {
    const value = text(name);
    if (value === "" || value.length >= 16) return value;
    throw new EnvError(`${name} must have at least 16 characters.`);
  };
  return {
    sessionSecret: secret("SESSION_SECRET"),
    encryptionKey: secret("ENCRYPTION_KEY"),
    newEncryptionKey: secret("NEW_ENCRYPTION_KEY"),
  };
}

function readBackups(
  text: (name: string, fallback?: string) => string,
): Pick<Env, "keyPassphrase" | "backupDir" | "backupAtMinutes"> {
  const backupDir = text("BACKUP_DIR");
  return {
    keyPassphrase: text("KEY_PASSPHRASE"),
    backupDir: backupDir === "" ? "" : resolve(backupDir),
    backupAtMinutes: readTimeOfDay("BACKUP_AT", text("BACKUP_AT", "03:30")),
  };
}

function readDatabaseUrls(text: (name: string) => string): Pick<Env, "databaseUrl" | "databaseDirectUrl"> {
  const isPostgres = (url: string) => /^postgres(ql)?:\/\//.test(url);
  const databaseUrl = text("DATABASE_URL");
  if (databaseUrl !== "" && !isPostgres(databaseUrl))
    throw new EnvError("DATABASE_URL must start with postgres:// or be empty for the embedded database.");
  const databaseDirectUrl = text("DATABASE_DIRECT_URL");
  if (databaseDirectUrl !== "" && !isPostgres(databaseDirectUrl))
    throw new EnvError("DATABASE_DIRECT_URL must start with postgres:// or be empty.");
  if (databaseDirectUrl !== "" && databaseUrl === "")
    throw new EnvError(
      "DATABASE_DIRECT_URL is set, but DATABASE_URL is empty: it is the way past a pooler that DATABASE_URL names.",
    );
  return { databaseUrl, databaseDirectUrl };
}

export function readEnv(source: Record<string, string | undefined> = process.env): Env {
  const text = (name: string, fallback = "") =>
    (SECRET_VARIABLES.has(name) && secretFromFile(source, name)) || source[name]?.trim() || fallback;

  const port = Number(text("PORT", "3000"));
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new EnvError(`PORT must be a number from 0 to 65535, not "${source.PORT}".`);
  }
  const { databaseUrl, databaseDirectUrl } = readDatabaseUrls(text);
  const valkey = parseValkeyUrl(text("REDIS_URL"));
  if (typeof valkey === "string") throw new EnvError(`REDIS_URL ${valkey}.`);
  const logLevel = text("LOG_LEVEL", "info") as LogLevel;
  if (!LOG_LEVELS.includes(logLevel)) {
    throw new EnvError(`LOG_LEVEL must be one of ${LOG_LEVELS.join(", ")}, not "${logLevel}".`);
  }
  const whole = (name: string, fallback: string, most: number): number => {
    const value = Number(text(name, fallback));
    if (Number.isInteger(value) && value >= 0 && value <= most) return value;
    throw new EnvError(`${name} must be a whole number from 0 to ${most}, not "${source[name]}".`);
  };
  const journalKeepMinutes = whole("JOURNAL_KEEP_MINUTES", "15", 10_080);
  const durability = text("DURABILITY", "journal");
  if (durability !== "journal" && durability !== "database") {
    throw new EnvError(`DURABILITY must be journal or database, not "${durability}".`);
  }
  const logRetentionDays = whole("LOG_RETENTION_DAYS", "0", 36_500);
  const startsNew = text("WEIR_NEW");
  if (startsNew !== "" && startsNew !== "0" && startsNew !== "1") {
    throw new EnvError(`WEIR_NEW must be 1 or empty, not "${source.WEIR_NEW}".`);
  }
  const drainSeconds = whole("DRAIN_SECONDS", "30", MAX_DRAIN_SECONDS);
  const drainDelaySeconds = whole("DRAIN_DELAY_SECONDS", "0", MAX_DRAIN_DELAY_SECONDS);
  const databaseWaitSeconds = whole("DATABASE_WAIT_SECONDS", "60", MAX_DATABASE_WAIT_SECONDS);
  const trustedProxies = entriesOf(text("TRUSTED_PROXIES"));
  for (const entry of trustedProxies) {
    if (!isNetwork(entry)) {
      throw new EnvError(`TRUSTED_PROXIES holds "${entry}", which is neither an address nor a CIDR range.`);
    }
  }
  const rateLimitTrusted = entriesOf(text("RATE_LIMIT_TRUSTED"));
  for (const entry of rateLimitTrusted) {
    if (!isNetwork(entry)) {
      throw new EnvError(
        `RATE_LIMIT_TRUSTED holds "${entry}", which is neither an address nor a CIDR range.`,
      );
    }
  }
  const upstreamNetworks = entriesOf(text("UPSTREAM_NETWORKS", "loopback,private")).flatMap((entry) => {
    const networks = Object.hasOwn(NETWORK_WORDS, entry) ? NETWORK_WORDS[entry] : undefined;
    if (networks) return networks;
    if (isNetwork(entry)) return [entry];
    throw new EnvError(
      `UPSTREAM_NETWORKS holds "${entry}", which is neither loopback, private or none, nor an address or a CIDR range.`,
    );
  });
  return {
    port,
    host: text("HOST", "0.0.0.0"),
    ...readWorkers(source, databaseUrl),
    databaseUrl,
    databaseDirectUrl,
    valkey,
    ...readSecrets(text),
    ...readBackups(text),
    language: /^zh/i.test(text("LC_ALL") || text("LC_MESSAGES") || text("LANG")) ? "zh" : "en",
    trustedProxies,
    rateLimitTrusted,
    limits: readLimits(source),
    upstreamNetworks,
    hasProxy: (text("http_proxy") || text("HTTP_PROXY")) !== "",
    logLevel,
    durability,
    journalKeepMinutes,
    logRetentionDays,
    startsNew: startsNew === "1",
    databaseWaitSeconds,
    drainSeconds,
    ...readObserving(text),
    drainDelaySeconds,
  };
}

/** Set by the parent for its workers, never by an operator: the worker's index. */
const WORKER_VARIABLE = "WEIR_WORKER";
const MAX_WORKERS = 64;
/** `auto` leaves one core to the system and PostgreSQL. */
const MAX_AUTO_WORKERS = 8;
/** What all workers together take of PostgreSQL's usual hundred connections. */
const SHARED_POOL = 80;
const [LEAST_POOL, MOST_POOL] = [3, 10];
const MAX_POOL = 1000;

/** WORKERS and what hangs on it: directories and connections. */
function readWorkers(
  source: Record<string, string | undefined>,
  databaseUrl: string,
): Pick<Env, "dataDir" | "keyDir" | "workers" | "worker" | "databasePool"> {
  const text = (name: string, fallback = "") => source[name]?.trim() || fallback;
  const asked = text("WORKERS", "1");
  const isPossible = databaseUrl !== "" && process.platform === "linux";
  const auto = isPossible ? Math.min(MAX_AUTO_WORKERS, Math.max(1, availableParallelism() - 1)) : 1;
  const workers = asked === "auto" ? auto : Number(asked);
  if (!Number.isInteger(workers) || workers < 1 || workers > MAX_WORKERS) {
    throw new EnvError(`WORKERS must be auto or a whole number from 1 to ${MAX_WORKERS}, not "${asked}".`);
  }
  if (workers > 1 && !isPossible) {
    throw new EnvError(
      databaseUrl === ""
        ? `WORKERS is ${workers}, but one process alone may write the embedded database: set DATABASE_URL to a PostgreSQL, or leave WORKERS at 1.`
        : `WORKERS is ${workers}, but processes can share a port on Linux only: leave WORKERS at 1.`,
    );
  }
  const usualPool = Math.max(LEAST_POOL, Math.min(MOST_POOL, Math.floor(SHARED_POOL / workers)));
  const databasePool = Number(text("DATABASE_POOL", String(usualPool)));
  if (!Number.isInteger(databasePool) || databasePool < LEAST_POOL || databasePool > MAX_POOL) {
    throw new EnvError(
      `DATABASE_POOL must be a whole number from ${LEAST_POOL} to ${MAX_POOL}, not "${source.DATABASE_POOL}".`,
    );
  }
  const keyDir = resolve(text("DATA_DIR", "./data"));
  const worker = text(WORKER_VARIABLE) === "" ? undefined : Number(text(WORKER_VARIABLE));
  const dataDir = worker === undefined ? keyDir : workerDirOf(keyDir, worker);
  return { dataDir, keyDir, workers, worker, databasePool };
}

/** The start of a server with workers: this process is their parent. A wrong setting is left to the command itself. */
export function wantsWorkers(args: readonly string[]): boolean {
  if ((args[0] ?? "serve") !== "serve") return false;
  try {
    const { workers, worker } = readEnv();
    return workers > 1 && worker === undefined;
  } catch (error) {
    if (error instanceof EnvError) return false;
    throw error;
  }
}

/** What the parent starts a worker with: its own environment, the worker's index, and the port that all have. */
export function workerEnvironment(index: number, port: number): Record<string, string | undefined> {
  return { ...process.env, [WORKER_VARIABLE]: String(index), PORT: String(port) };
}

/** The words that start this program, from source or as the binary, with other arguments. */
export function ownCommand(args: readonly string[]): string[] {
  return [process.execPath, ...(isBinary() ? [] : [Bun.main]), ...args];
}

/** The same program from its beginning, with the same process id; returns where the system has no such thing. */
export function replaceProcess(env: Record<string, string | undefined> = process.env): void {
  process.execve?.(process.execPath, ownCommand(process.argv.slice(2)), { ...env });
}

const isBinary = (): boolean => Bun.main.startsWith("/$bunfs/");

/** The sentence for a port or an address that cannot be had. */
export function cannotListen({ port, host }: Pick<Env, "port" | "host">, error: unknown): EnvError {
  const isTaken = (error as { code?: unknown }).code === "EADDRINUSE";
  return new EnvError(
    isTaken
      ? `PORT ${port} is in use: stop the other program, or set PORT.`
      : `HOST is "${host}", PORT ${port}, where this machine cannot listen: ${String(error)}.`,
  );
}

/** What is told to those who watch the process. */
function readObserving(
  text: (name: string, fallback?: string) => string,
): Pick<Env, "metricsToken" | "accessLog" | "tracing"> {
  const metricsToken = text("METRICS_TOKEN");
  if (metricsToken !== "" && metricsToken.length < 16) {
    throw new EnvError("METRICS_TOKEN must have at least 16 characters.");
  }
  const accessLog = text("ACCESS_LOG");
  if (accessLog !== "" && accessLog !== "0" && accessLog !== "1") {
    throw new EnvError(`ACCESS_LOG must be 1 or empty, not "${accessLog}".`);
  }
  return { metricsToken, accessLog: accessLog === "1", tracing: readTracing(text) };
}

/** As OpenTelemetry names it; every value is passed to its packages, which would read others by themselves. */
function readTracing(text: (name: string, fallback?: string) => string): Env["tracing"] {
  const endpoint = text("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (endpoint === "") return undefined;
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint)) {
    throw new EnvError(
      "OTEL_EXPORTER_OTLP_ENDPOINT must be an address that begins with http:// or https://.",
    );
  }
  const asked = text("OTEL_TRACES_SAMPLER", SAMPLERS[0]);
  const sampler = SAMPLERS.find((name) => name === asked);
  if (!sampler) {
    throw new EnvError(`OTEL_TRACES_SAMPLER must be one of ${SAMPLERS.join(", ")}, not "${asked}".`);
  }
  const ratio = Number(text("OTEL_TRACES_SAMPLER_ARG", "1"));
  if (!(ratio >= 0 && ratio <= 1)) {
    throw new EnvError("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1.");
  }
  const content = text(CONTENT_VARIABLE, "false").toLowerCase();
  if (content !== "true" && content !== "false") {
    throw new EnvError(`${CONTENT_VARIABLE} must be true or false, not "${content}".`);
  }
  return {
    endpoint,
    headers: readOtlpHeaders(text("OTEL_EXPORTER_OTLP_HEADERS")),
    serviceName: text("OTEL_SERVICE_NAME", "weir"),
    sampler,
    ratio,
    showsContent: content === "true",
  };
}

const CONTENT_VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/** `name=value,name=value`, values with percent signs where they need them. */
function readOtlpHeaders(list: string): Record<string, string> {
  return Object.fromEntries(
    entriesOf(list).map((entry) => {
      const at = entry.indexOf("=");
      const name = entry.slice(0, Math.max(at, 0)).trim();
      // What stands there may be a secret: the sentence shows none of it.
      if (!/^[\w-]+$/.test(name))
        throw new EnvError("OTEL_EXPORTER_OTLP_HEADERS must be name=value, separated by commas.");
      const value = entry.slice(at + 1).trim();
      try {
        return [name, decodeURIComponent(value)];
      } catch {
        return [name, value];
      }
    }),
  );
}

const GENERAL_LIMIT = 180;
const GENERAL_SECONDS = 180;
/** Of a signed-in account: its pages ask for more than strangers' do. */
const ACCOUNT_LIMIT = 600;
const CRITICAL_LIMIT = 20;
const CRITICAL_SECONDS = 1200;

/** GLOBAL_API_RATE_LIMIT* and CRITICAL_RATE_LIMIT*, as installations of this family name them. */
function readLimits(source: Record<string, string | undefined>): LimitSettings {
  const isSet = (name: string): boolean => (source[name]?.trim() ?? "") !== "";
  const number = (name: string, fallback: number): number => {
    const value = Number(source[name]?.trim() || fallback);
    if (Number.isInteger(value) && value >= 1 && value <= 10_000_000) return value;
    throw new EnvError(`${name} must be a whole number from 1 on, not "${source[name]}".`);
  };
  const isOn = (name: string): boolean => {
    const value = source[name]?.trim().toLowerCase() || "true";
    if (value === "true" || value === "1") return true;
    if (value === "false" || value === "0") return false;
    throw new EnvError(`${name} must be true or false, not "${source[name]}".`);
  };
  const count = number("GLOBAL_API_RATE_LIMIT", GENERAL_LIMIT);
  const windowMs = number("GLOBAL_API_RATE_LIMIT_DURATION", GENERAL_SECONDS) * 1000;
  const isGeneral = isOn("GLOBAL_API_RATE_LIMIT_ENABLE");
  const critical = {
    count: number("CRITICAL_RATE_LIMIT", CRITICAL_LIMIT),
    windowMs: number("CRITICAL_RATE_LIMIT_DURATION", CRITICAL_SECONDS) * 1000,
  };
  const isChanged = isSet("CRITICAL_RATE_LIMIT") || isSet("CRITICAL_RATE_LIMIT_DURATION");
  const own = isChanged ? critical : undefined;
  return {
    strangers: isGeneral ? { count, windowMs } : undefined,
    // In the same proportion where the operator changed the one.
    accounts: isGeneral ? { count: Math.ceil((count * ACCOUNT_LIMIT) / GENERAL_LIMIT), windowMs } : undefined,
    perAddress: isOn("CRITICAL_RATE_LIMIT_ENABLE") ? own : "off",
  };
}

/** What this program starts itself with once more, for one subcommand beside the server: words, and settings as they are here. */
export function ownProgram(env: Env): { words: string[]; settings: Record<string, string | undefined> } {
  const words = Bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, Bun.main];
  const { [WORKER_VARIABLE]: _, ...inherited } = process.env;
  return { words, settings: { ...inherited, DATA_DIR: env.keyDir, BACKUP_DIR: env.backupDir } };
}

/** Variables that a file of settings names, as they are set; the others are left out. */
export function readVariables(names: readonly string[]): Record<string, string> {
  const source = process.env;
  return Object.fromEntries(
    names.flatMap((name): [string, string][] => {
      const value = source[name];
      return value === undefined || value.trim() === "" ? [] : [[name, value]];
    }),
  );
}

const REQUEST_LIMIT_VARIABLE = "BUN_CONFIG_MAX_HTTP_REQUESTS";
const REQUEST_LIMIT = "16384";

/**
 * Bun reads its limit of simultaneous fetches (256) and the options of engine and allocator from the environment at the start
 * of the process only, so the process replaces itself once with all of them set; same pid, a few milliseconds. What the operator
 * has set stands. Not on Windows, which lacks exec.
 */
export function makeRoomForRequests(): void {
  if (process.env[REQUEST_LIMIT_VARIABLE] !== undefined || process.platform === "win32") return;
  replaceProcess({ ...RUNTIME_OPTIONS, ...process.env, [REQUEST_LIMIT_VARIABLE]: REQUEST_LIMIT });
}
