// What processes share through a Valkey or Redis, on the runtime's own client: scripts that answer within some milliseconds or
// not at all, and messages. Whoever asks goes on by what this process knows when there is no answer.
// Refuses to keep anybody waiting: a server that is away, paused or slow is not asked until it has answered by itself again.
import { RedisClient } from "bun";
import { createHash } from "node:crypto";
import { createValkeyChannels, inTime } from "./valkey-channels.ts";
import type { ValkeyChannels } from "./valkey-channels.ts";
import { probeValkey } from "./valkey-probe.ts";
import type { ValkeyAddress } from "./valkey-url.ts";

/**
 * An answer comes within so many ticks of a millisecond. Ticks are counted, not time: while this process is busy itself it reads
 * no answers, and must not take that for the server's silence.
 */
const DEADLINE_TICKS = 4;
const TICK_MS = 1;
const MOST_MISSES = 3;
const BEAT_MS = 1000;
const BEAT_AWAY_MS = 250;
const [PING_MS, PING_GRACE_MS] = [500, 50];
/** So many answers in such a time, one after another, make a server that was away one to be asked again. */
const [MOST_PROOFS, PROOF_MS] = [2, 20];
/** One that falls again so soon rests for so long, and has been told of already. */
const [RELAPSE_MS, REST_MS] = [1000, 1000];
/** A connection that is silent for so long is given up for a new one. */
const SILENT_MS = 3000;
const CONNECT_MS = 500;

/** A script of the server (Lua), by its text. Answers whole numbers, texts and lists of them. */
export interface ValkeyScript {
  text: string;
  /** By which the server keeps it. */
  sha: string;
}

/** Each is loaded with every connection: one that is loaded only when it is asked for is overtaken by what is asked next. */
const SCRIPTS: ValkeyScript[] = [];

/** Call while the program is loaded. */
export function valkeyScript(text: string): ValkeyScript {
  const script = { text, sha: createHash("sha1").update(text).digest("hex") };
  SCRIPTS.push(script);
  return script;
}

interface ValkeyState {
  /** It is asked. */
  isUp: boolean;
  /** Why it is not; empty while it is. */
  reason: string;
  /** Questions that this process answered by itself since its start. */
  missed: number;
}

export interface Valkey extends Pick<ValkeyChannels, "subscribe"> {
  /**
   * Runs the script; the site's prefix comes before each of the keys. Undefined, at once or after some milliseconds: no
   * answer, decide by what this process knows. Never rejects. `late` gets an answer that came after that.
   */
  run<T>(
    script: ValkeyScript,
    keys: readonly string[],
    args: readonly (string | number)[],
    late?: (answer: T) => void,
  ): Promise<T | undefined> | undefined;
  /** To all processes of the site, this one too; lost where the server is away. */
  publish(channel: string, text: string): void;
  state(): ValkeyState;
  /** It is asked. */
  isUp(): boolean;
  /** An answer that came counts as missed: whoever asked decides by what this process knows. */
  disbelieve(): void;
  /** On the steady clock: since when it is asked; of the last time where it is away. */
  upSinceMs(): number;
  close(): void;
}

/** The start is stopped with this sentence. */
export class ValkeyRefuses extends Error {
  constructor({ host, port }: ValkeyAddress, reason: string) {
    super(`REDIS_URL names ${host}:${port}, which refuses: ${reason}.`);
  }
}

export interface ValkeySettings {
  address: ValkeyAddress;
  /** Tells sites apart that share a server. */
  prefix: string;
  monotonicMs: () => number;
  /** Tests of what an answer says wait for it on any machine; 4 where it is absent. */
  deadlineTicks?: number | undefined;
  logger: {
    info(message: string, fields?: Record<string, unknown>): void;
    warn(message: string, fields?: Record<string, unknown>): void;
  };
}

interface Question {
  dueTick: number;
  isOver: boolean;
  resolve: (answer: unknown) => void;
}

