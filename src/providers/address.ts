// The upstream address of a call, from a provider's row and a channel: which route serves it, and its URL.
// Refuses providers that are gone, channels without an address, and model names that would leave their path.
import { channelAddress } from "../shared/channel-address.ts";
import { Failure } from "../shared/failures.ts";
import { CONVERSATIONS, OPERATION_PATHS } from "./define.ts";
import type { Operation, ProviderRow, Route, UpstreamChannel } from "./define.ts";

/** Azure's api-version where neither client nor channel names one. */
const AZURE_DEFAULT_API_VERSION = "2025-04-01-preview";
const GEMINI_DEFAULT_VERSION = "v1beta";
const CLOUDFLARE_GATEWAY = "https://gateway.ai.cloudflare.com";
/** 2025-05-10T00:00Z: channels created before then name their Azure deployments without dots. */
const AZURE_DOTS_SINCE_SECONDS = 1_746_835_200;

export interface UpstreamAddress {
  /** The operation the upstream performs, as routeFor found it. */
  operation: Operation;
  /** Upstream name, after mapping and after the body's patches. */
  model: string;
  /** The client's path, when it called this same operation; the operation's own path when absent. */
  path?: string;
  /** The client's query with or without its "?"; its credentials are never passed on. */
  query?: string;
  isStream?: boolean;
  /** The address that counts a prompt, in place of the one that answers it. */
  counts?: boolean;
  azureDefaultApiVersion?: string;
  /** Version of Gemini's API for this model, from the option gemini.version_settings. */
  geminiVersion?: string;
}

export interface FoundRoute {
  operation: Operation;
  route: Route;
}

function takes(route: Route | undefined, model: string): route is Route {
  if (!route) return false;
  const { models } = route;
  if (!models) return true;
  if (models.except?.test(model) === true) return false;
  if (models.contains !== undefined && !model.includes(models.contains)) return false;
  return models.prefixes === undefined || models.prefixes.some((prefix) => model.startsWith(prefix));
}

/**
 * The route that serves `operation` for the upstream model: its own where the row has one (bodies may pass through),
 * for conversations else the first of chat, messages, gemini, responses (bodies are converted). Undefined when this
 * type cannot serve the call.
 */
export function routeFor(row: ProviderRow, operation: Operation, model: string): FoundRoute | undefined {
  const own = row.operations[operation];
  if (takes(own, model)) return { operation, route: own };
  if (!CONVERSATIONS.includes(operation)) return undefined;
  for (const other of CONVERSATIONS) {
    const route = row.operations[other];
    if (takes(route, model)) return { operation: other, route };
  }
  return undefined;
}

/** Throws for types that no longer or do not yet have an upstream; another channel may be tried. */
export function requireServed(row: ProviderRow): void {
  if (row.status !== "retired" && row.status !== "later") return;
  throw new Failure("no-channel", row.status === "retired" ? "provider_retired" : "provider_unserved", {
    params: { name: row.label.en },
    retryable: true,
  });
}

/** Escapes a value for a path and keeps what model names are made of ("@cf/meta/llama", "a:b"). */
function escapePath(value: string): string {
  const segments = value.split("/");
  if (segments.some((segment) => segment === "." || segment === ".." || segment === ""))
    throw new Failure("client", "invalid_field", {
      params: { field: "model", reason: "must be a name" },
      param: "model",
    });
  return segments
    .map((segment) =>
      encodeURIComponent(segment).replaceAll("%40", "@").replaceAll("%3A", ":").replaceAll("%2B", "+"),
    )
    .join("/");
}

function ownBase(row: ProviderRow, channel: Pick<UpstreamChannel, "baseUrl">): string {
  return channelAddress(row.id, channel.baseUrl) || row.baseUrl;
}

/** The channel's address without slashes at its end, else the type's own; throws provider_base_url when there is none. */
export function baseUrlOf(row: ProviderRow, channel: Pick<UpstreamChannel, "baseUrl">): string {
  const base = ownBase(row, channel);
  if (base === "")
    throw new Failure("no-channel", "provider_base_url", {
      params: { name: row.label.en },
      retryable: true,
    });
  return base;
}

/** The client's query as it stands, without the parameter that may hold its key. */
function forwardedQuery(query: string | undefined): string {
  const text = (query ?? "").replace(/^\?/, "");
  const kept = text.split("&").filter((pair) => pair !== "" && decodedName(pair) !== "key");
  return kept.length > 0 ? `?${kept.join("&")}` : "";
}

function decodedName(pair: string): string {
  const name = pair.split("=", 1)[0] ?? "";
  try {
    return decodeURIComponent(name.replaceAll("+", " ")).trim().toLowerCase();
  } catch {
    return name;
  }
}

function versionOf(row: ProviderRow, channel: UpstreamChannel, call: UpstreamAddress): string {
  if (row.version === "gemini") return call.geminiVersion || GEMINI_DEFAULT_VERSION;
  return (
    new URLSearchParams(call.query ?? "").get("api-version") ||
    channel.other.trim() ||
    call.azureDefaultApiVersion ||
    AZURE_DEFAULT_API_VERSION
  );
}

function pathOf(call: UpstreamAddress): string {
  const own = OPERATION_PATHS[call.operation];
  const path = call.path ?? own;
  // The playground's prefix and the old embeddings path with the model in it are the gateway's matter only.
  if (path.startsWith("/pg/")) return `/v1${path.slice("/pg".length)}`;
  return path.startsWith("/v1/engines/") ? own : path;
}

