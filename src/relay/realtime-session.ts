// A running realtime session: frames pass both ways untouched, and every finished response is charged before its end is
// passed on. Refuses to go on without an amount held back for the next turn, or once the key no longer works.
import type { Channel } from "../core/channel-rows.ts";
import type { Deps } from "../core/deps.ts";
import { cost } from "../core/prices.ts";
import { decideCharge, quotaCapOf, usageTrust } from "../core/settle-policy.ts";
import type { ChargeDecision, EndReason } from "../core/settle-policy.ts";
import { CloseCode, closeReason, isSendableCode } from "../http/sockets.ts";
import type { ServerSocket, SocketHandlers } from "../http/sockets.ts";
import { scrub } from "../protocol/classify.ts";
import { asObject } from "../protocol/json.ts";
import type { Language } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import { completionTokens, emptyUsage, promptTokens } from "../shared/usage.ts";
import type { Usage } from "../shared/usage.ts";
import type { Caller } from "./admission.ts";
import type { AttemptNote } from "./call.ts";
import type { Frame, UpstreamSocket } from "./realtime-connect.ts";
import { readEvent, TurnMeter } from "./realtime-meter.ts";
import type { RealtimeEvent, TurnEnd } from "./realtime-meter.ts";
import { heldBy, sentence } from "./realtime-turn.ts";
import type { Turn } from "./realtime-turn.ts";
import { asFailure, encodeFailure } from "./render-failure.ts";
import type { TokenCounter } from "./token-count.ts";

/** Bytes on the way to the upstream at which the client has to wait, and at which it may go on. */
const HIGH_WATER_BYTES = 1024 * 1024;
const LOW_WATER_BYTES = 256 * 1024;
/** How long a response may go on once nobody waits for it: enough to hear what it cost. */
const DRAIN_MS = 2000;
/** How long a response may finish when the process is about to stop. */
const GO_AWAY_MS = 10_000;
/** Tokens after which the running turn is held against the balance again. */
const WATCH_TOKENS = 16;
const MAX_REMEMBERED_RESPONSES = 64;

export interface SessionParts {
  deps: Pick<Deps, "prices" | "options" | "ledger" | "logger">;
  counter: TokenCounter;
  requestId: string;
  language: Language;
  caller: Caller;
  channel: Channel;
  /** As requested: the name of the log. */
  model: string;
  upstreamModel: string;
  attempts: readonly AttemptNote[];
  isTranscription: boolean;
  /** Bytes of the largest frame that a client may send. */
  maxFrameBytes: number;
  upstream: UpstreamSocket;
  /** The first turn, held back before the upstream was called. */
  turn: Turn;
  /** Holds back for the next turn; throws failures of kind quota. */
  openTurn: (requestId: string, atLeast: number) => Promise<Turn>;
  /** A quick look: false when something about the key changed that `readmit` has to judge. */
  isUnchanged: () => boolean;
  /** Throws when the key, its owner or the model are no longer admitted. */
  readmit: () => Promise<void>;
  /** The session is over and everything is recorded. */
  ended: (session: RealtimeSession) => void;
  /** The client sends faster than the upstream takes: look again soon with `relieve`. */
  congested: (session: RealtimeSession) => void;
}

interface Goodbye {
  reason: EndReason;
  code: number;
  text: string;
  /** Told to the client as an error event before the socket closes. */
  failure?: Failure;
}

export class RealtimeSession implements SocketHandlers {
  #client: ServerSocket | undefined;
  #meter: TurnMeter;
  #turn: Turn | undefined;
  #turnCount = 1;
  /** Frames of the upstream that wait while a turn is being settled. */
  #inbox: Frame[] = [];
  #isBusy = false;
  /** The turn that is being settled, and the hold that is being raised: the end waits for both. */
  #settling: Promise<void> = Promise.resolve();
  #extending: Promise<void> | undefined;
  #upstreamClosed: { code: number; reason: string } | undefined;
  #goodbye: Goodbye | undefined;
  #finished = Promise.withResolvers<void>();
  /** Resolves when no response is under way any more. */
  #quiet: PromiseWithResolvers<void> | undefined;
  #seen = new Set<string>();
  #watchedTokens = 0;
  #heardMs = performance.now();
  #openedMs = performance.now();

  constructor(private readonly parts: SessionParts) {
    this.#turn = parts.turn;
    this.#meter = new TurnMeter(parts.isTranscription);
  }

  /** Everything is recorded and both sockets are closed. */
  get finished(): Promise<void> {
    return this.#finished.promise;
  }

  // --- the client's side --------------------------------------------------------------------------------------------

