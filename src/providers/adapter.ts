// The seam for providers with a protocol of their own: an adapter is a fetch that speaks one of the gateway's dialects.
// Refuses knowledge of clients, prices and rows of the database; what it throws or answers is classified by the relay.
import type { Operation, ProviderRow, Route, UpstreamChannel } from "./define.ts";
import type { JsonBody } from "./quirks.ts";

/** The relay's own fetch: it carries the proxy, the guard and the timers of the attempt. */
export type UpstreamFetch = (url: string, init: RequestInit) => Promise<Response>;

/** A file of a multipart request. */
export interface AdapterFile {
  name: string;
  filename: string | undefined;
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
}

export interface AdapterCall {
  /** What the upstream shall perform; `route.dialect` names the dialect of body and answer. */
  operation: Operation;
  row: ProviderRow;
  route: Route;
  channel: UpstreamChannel;
  /** One key of the channel, as the operator typed it (several parts where the type wants them). */
  key: string;
  /** Upstream name of the model. */
  model: string;
  /** The name the client asked for; region maps know models by it. */
  requestedModel?: string;
  isStream: boolean;
  /** In the dialect of the route, overrides applied, model mapped. */
  body: JsonBody;
  /** What the client wrote, where that is in the dialect that the route speaks besides; `body` says the same in the route's. */
  own?: JsonBody;
  /** Files of a multipart request (recordings, pictures), whose text fields are the body. */
  files?: readonly AdapterFile[];
  /** Address and headers as the row's templates make them, without the key. */
  url: string;
  headers: Record<string, string>;
  /** Fires when the client left or time is up: pass it to every fetch. */
  signal: AbortSignal;
  fetch: UpstreamFetch;
  /** Say it when what was asked for is under way, and paid for: from then on nothing but the deadline ends the attempt. */
  underWay?: () => void;
  /** The channel's outgoing proxy, for what is no fetch (a socket); absent or "" = none. */
  proxy?: string;
  /** Judges an address before something else than a fetch connects there; throws where the channel may not. */
  reach?: (url: string) => unknown;
  nowMs: () => number;
  /** A steady count of milliseconds, for how long something is kept. */
  monotonicMs: () => number;
  /** Makes ids where the provider gives none; called with a wire prefix such as "call_". */
  newId: (prefix: string) => string;
}

/**
 * Performs the call. Resolves with a response in the route's dialect: status 200 with a JSON body, or with an event
 * stream (content-type text/event-stream, pulled on demand) when one was asked for and the provider can stream; any other
 * status with the provider's own error body, which the relay classifies. Throws Failure for keys and settings that it
 * cannot read (channel_key_unusable and the like, retryable), and whatever fetch throws.
 */
export type Adapter = (call: AdapterCall) => Promise<Response>;
