// A running realtime session: frames pass both ways untouched, and every finished response is charged before its end is
// passed on. Refuses to go on without an amount held back for the next turn, or once the key no longer works.
import type { EndReason } from "../../core/ledger/settle-policy.ts";
import { CloseCode, closeReason, isSendableCode } from "../../http/sockets.ts";
import type { ServerSocket, SocketHandlers } from "../../http/sockets.ts";
import { scrub } from "../../protocol/classify.ts";
import { asObject } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import { withoutKeys } from "../../shared/without-keys.ts";
import { drainingFailure } from "../call/call.ts";
import { isCut } from "../wire/stream-end.ts";
import { cleanFrame } from "./clean-frame.ts";
import type { Frame } from "./connect.ts";
import { chargeHeard } from "./heard-charge.ts";
import { isOutput, readEvent, TurnMeter } from "./meter.ts";
import type { HeardEnd, RealtimeEvent, TurnEnd } from "./meter.ts";
import type { SessionParts } from "./session-parts.ts";
import { forbiddenTranscriber } from "./transcriber.ts";
import { chargeTurn } from "./turn-charge.ts";
import { AHEAD_TOKENS, coverTurn, goodbyeOf, tokensOf } from "./turn-hold.ts";
import type { TurnCover, TurnHold } from "./turn-hold.ts";
import { transcriberPrice } from "./turn-pricing.ts";
import { asFailure, encodeFailure } from "../wire/render-failure.ts";

/** Bytes on the way to the upstream at which the client has to wait, and at which it may go on. */
const HIGH_WATER_BYTES = 1024 * 1024;
const LOW_WATER_BYTES = 256 * 1024;
/** How long a response may go on once nobody waits for it: enough to hear what it cost. */
const DRAIN_MS = 2000;
const MAX_REMEMBERED_RESPONSES = 64;

