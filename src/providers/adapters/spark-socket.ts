// iFlytek Spark's WebSocket: which address serves a model, how it is signed, and the frames that come out of it.
// Refuses to outlive the call: a signal that fires closes the socket at once.
import { createHmac } from "node:crypto";
import { scrub } from "../../protocol/classify.ts";
import { Failure } from "../../shared/failures.ts";
import { handshakeStatus, openSocket } from "../socket.ts";

export interface SparkTarget {
  /** Below the address. */
  path: string;
  /** The model's name in the request, and at the HTTP address. */
  domain: string;
}

const DOMAINS: Readonly<Record<string, string>> = {
  "v1.1": "lite",
  "v2.1": "generalv2",
  "v3.1": "generalv3",
  "v3.5": "generalv3.5",
  "v4.0": "4.0Ultra",
};
/** Models that stand at addresses of their own. */
const NAMED: Readonly<Record<string, string>> = {
  "pro-128k": "/chat/pro-128k",
  "max-32k": "/chat/max-32k",
  x1: "/v1/x1",
};

function ofVersion(version: string): SparkTarget {
  return { path: `/${version}/chat`, domain: DOMAINS[version] ?? `general${version}` };
}

/**
 * What serves a model: by the provider's own name, by the version behind the dash of the name, else by the channel's
 * special field. A client's api-version has no say: prices and limits go by the model's name.
 */
export function sparkTarget(model: string, other: string): SparkTarget {
  const path = NAMED[model];
  if (path !== undefined) return { path, domain: model };
  const known = Object.keys(DOMAINS).find((version) => DOMAINS[version] === model);
  if (known !== undefined) return ofVersion(known);
  const parts = model.split("-");
  const named = parts.length === 2 ? (parts[1] ?? "") : "";
  return ofVersion(/^v\d+(?:\.\d+)*$/.test(named) ? named : encodeURIComponent(other.trim()) || "v1.1");
}

/** The address with host, date and authorization in its query, as the provider's authentication page signs it. */
export function signSpark(address: string, apiSecret: string, apiKey: string, nowMs: number): string {
  const url = new URL(address);
  const date = new Date(nowMs).toUTCString();
  const base = `host: ${url.host}\ndate: ${date}\nGET ${url.pathname} HTTP/1.1`;
  const signature = createHmac("sha256", apiSecret).update(base).digest("base64");
  const header = `api_key="${apiKey}", algorithm="hmac-sha256", headers="host date request-line", signature="${signature}"`;
  url.searchParams.set("authorization", Buffer.from(header).toString("base64"));
  url.searchParams.set("date", date);
  url.searchParams.set("host", url.host);
  return url.href;
}

/** As much as one event of a stream may be. */
const MAX_QUEUED_CHARS = 10 * 1024 * 1024;

/** The handshake was answered with a status in place of a socket. */
export class HandshakeRefused extends Error {
  constructor(readonly status: number) {
    super(`handshake answered with ${status}`);
  }
}

function problemOf(message: string): Error {
  const status = handshakeStatus(message) ?? 0;
  if (status >= 400) return new HandshakeRefused(status);
  return new Failure("upstream-down", "do_request_failed", { retryable: true, internal: scrub(message) });
}

/**
 * Sends one message and gives the texts that come back, until the socket closes. Throws HandshakeRefused, a Failure
 * when it never opened, and the signal's reason when the call was given up.
 */
export async function* framesOf(
  url: string,
  body: unknown,
  signal: AbortSignal,
  { proxy, headers }: { proxy: string; headers: Record<string, string> },
): AsyncGenerator<string> {
  signal.throwIfAborted();
  const queue: string[] = [];
  let queuedChars = 0;
  let wake: () => void = () => {};
  let isOver = false;
  let problem: Error | undefined;
  const socket = openSocket(url, { perMessageDeflate: false, headers, ...(proxy === "" ? {} : { proxy }) });
  const end = (error?: Error): void => {
    isOver = true;
    problem ??= error;
    wake();
  };
  const abort = (): void => {
    socket.terminate();
    end(signal.reason as Error);
  };
  socket.onopen = () => {
    socket.send(JSON.stringify(body));
  };
  socket.onmessage = ({ data }) => {
    const text = String(data);
    queue.push(text);
    queuedChars += text.length;
    // The socket cannot be told to wait: a client that reads slowly may be behind so far and no further.
    if (queuedChars > MAX_QUEUED_CHARS) {
      socket.terminate();
      end(new Failure("broken-stream", "stream_line_too_long", { params: { limit: MAX_QUEUED_CHARS } }));
    }
    wake();
  };
  socket.onerror = ({ message }) => end(problemOf(message));
  socket.onclose = () => end();
  signal.addEventListener("abort", abort, { once: true });
  try {
    for (;;) {
      if (signal.aborted) break;
      const next = queue.shift();
      if (next !== undefined) {
        queuedChars -= next.length;
        yield next;
      } else if (isOver) break;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
    if (problem) throw problem;
  } finally {
    signal.removeEventListener("abort", abort);
    socket.terminate();
  }
}