function templateOf(row: ProviderRow, route: Route, base: string, call: UpstreamAddress): string {
  for (const variant of route.variants ?? []) {
    const fitsModel = variant.modelPrefix === undefined || call.model.startsWith(variant.modelPrefix);
    const fitsBase = variant.baseSuffix === undefined || base.endsWith(variant.baseSuffix);
    if (fitsModel && fitsBase) return variant.url;
  }
  if (call.counts === true && route.countUrl !== undefined) return route.countUrl;
  const template = call.isStream === true && route.streamUrl !== undefined ? route.streamUrl : route.url;
  if (row.gatewayDrops === "/openai/deployments" && base.startsWith(CLOUDFLARE_GATEWAY))
    return template.replace("{base}/openai/deployments", "{base}");
  if (route.once !== undefined && base.endsWith(route.once))
    return template.replace(`{base}${route.once}`, "{base}");
  return template;
}

/** What the upstream calls the model: Azure's older channels name their deployments without dots. */
export function deploymentName(row: ProviderRow, channel: UpstreamChannel, model: string): string {
  const isOld = channel.createdTime > 0 && channel.createdTime < AZURE_DOTS_SINCE_SECONDS;
  return row.version === "azure" && isOld ? model.replaceAll(".", "") : model;
}

/** An address, and what of a call it was made from. */
interface KnownUrl extends Pick<UpstreamAddress, "operation" | "isStream" | "counts"> {
  path: string | undefined;
  geminiVersion: string | undefined;
  azureDefaultApiVersion: string | undefined;
  url: string;
}

interface KnownUrls {
  row: ProviderRow;
  /** By model. */
  urls: Map<string, KnownUrl[]>;
  count: number;
}

/** Addresses that were made before, by the channel as it was read: a channel is called at a handful of them. */
const known = new WeakMap<UpstreamChannel, KnownUrls>();
/** Clients name models, so their number has to end somewhere. */
const MAX_KNOWN_URLS = 256;

/** `makeUrl` with a memory; an address with a query of the client's is made each time. */
export function upstreamUrl(row: ProviderRow, channel: UpstreamChannel, call: UpstreamAddress): string {
  if (call.query) return makeUrl(row, channel, call);
  let entry = known.get(channel);
  if (!entry || entry.row !== row || entry.count >= MAX_KNOWN_URLS)
    known.set(channel, (entry = { row, urls: new Map(), count: 0 }));
  const { operation, path, isStream, counts, geminiVersion, azureDefaultApiVersion, model } = call;
  // Compared one by one: a name put together from all of them costs more than the few looks.
  const ofModel = entry.urls.get(model);
  if (ofModel)
    for (const each of ofModel)
      if (
        each.operation === operation &&
        each.path === path &&
        each.isStream === isStream &&
        each.counts === counts &&
        each.geminiVersion === geminiVersion &&
        each.azureDefaultApiVersion === azureDefaultApiVersion
      )
        return each.url;
  const url = makeUrl(row, channel, call);
  const made: KnownUrl = { operation, path, isStream, counts, geminiVersion, azureDefaultApiVersion, url };
  if (ofModel) ofModel.push(made);
  else entry.urls.set(model, [made]);
  entry.count++;
  return url;
}

/**
 * The address to call. Base and path are joined as they stand: a base URL that ends in /v1 gets a second /v1 (the
 * console warns of it). Realtime addresses come with ws or wss.
 */
function makeUrl(row: ProviderRow, channel: UpstreamChannel, call: UpstreamAddress): string {
  requireServed(row);
  const route = row.operations[call.operation];
  if (!route)
    throw new Failure("no-channel", "endpoint_unsupported", {
      params: { model: call.model, group: "" },
      retryable: true,
    });
  // An adapter may make its address from the key or a region: it needs no base.
  const base = route.adapter === undefined ? baseUrlOf(row, channel) : ownBase(row, channel);
  let url: string;
  if (row.hasFullUrl) {
    url = base.replaceAll("{model}", () => escapePath(call.model));
  } else {
    const path = pathOf(call);
    const dropsVersion = row.gatewayDrops === "/v1" && base.startsWith(CLOUDFLARE_GATEWAY);
    const model = deploymentName(row, channel, call.model);
    const values: Readonly<Record<string, () => string>> = {
      base: () => base,
      path: () => (dropsVersion ? path.replace(/^\/v1(?=\/)/, "") : path),
      tail: () => path.replace(/^\/v1\//, ""),
      query: () => forwardedQuery(call.query),
      model: () => escapePath(model),
      other: () => encodeURIComponent(channel.other.trim()),
      version: () => encodeURIComponent(versionOf(row, channel, call)),
    };
    url = templateOf(row, route, base, call).replace(
      /\{(\w+)\}/g,
      (whole, name: string) => values[name]?.() ?? whole,
    );
  }
  return call.operation === "realtime" ? url.replace(/^http/, "ws") : url;
}

/**
 * What stands in front of every path of a provider: lists and accounts lie beside the endpoint of a complete address.
 * Undefined where such an address does not tell.
 */
export function siteOf(row: ProviderRow, channel: Pick<UpstreamChannel, "baseUrl">): string | undefined {
  const base = baseUrlOf(row, channel);
  if (!row.hasFullUrl) return base;
  const at = base.replace(/[?#].*$/, "").lastIndexOf("/v1/");
  return at > 0 ? base.slice(0, at) : undefined;
}

/** Where the upstream lists its models; undefined for types that have no such list, and addresses that do not tell. */
export function modelsUrl(row: ProviderRow, channel: Pick<UpstreamChannel, "baseUrl">): string | undefined {
  if (!row.modelsListing) return undefined;
  const base = siteOf(row, channel);
  if (base === undefined) return undefined;
  const dropsVersion = row.gatewayDrops === "/v1" && base.startsWith(CLOUDFLARE_GATEWAY);
  const url = row.modelsListing.url.replace("{base}", () => base);
  return dropsVersion ? url.replace(/\/v1\/models$/, "/models") : url;
}