const PAID: TurnCover = { isPaid: true, isAhead: true };

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
  #turn: TurnHold | undefined;
  #turnCount = 1;
  /** What was charged last: the next turn reads it again. */
  #context: Usage | undefined;
  /** Frames of the upstream that wait while a turn is being settled or its hold lengthened. */
  #inbox: Frame[] = [];
  #isBusy = false;
  /** The settlement or the step of the hold: the end waits for it. */
  #settling: Promise<void> = Promise.resolve();
  /** Frames of the client that wait while the hold is lengthened for one of them. */
  #outbox: Frame[] | undefined;
  #upstreamClosed: { code: number; reason: string } | undefined;
  #goodbye: Goodbye | undefined;
  #finished = Promise.withResolvers<void>();
  /** Resolves when no response is under way any more. */
  #quiet: PromiseWithResolvers<void> | undefined;
  #seen = new Set<string>();
  #watchedTokens = 0;
  #heardMs = performance.now();
  /** When the turn before ended, or the session was opened: a turn that shows no sign of its beginning began then. */
  #sinceMs = performance.now();

  /** That the upstream was opened with. */
  readonly #key: string;

  constructor(private readonly parts: SessionParts) {
    this.#key = parts.channel.keys[parts.keyIndex] ?? "";
    this.#turn = parts.firstTurn;
    const isPriced = (transcriber: string): boolean =>
      transcriberPrice(parts.deps, parts.caller, transcriber) !== undefined;
    this.#meter = new TurnMeter(parts.isTranscription, isPriced, parts.upstreamModel);
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
    const { maxFrameBytes } = this.parts;
    if (message.length > maxFrameBytes) {
      const failure = new Failure("client", "body_too_large", {
        status: 413,
        params: { limit: `${Math.floor(maxFrameBytes / 1024 / 1024)} MiB` },
        type: "invalid_request_error",
      });
      this.#end({ reason: "completed", code: CloseCode.tooLarge, text: failure.code, failure });
      return;
    }
    if (this.#outbox) this.#outbox.push(message);
    else this.#take(socket, message);
  }

  #take(socket: ServerSocket, message: Frame): void {
    const event = typeof message === "string" ? readEvent(message) : undefined;
    if (event) {
      const { caller, upstreamModel } = this.parts;
      const { isTranscription } = this.#meter;
      const forbidden = forbiddenTranscriber(event.json, { caller, upstreamModel, isTranscription });
      if (forbidden) return this.#send(this.#errorEvent(forbidden));
      this.#meter.client(event);
      // While a turn is being charged nothing can be asked: the next one holds what came meanwhile.
      const cover = this.#isBusy ? PAID : this.#cover(this.#meter.quick());
      if (cover instanceof Promise) {
        this.#outbox = [];
        socket.pause();
        this.#settling = this.#whenPaid(cover, () => this.#forward(socket, message)).finally(() => {
          const waiting = this.#outbox ?? [];
          this.#outbox = undefined;
          socket.resume();
          for (const each of waiting) this.message(socket, each);
        });
        return;
      }
      if (!cover.isPaid) return this.#refuse();
    }
    this.#forward(socket, message);
  }

  #forward(socket: ServerSocket, message: Frame): void {
    const { upstream } = this.parts;
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
      request_id: this.parts.requestId,
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
    if (!event) return this.#pass(this.#cleaned(frame));
    if (isOutput(event)) {
      // What the balance or the cap has refused is neither delivered nor charged.
      if (this.#goodbye && isCut(this.#goodbye.reason)) return;
      const cover = this.#goodbye ? PAID : this.#cover(this.#meter.quick(event));
      if (cover instanceof Promise) {
        this.parts.upstream.socket.pause();
        this.#settling = this.#whenPaid(cover, () => this.#deliver(frame, event));
        return;
      }
      if (!cover.isPaid) return this.#refuse();
    }
    this.#deliver(isOutput(event) ? frame : this.#cleaned(frame, event), event);
  }

  #cleaned(frame: Frame, event?: RealtimeEvent): Frame {
    return typeof frame === "string" ? cleanFrame(frame, event, this.#key) : frame;
  }

  #deliver(frame: Frame, event: RealtimeEvent): void {
    const end = this.#meter.server(event);
    if (end && this.#isNew(end)) {
      this.#isBusy = true;
      this.parts.upstream.socket.pause();
      const { transcriber, usage } = end;
      const isHeard = transcriber !== undefined && usage !== null;
      this.#settling = isHeard
        ? this.#endHeard(frame, { ...end, usage, transcriber })
        : this.#endTurn(frame, end);
      return;
    }
    this.#pass(frame);
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

  /** Charges the turn, passes its last frame on, holds back for the next one, then lets the waiting frames through. */
  async #endTurn(frame: Frame, { usage }: TurnEnd): Promise<void> {
    try {
      await this.#settle(this.#goodbye?.reason ?? "completed", usage);
      this.#pass(frame);
      if (!this.#goodbye) {
        await this.parts.readmit();
        this.#turn = await this.parts.openTurn(this.#turnId(), this.#context, this.#meter.outputLimit);
      }
    } catch (error) {
      const failure = asFailure(error);
      this.#end({ reason: "completed", ...goodbyeOf(failure), failure });
    }
    this.#isBusy = false;
    if (!this.#meter.isResponding) this.#nowQuiet();
    this.#goOn();
  }

  /** Charges a transcription that has a price of its own, then passes its last frame on; the turn goes on. */
  async #endHeard(frame: Frame, heard: HeardEnd): Promise<void> {
    try {
      await this.#settleHeard(this.#goodbye?.reason ?? "completed", heard);
      // What could not be charged by itself is not put off until a response comes: none may.
      if (this.#meter.isOnlyHeard && !this.#meter.isResponding)
        return await this.#endTurn(frame, { id: "", usage: this.#meter.reported });
      this.#pass(frame);
      // What is under way now is looked at from nothing, however long the longest was that was charged before.
      this.#watchedTokens = 0;
      const cap = this.#turn?.session;
      if (cap && cap.spent >= cap.units) this.#refuse();
    } catch (error) {
      const failure = asFailure(error);
      this.#end({ reason: "completed", ...goodbyeOf(failure), failure });
    }
    this.#isBusy = false;
    this.#goOn();
  }

  async #settleHeard(end: EndReason, heard: HeardEnd): Promise<void> {
    const { parts } = this;
    const turn = this.#turn;
    if (!turn) return;
    const requestId = this.#turnId();
    let isCharged = false;
    try {
      isCharged = await chargeHeard(parts.deps, { parts, requestId, heard, turn, end });
    } finally {
      if (isCharged) parts.chargedHeard(heard.usage);
      else this.#meter.keepHeard(heard.usage);
    }
  }

  /** Lets the frames through that waited. */
  #goOn(): void {
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
    // A proper goodbye is handed on; a connection that breaks off is reported as an error.
    if (isSendableCode(code) || code === 1005) {
      this.#end({
        reason: this.#meter.isResponding ? "upstream-cut" : "completed",
        code: code === 1005 ? CloseCode.normal : code,
        text: scrub(withoutKeys(reason, [this.#key]), 120),
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

  /** Whether the running turn is paid with so much in it; priced only where that is not clear from the last time. */
  #cover(usage: Usage): TurnCover | Promise<TurnCover> {
    const turn = this.#turn;
    if (!turn) return PAID;
    const tokens = tokensOf(usage);
    if (tokens < this.#watchedTokens + AHEAD_TOKENS) return PAID;
    const judged = (cover: TurnCover): TurnCover => {
      // Otherwise the next frame is looked at again.
      if (cover.isAhead) this.#watchedTokens = tokens;
      return cover;
    };
    const cover = coverTurn(turn, usage);
    return cover instanceof Promise ? cover.then(judged) : judged(cover);
  }

  async #whenPaid(cover: Promise<TurnCover>, go: () => void): Promise<void> {
    this.#isBusy = true;
    const { isPaid } = await cover;
    this.#isBusy = false;
    if (!isPaid) this.#refuse();
    else if (!this.#goodbye) go();
    this.#goOn();
  }

  #refuse(): void {
    const turn = this.#turn;
    if (!turn) return;
    const failure = this.parts.refusal(turn);
    const reason = failure.code === "max_cost_exceeded" ? "max-cost" : "balance";
    this.#end({ reason, ...goodbyeOf(failure), failure });
  }

  /** Charges and logs the running turn. Without anything to charge the hold goes back. */
  async #settle(end: EndReason, reported: Usage | null): Promise<void> {
    const turn = this.#turn;
    this.#turn = undefined;
    if (!turn) return;
    const { parts } = this;
    const meter = this.#meter;
    // The next response reads the whole conversation, and not merely what was heard last.
    const isHeard = meter.isOnlyHeard && reported !== null;
    try {
      const charged = await chargeTurn({ parts, turn, meter, end, reported, sinceMs: this.#sinceMs });
      if (charged) parts.charged(charged, isHeard);
      if (charged && !isHeard) this.#context = charged;
    } finally {
      await turn.reservation.release();
      meter.next(isHeard);
      this.#sinceMs = performance.now();
      this.#watchedTokens = 0;
    }
  }

  // --- the end ------------------------------------------------------------------------------------------------------

  /** Once; the first reason stands. */
  #end(goodbye: Goodbye): void {
    if (this.#goodbye) return;
    this.#goodbye = goodbye;
    this.#finish(goodbye).catch((error: unknown) => {
      this.parts.deps.logger.error("a realtime session could not be settled", {
        request_id: this.parts.requestId,
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
      // What comes now is neither delivered nor charged: it would be charged beside what is settled here.
      this.#isBusy = true;
      const cut = this.#meter.cutHearing();
      // Where that fails it goes with the turn, whose own failure is told.
      if (cut) await this.#settleHeard(reason, cut).catch(() => undefined);
      if (this.#meter.sawOutput) await this.#settle(reason, this.#meter.reported);
    } finally {
      await this.#giveBack();
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
    await turn?.reservation.release();
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
  async goAway(limitMs: number): Promise<void> {
    if (this.#meter.isResponding && !this.#goodbye) await this.#whenQuiet(limitMs);
    const isCut = this.#meter.isResponding;
    this.#end({
      reason: isCut ? "draining" : "completed",
      code: CloseCode.goingAway,
      text: "the gateway is restarting",
      ...(isCut ? { failure: drainingFailure() } : {}),
    });
    await this.finished;
  }
}