/** Throws ValkeyRefuses where a server answers with a refusal; one that is away is looked for from then on. */
export async function openValkey(settings: ValkeySettings): Promise<Valkey> {
  const found = await probeValkey(settings.address);
  if (found.kind === "refuses") throw new ValkeyRefuses(settings.address, found.reason);
  const valkey = new SharedStore(settings);
  if (found.kind === "silent") valkey.fell(found.reason);
  await valkey.begin();
  return valkey;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

class SharedStore implements Valkey {
  #client: RedisClient | undefined;
  #opening: Promise<void> | undefined;
  /** In the order in which they were asked, which is that of the answers. */
  #questions: Question[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ticks = 0;
  #missTick = -1;
  #beat: ReturnType<typeof setTimeout> | undefined;
  #beatSentMs: number | undefined;
  #misses = 0;
  #missed = 0;
  #proofs = MOST_PROOFS;
  #restMs = 0;
  #upMs = -Infinity;
  #fellMs = -Infinity;
  #isUp = false;
  #isClosed = false;
  /** Why it is away; empty where it is not. */
  #reason = "";
  /** This outage has its words in the log: that it began, and that it is over. */
  #isTold = false;
  #isBackTold = false;
  readonly #channels: ValkeyChannels;
  readonly subscribe: ValkeyChannels["subscribe"];

  constructor(readonly settings: ValkeySettings) {
    const { address, prefix, monotonicMs } = settings;
    const open = () => openClient(address);
    this.#channels = createValkeyChannels({ open, prefix, monotonicMs, limitMs: CONNECT_MS });
    this.subscribe = (...words) => this.#channels.subscribe(...words);
  }

  /** The first connection is waited for: what a node does first is shared already. */
  async begin(): Promise<void> {
    await this.#open();
    this.#schedule();
  }

  run<T>(
    script: ValkeyScript,
    keys: readonly string[],
    args: readonly (string | number)[],
    late?: (answer: T) => void,
  ): Promise<T | undefined> | undefined {
    const client = this.#client;
    if (!this.#isUp || !client) {
      this.#missed += 1;
      return undefined;
    }
    const { prefix } = this.settings;
    const words = [script.sha, String(keys.length)];
    for (const key of keys) words.push(prefix + key);
    for (const arg of args) words.push(typeof arg === "string" ? arg : String(arg));
    const { promise, resolve } = Promise.withResolvers<T | undefined>();
    const question: Question = {
      dueTick: this.#ticks + (this.settings.deadlineTicks ?? DEADLINE_TICKS),
      isOver: false,
      resolve: resolve as (answer: unknown) => void,
    };
    this.#questions.push(question);
    this.#timer ??= setTimeout(this.#tick, TICK_MS);
    const answered = (answer: unknown): void => {
      if (question.isOver) return late?.(answer as T);
      this.#misses = 0;
      this.#settle(question, answer);
    };
    client.send("EVALSHA", words).then(answered, (error: unknown) => {
      if (!reasonOf(error).startsWith("NOSCRIPT")) return this.#failed(question, reasonOf(error));
      words[0] = script.text;
      client.send("EVAL", words).then(answered, (again: unknown) => this.#failed(question, reasonOf(again)));
    });
    return promise;
  }

  publish(channel: string, text: string): void {
    const client = this.#client;
    if (client?.connected) client.publish(this.settings.prefix + channel, text).catch(() => undefined);
  }

  state(): ValkeyState {
    return { isUp: this.#isUp, reason: this.#reason, missed: this.#missed };
  }

  isUp(): boolean {
    return this.#isUp;
  }

  disbelieve(): void {
    this.#missed += 1;
  }

  upSinceMs(): number {
    return this.#upMs;
  }

  close(): void {
    this.#isClosed = true;
    this.#isUp = false;
    clearTimeout(this.#beat);
    this.#channels.close();
    this.#drop();
    this.#giveUp();
  }

  /** It is not asked from here on; told once, until it is back for good. */
  fell(reason: string): void {
    const { monotonicMs, logger, address } = this.settings;
    const nowMs = monotonicMs();
    const isRelapse = nowMs - this.#upMs < RELAPSE_MS;
    const wasUp = this.#isUp;
    this.#restMs = isRelapse ? REST_MS : 0;
    this.#isUp = false;
    this.#proofs = 0;
    this.#misses = 0;
    this.#fellMs = nowMs;
    this.#reason = reason;
    // One that is away already is told of no second time.
    if (wasUp && !isRelapse) this.#isTold = false;
    if (!this.#isTold && !this.#isClosed) {
      this.#isTold = true;
      this.#isBackTold = false;
      logger.warn("Valkey is away: each process limits by what it knows", {
        server: `${address.host}:${address.port}`,
        reason,
      });
    }
    this.#giveUp();
    this.#schedule();
  }

  #rose(): void {
    this.#isUp = true;
    this.#upMs = this.settings.monotonicMs();
    this.#misses = 0;
    if (this.#isTold && !this.#isBackTold) {
      this.#isBackTold = true;
      this.settings.logger.info("Valkey is back: limits are shared again");
    }
    this.#reason = "";
  }

  #settle(question: Question, answer: unknown): void {
    question.isOver = true;
    // Answers come in order: what is over stands in front.
    while (this.#questions[0]?.isOver) this.#questions.shift();
    question.resolve(answer);
  }

  #failed(question: Question, reason: string): void {
    if (question.isOver) return;
    this.#settle(question, undefined);
    this.#missed += 1;
    // All that wait at one moment miss the same answer.
    if (this.#missTick === this.#ticks) return;
    this.#missTick = this.#ticks;
    this.#misses += 1;
    if (this.#misses >= MOST_MISSES && this.#isUp) this.fell(reason);
  }

  readonly #tick = (): void => {
    this.#timer = undefined;
    this.#ticks += 1;
    for (let [first] = this.#questions; first && first.dueTick <= this.#ticks; [first] = this.#questions)
      this.#failed(first, "it did not answer in time");
    if (this.#questions.length > 0) this.#timer = setTimeout(this.#tick, TICK_MS);
  };

  /** Whoever waits decides alone. */
  #giveUp(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const waiting = this.#questions;
    this.#questions = [];
    for (const question of waiting) {
      if (question.isOver) continue;
      question.isOver = true;
      this.#missed += 1;
      question.resolve(undefined);
    }
  }

  #schedule(): void {
    clearTimeout(this.#beat);
    if (this.#isClosed) return;
    this.#beat = setTimeout(() => void this.#look(), this.#isUp ? BEAT_MS : BEAT_AWAY_MS);
    this.#beat.unref();
  }

  /** Between calls: a server that is away is found and lost without one of them waiting for it. */
  async #look(): Promise<void> {
    const nowMs = this.settings.monotonicMs();
    const isResting = !this.#isUp && nowMs - this.#fellMs < this.#restMs;
    if (this.#beatSentMs !== undefined) {
      if (nowMs - this.#beatSentMs > SILENT_MS) {
        this.#drop();
        // What it had proven is void: a new connection proves itself again.
        this.fell("it does not answer");
      }
    } else if (this.#client) this.#ping(this.#client);
    else if (!isResting) await this.#open();
    this.#channels.look();
    this.#schedule();
  }

  #ping(client: RedisClient): void {
    const sentMs = (this.#beatSentMs = this.settings.monotonicMs());
    let limit = setTimeout(() => {
      // A process that was busy reads first what has arrived meanwhile.
      limit = setTimeout(() => {
        if (this.#isUp && this.#client === client) this.fell("it does not answer");
      }, PING_GRACE_MS);
    }, PING_MS);
    const answered = (isAnswer: boolean): void => {
      clearTimeout(limit);
      if (this.#client !== client) return;
      this.#beatSentMs = undefined;
      // It may have closed before anybody listened for that.
      if (!isAnswer && !client.connected) return this.#lost(client);
      if (this.#isUp || !isAnswer) return;
      const nowMs = this.settings.monotonicMs();
      this.#proofs = nowMs - sentMs <= PROOF_MS ? this.#proofs + 1 : 0;
      if (this.#proofs >= MOST_PROOFS && nowMs - this.#fellMs >= this.#restMs) this.#rose();
    };
    client.publish(this.settings.prefix + this.#channels.beat, "").then(
      () => answered(true),
      () => answered(false),
    );
  }

  #open(): Promise<void> {
    return (this.#opening ??= openLoaded(this.settings.address)
      .then(
        (client) => {
          if (this.#isClosed) return client.close();
          this.#client = client;
          client.onclose = () => this.#lost(client);
          // The first one is as good as one that has proven itself; one that closed meanwhile says so to the first call.
          if (this.#proofs >= MOST_PROOFS) this.#rose();
        },
        (error: unknown) => {
          if (this.#isUp || this.#reason === "") this.fell(reasonOf(error));
        },
      )
      .finally(() => {
        this.#opening = undefined;
      }));
  }

  #lost(client: RedisClient): void {
    if (this.#client !== client) return;
    this.#drop();
    this.fell("the connection closed");
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#beatSentMs = undefined;
    client?.close();
  }
}

/** Connected and signed in; it never connects again by itself: what it had subscribed to would be gone without a word. */
async function openClient({ url }: ValkeyAddress): Promise<RedisClient> {
  const client = new RedisClient(url, {
    autoReconnect: false,
    enableOfflineQueue: false,
    connectionTimeout: CONNECT_MS,
  });
  await client.connect();
  return client;
}

/** The same, with all scripts in the server. */
async function openLoaded(address: ValkeyAddress): Promise<RedisClient> {
  const client = await openClient(address);
  try {
    await inTime(Promise.all(SCRIPTS.map(({ text }) => client.send("SCRIPT", ["LOAD", text]))), CONNECT_MS);
    return client;
  } catch (error) {
    client.close();
    throw error;
  }
}
