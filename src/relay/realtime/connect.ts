// One attempt to open a realtime socket at an upstream, up to its first event: only then is the channel known to work.
// Refuses to show where the upstream lives; a refusal becomes the failure of the attempt, like any other upstream's.
import type { WebSocket as ClientSocket } from "bun";
import type { Channel } from "../../core/channels/rows.ts";
import { scrub } from "../../protocol/classify.ts";
import { asObject, asText, parseJson } from "../../protocol/json.ts";
import { openaiChat } from "../../protocol/openai-chat/dialect.ts";
import { handshakeStatus, openSocket } from "../../providers/socket.ts";
import { Failure } from "../../shared/failures.ts";
import { attemptFailure, upstreamFailure } from "../call/attempt.ts";
import type { AttemptFailure } from "../call/attempt.ts";

export type Frame = string | Buffer<ArrayBuffer>;

export interface SocketTarget {
  url: string;
  headers: Record<string, string>;
  protocols: string[];
  /** Address of an outgoing proxy; "" = none. */
  proxy: string;
}

interface SocketAttempt {
  target: SocketTarget;
  /** Until the socket is open. */
  openMs: number;
  /** How long an open socket may stay silent before it is taken as it is; a session normally begins with an event. */
  firstEventMs: number;
  channel: Pick<Channel, "statusCodeMapping">;
  clientSignal: AbortSignal;
}

interface UpstreamListener {
  message(frame: Frame): void;
  close(code: number, reason: string): void;
  /** Any sign of life besides messages. */
  alive(): void;
}

/** An open socket; frames wait until somebody listens. */
export interface UpstreamSocket {
  readonly socket: ClientSocket;
  listen(listener: UpstreamListener): void;
}

/** Status that an error event stands for: the protocol refuses keys and models only after the handshake. */
function statusOfEvent(error: Record<string, unknown>): number {
  const words = `${asText(error["code"] ?? "")} ${asText(error["type"] ?? "")}`;
  if (/invalid_api_key|authentication|unauthorized/.test(words)) return 401;
  if (/permission|forbidden/.test(words)) return 403;
  if (/model_not_found|not_found/.test(words)) return 404;
  if (/quota|billing|rate_limit|too_many/.test(words)) return 429;
  if (/server_error|overloaded|unavailable|internal/.test(words)) return 500;
  return 400;
}

/** The error of a first frame that is one; upstreams that work begin with `session.created`. */
function firstError(frame: Frame): Record<string, unknown> | undefined {
  if (typeof frame !== "string" || !frame.includes('"error"')) return undefined;
  const event = asObject(parseJson(frame));
  return event?.["type"] === "error" ? asObject(event["error"]) : undefined;
}

function timedOut(): AttemptFailure {
  return attemptFailure(new Failure("upstream-timeout", "upstream_timeout", { type: "upstream_error" }));
}

function unreachable(message: string): AttemptFailure {
  return attemptFailure(
    new Failure("upstream-down", "do_request_failed", {
      status: 500,
      type: "new_api_error",
      internal: scrub(message),
      retryable: true,
    }),
  );
}

/** Resolves with an open socket, throws an AttemptFailure for anything else. */
export function connectUpstream(attempt: SocketAttempt): Promise<UpstreamSocket> {
  const { target, channel } = attempt;
  let socket: ClientSocket;
  try {
    socket = openSocket(target.url, {
      headers: target.headers,
      protocols: target.protocols,
      perMessageDeflate: false,
      ...(target.proxy === "" ? {} : { proxy: target.proxy }),
    });
  } catch (error) {
    return Promise.reject(unreachable(error instanceof Error ? error.message : String(error)));
  }
  socket.binaryType = "nodebuffer";
  const mail: Mailbox = { early: [], closed: undefined, listener: undefined };
  const opening = watchOpening(socket, mail, attempt);

  socket.onopen = () => opening.opened();
  socket.onmessage = ({ data }) => {
    const frame = data as Frame;
    if (mail.listener) return mail.listener.message(frame);
    const error = opening.isSettled() ? undefined : firstError(frame);
    if (error) return opening.fail(refused(channel, statusOfEvent(error), { error }));
    mail.early.push(frame);
    opening.succeed();
  };
  socket.addEventListener("pong", () => mail.listener?.alive());
  socket.addEventListener("ping", () => mail.listener?.alive());
  socket.onerror = ({ message }) => {
    const status = handshakeStatus(message);
    if (status === undefined) opening.fail(unreachable(message));
    // 101 is the only status that opens a socket: an ordinary page answers, but no realtime endpoint.
    else opening.fail(refused(channel, status < 400 ? 502 : status, ""));
  };
  socket.onclose = ({ code, reason }) => {
    if (mail.listener) return mail.listener.close(code, reason);
    mail.closed = { code, reason };
    opening.fail(closedEarly(channel, code, reason));
  };
  return opening.outcome;
}

function refused(channel: Pick<Channel, "statusCodeMapping">, status: number, body: unknown): AttemptFailure {
  return upstreamFailure({ dialect: openaiChat, channel, status, body });
}

/** Opened and closed again without a word: some servers refuse keys this way. */
function closedEarly(
  channel: Pick<Channel, "statusCodeMapping">,
  code: number,
  reason: string,
): AttemptFailure {
  if (code === 1008 || (code >= 3000 && code < 5000))
    return refused(channel, /key|auth/i.test(reason) ? 401 : 400, reason);
  return unreachable(`closed with ${code} ${reason}`);
}

/** What the socket brings while nobody listens. */
interface Mailbox {
  early: Frame[];
  closed: { code: number; reason: string } | undefined;
  listener: UpstreamListener | undefined;
}

function listen(mail: Mailbox, listener: UpstreamListener): void {
  mail.listener = listener;
  for (const frame of mail.early.splice(0)) listener.message(frame);
  if (mail.closed) listener.close(mail.closed.code, mail.closed.reason);
}

/** Until the socket is known to work or to fail; what comes later changes nothing. */
interface Opening {
  outcome: Promise<UpstreamSocket>;
  isSettled(): boolean;
  /** The handshake is through: the session's first event is waited for. */
  opened(): void;
  succeed(): void;
  fail(failure: AttemptFailure): void;
}

function watchOpening(
  socket: ClientSocket,
  mail: Mailbox,
  { openMs, firstEventMs, clientSignal }: SocketAttempt,
): Opening {
  const { promise, resolve, reject } = Promise.withResolvers<UpstreamSocket>();
  let isSettled = false;
  let timer = setTimeout(() => fail(timedOut()), openMs);

  function settle(): void {
    isSettled = true;
    clearTimeout(timer);
    clientSignal.removeEventListener("abort", onGone);
  }
  function fail(failure: AttemptFailure): void {
    if (isSettled) return;
    settle();
    reject(failure);
    socket.terminate();
  }
  function succeed(): void {
    if (isSettled) return;
    settle();
    resolve({ socket, listen: (listener) => listen(mail, listener) });
  }
  function onGone(): void {
    fail(attemptFailure(new Failure("client", "client_gone", { status: 499 })));
  }
  if (clientSignal.aborted) onGone();
  else clientSignal.addEventListener("abort", onGone, { once: true });
  return {
    outcome: promise,
    isSettled: () => isSettled,
    opened() {
      clearTimeout(timer);
      if (!isSettled) timer = setTimeout(succeed, firstEventMs);
    },
    succeed,
    fail,
  };
}