  open(socket: ServerSocket): void {
    this.#client = socket;
    this.parts.upstream.listen({
      message: (frame) => this.#receive(frame),
      close: (code, reason) => this.#upstreamGone(code, reason),
      alive: () => (this.#heardMs = performance.now()),
    });
  }

  message(socket: ServerSocket, message: Frame): void {
    if (this.#goodbye) return;
    const { upstream, maxFrameBytes } = this.parts;
    if (message.length > maxFrameBytes) {
      const failure = new Failure("client", "body_too_large", {
        status: 413,
        params: { limit: Math.floor(maxFrameBytes / 1024 / 1024) },
        type: "invalid_request_error",
      });
      this.#end({ reason: "completed", code: CloseCode.tooLarge, text: failure.code, failure });
      return;
    }
    if (typeof message === "string") {
      const event = readEvent(message);
      if (event) {
        this.#meter.client(event);
        this.#watch(event);
      }
    }
    if (upstream.socket.readyState !== WebSocket.OPEN) return;
    upstream.socket.send(message);
    if (upstream.socket.bufferedAmount > HIGH_WATER_BYTES && !socket.isPaused) {
      socket.pause();
      this.parts.congested(this);
    }
  }

  /** True when the client may send again (or is gone). */
  relieve(): boolean {
    const { socket } = this.parts.upstream;
    const isOver = this.#goodbye !== undefined || socket.readyState !== WebSocket.OPEN;
    if (!isOver && socket.bufferedAmount > LOW_WATER_BYTES) return false;
    this.#client?.resume();
    return true;
  }

  drain(): void {
    if (!this.#isBusy) this.parts.upstream.socket.resume();
  }

  close(_socket: ServerSocket, code: number): void {
    this.#client = undefined;
    this.#end({ reason: "client-gone", code: isSendableCode(code) ? code : CloseCode.normal, text: "" });
  }

  failed(error: unknown): void {
    const failure = asFailure(error);
    this.parts.deps.logger.error("a realtime session failed", {
      requestId: this.parts.requestId,
      error: error instanceof Error ? (error.stack ?? error.message) : "thrown value",
    });
    this.#end({ reason: "completed", ...goodbyeOf(failure), failure });
  }

  #send(frame: Frame): void {
    const client = this.#client;
    if (!client || client.readyState !== WebSocket.OPEN) return;
    if (client.send(frame) === -1) this.parts.upstream.socket.pause();
  }

  // --- the upstream's side ------------------------------------------------------------------------------------------

  #receive(frame: Frame): void {
    this.#heardMs = performance.now();
    if (this.#isBusy) this.#inbox.push(frame);
    else this.#handle(frame);
  }

  #handle(frame: Frame): void {
    const event = typeof frame === "string" ? readEvent(frame) : undefined;
    if (!event) return this.#pass(frame);
    const end = this.#meter.server(event);
    if (end && this.#isNew(end)) {
      this.#isBusy = true;
      this.parts.upstream.socket.pause();
      this.#settling = this.#endTurn(frame, end);
      return;
    }
    this.#pass(event.type === "error" ? this.#cleaned(frame, event) : frame);
    this.#watch(event);
  }

  #pass(frame: Frame): void {
    if (!this.#goodbye) this.#send(frame);
  }

  #isNew({ id }: TurnEnd): boolean {
    if (id === "") return true;
    if (this.#seen.has(id)) return false;
    if (this.#seen.size >= MAX_REMEMBERED_RESPONSES) this.#seen.clear();
    this.#seen.add(id);
    return true;
  }

  /** Errors in the middle of a session are the upstream's own words: keys, hosts and accounts are taken out of them. */
  #cleaned(frame: Frame, { json }: RealtimeEvent): Frame {
    const error = asObject(json?.["error"]);
    const message = error?.["message"];
    if (typeof message !== "string" || scrub(message) === message) return frame;
    return JSON.stringify({ ...json, error: { ...error, message: scrub(message) } });
  }

  /** Charges the turn, passes its last frame on, holds back for the next one, then lets the waiting frames through. */
  async #endTurn(frame: Frame, { usage }: TurnEnd): Promise<void> {
    try {
      const charged = await this.#settle("completed", usage);
      this.#pass(frame);
      if (!this.#goodbye) {
        await this.parts.readmit();
        this.#turn = await this.parts.openTurn(this.#turnId(), charged);
      }
    } catch (error) {
      const failure = asFailure(error);
      this.#end({ reason: "completed", ...goodbyeOf(failure), failure });
    }
    this.#isBusy = false;
    if (!this.#meter.isResponding) this.#nowQuiet();
    // Whatever waited may end a turn again, which makes the session busy once more.
    while (!this.#isBusy) {
      const next = this.#inbox.shift();
      if (next === undefined) break;
      this.#handle(next);
    }
    if (this.#isBusy) return;
    if (this.#upstreamClosed) this.#upstreamGone(this.#upstreamClosed.code, this.#upstreamClosed.reason);
    else if ((this.#client?.getBufferedAmount() ?? 0) === 0) this.parts.upstream.socket.resume();
  }

  #upstreamGone(code: number, reason: string): void {
    this.#upstreamClosed = { code, reason };
    this.#nowQuiet();
    if (this.#isBusy) return;
    // A proper goodbye is handed on; a connection that breaks off is told as an error.
    if (isSendableCode(code) || code === 1005) {
      this.#end({
        reason: this.#meter.isResponding ? "upstream-cut" : "completed",
        code: code === 1005 ? CloseCode.normal : code,
        text: scrub(reason, 120),
      });
      return;
    }
    const failure = new Failure("broken-stream", "broken_stream", { type: "upstream_error" });
    this.#end({ reason: "upstream-cut", code: CloseCode.broken, text: failure.code, failure });
  }

  // --- money --------------------------------------------------------------------------------------------------------

  #turnId(): string {
    const { requestId } = this.parts;
    this.#turnCount += 1;
    return `${requestId}-${this.#turnCount}`;
  }

  /**
   * Holds the running turn against the balance as it grows: when the count exceeds what is held back, more is held
   * back, and a balance that cannot pay for it ends the session in the middle of the turn.
   */
  #watch(event: RealtimeEvent): void {
    if (event.audioBytes === undefined && event.json?.["delta"] === undefined) return;
    const turn = this.#turn;
    if (!turn || this.#extending || this.#goodbye) return;
    const usage = this.#meter.quick();
    const tokens = promptTokens(usage) + completionTokens(usage);
    if (tokens < this.#watchedTokens + WATCH_TOKENS) return;
    this.#watchedTokens = tokens;
    const held = heldBy(turn);
    const { quota } = cost(turn.pricing, turn.groupRatio, usage, {
      quotaPerUnit: this.parts.deps.prices.tables().quotaPerUnit,
      surface: "realtime",
    });
    if (quota <= held) return;
    this.#extending = this.#extend(turn, quota - held).finally(() => (this.#extending = undefined));
  }

  async #extend(turn: Turn, amount: number): Promise<void> {
    const { deps, caller, requestId } = this.parts;
    const { user, token } = caller;
    try {
      const hold = await deps.ledger.reserve({
        requestId: `${requestId}-${this.#turnCount}+${turn.holds.length}`,
        user,
        token,
        amount,
      });
      // The turn may have been charged meanwhile.
      if (this.#turn === turn) turn.holds.push(hold);
      else await hold.release();
    } catch (error) {
      const failure = asFailure(error);
      this.#end({ reason: "completed", ...goodbyeOf(failure), failure });
    }
  }

  /** Charges and logs the running turn; the amount that was charged. Without anything to charge the holds go back. */
  async #settle(end: EndReason, reported: Usage | null): Promise<number> {
    await this.#extending;
    const turn = this.#turn;
    this.#turn = undefined;
    if (!turn) return 0;
    const { deps, counter, caller, channel, model, upstreamModel } = this.parts;
    const meter = this.#meter;
    const [first, ...others] = turn.holds;
    const tokens = meter.sawOutput ? "some" : "none";
    const decision = decideCharge({ end, usage: usageTrust(reported), tokens });
    try {
      let usage = reported ?? emptyUsage();
      if (decision.rule === "estimate") usage = await meter.count(counter, upstreamModel);
      if (decision.rule === "release") usage = emptyUsage();
      const { pricing, groupRatio } = turn;
      const charge = cost(pricing, groupRatio, usage, {
        quotaPerUnit: deps.prices.tables().quotaPerUnit,
        surface: "realtime",
        quotaCap: quotaCapOf(decision.rule, heldBy(turn)),
        ...(pricing.callPrice === undefined ? {} : { rounding: "floor" }),
        ...(decision.rule === "release" ? { callCount: 0 } : {}),
      });
      const startedMs = meter.startedMs === 0 ? this.#openedMs : meter.startedMs;
      await first?.settle({
        quota: charge.quota,
        promptTokens: promptTokens(usage),
        completionTokens: completionTokens(usage),
        modelName: model,
        channelId: channel.id,
        group: caller.group,
        isStream: true,
        useTimeMs: Math.round(performance.now() - startedMs),
        content: sentence(turn, decision),
        ...(caller.tokenName === undefined ? {} : { tokenName: caller.tokenName }),
        other: Object.assign(charge.other, this.#fields(end, decision)),
      });
      return charge.quota;
    } finally {
      await Promise.all([...(first ? [first] : []), ...others].map((hold) => hold.release()));
      meter.next();
      this.#watchedTokens = 0;
    }
  }

  #fields(end: EndReason, decision: ChargeDecision): Record<string, unknown> {
    const { attempts, requestId, model, upstreamModel } = this.parts;
    const { startedMs, firstOutputMs } = this.#meter;
    const hasBoth = startedMs !== 0 && firstOutputMs !== 0;
    return {
      frt: hasBoth ? Math.max(0, Math.round(firstOutputMs - startedMs)) : -1000,
      admin_info: { use_channel: attempts.map((note) => String(note.channel)) },
      attempts,
      end_reason: end,
      client_dialect: "openai-realtime",
      upstream_dialect: "openai-realtime",
      // All turns of a session carry the id that its handshake was answered with.
      session: requestId,
      ...(decision.rule === "estimate" ? { estimated: true } : {}),
      ...(decision.note === "" ? {} : { note: decision.note }),
      ...(upstreamModel === model ? {} : { is_model_mapped: true, upstream_model_name: upstreamModel }),
    };
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  /** Once; the first reason stands. */
  #end(goodbye: Goodbye): void {
    if (this.#goodbye) return;
    this.#goodbye = goodbye;
    this.#finish(goodbye).catch((error: unknown) => {
      this.parts.deps.logger.error("a realtime session could not be settled", {
        requestId: this.parts.requestId,
        error: error instanceof Error ? (error.stack ?? error.message) : String(error),
      });
    });
  }

  async #finish({ reason, code, text, failure }: Goodbye): Promise<void> {
    const { socket } = this.parts.upstream;
    try {
      if (this.#meter.isResponding && socket.readyState === WebSocket.OPEN) {
        // What was generated is paid for: the upstream says how much if it is asked to stop.
        socket.send('{"type":"response.cancel"}');
        socket.resume();
        await this.#whenQuiet(DRAIN_MS);
      }
      // An amount that is being held back right now, or a turn that is being charged, comes first.
      while (this.#isBusy) await this.#settling;
      await this.#extending;
      if (this.#meter.sawOutput) await this.#settle(reason, null);
      else await this.#giveBack();
    } finally {
      const client = this.#client;
      if (client && failure) client.send(this.#errorEvent(failure));
      client?.close(code, closeReason(text));
      // A paused socket would not hear the other side's goodbye.
      socket.resume();
      if (socket.readyState === WebSocket.OPEN) socket.close(isSendableCode(code) ? code : CloseCode.normal);
      else socket.terminate();
      this.parts.ended(this);
      this.#finished.resolve();
    }
  }

  async #giveBack(): Promise<void> {
    const turn = this.#turn;
    this.#turn = undefined;
    await Promise.all(turn?.holds.map((hold) => hold.release()) ?? []);
  }

  #nowQuiet(): void {
    this.#quiet?.resolve();
    this.#quiet = undefined;
  }

  async #whenQuiet(limitMs: number): Promise<void> {
    this.#quiet ??= Promise.withResolvers<void>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const limit = new Promise<void>((resolve) => (timer = setTimeout(resolve, limitMs)));
    await Promise.race([this.#quiet.promise, limit]);
    clearTimeout(timer);
  }

  #errorEvent(failure: Failure): string {
    const { requestId, language } = this.parts;
    const { body } = encodeFailure(failure, { dialect: "openai-chat", language, requestId });
    const error = { param: "", code: failure.code, ...asObject(asObject(body)?.["error"]) };
    return JSON.stringify({ event_id: `evt_${requestId}`, type: "error", error });
  }

  /** Called twice a second for all sessions. */
  async check(nowMs: number, pingMs: number, silentMs: number): Promise<void> {
    if (this.#goodbye) return;
    const { socket } = this.parts.upstream;
    if (!this.parts.isUnchanged()) {
      try {
        await this.parts.readmit();
      } catch (error) {
        const failure = asFailure(error);
        this.#end({ reason: "completed", ...goodbyeOf(failure), failure });
        return;
      }
    }
    if (socket.readyState !== WebSocket.OPEN || socket.isPaused) {
      this.#heardMs = nowMs;
      return;
    }
    const silence = nowMs - this.#heardMs;
    if (silence > silentMs) socket.terminate();
    else if (silence > pingMs) socket.ping();
  }

  /** The process stops: a running response may finish, then the client is told to come back. */
  async goAway(): Promise<void> {
    if (this.#meter.isResponding && !this.#goodbye) await this.#whenQuiet(GO_AWAY_MS);
    this.#end({ reason: "completed", code: CloseCode.goingAway, text: "the gateway is restarting" });
    await this.finished;
  }
}

function goodbyeOf(failure: Failure): { code: number; text: string } {
  if (failure.kind === "internal") return { code: CloseCode.broken, text: failure.code };
  const { wireCode } = failure;
  return { code: CloseCode.refused, text: typeof wireCode === "string" ? wireCode : failure.code };
}
