// Token counts for calls whose upstream reports none: a cheap estimate at once, the encoder's figure when it answers.
// Refuses to block: the encoder lives in a Worker that starts on first need and leaves when idle: it holds 80 MB.

export interface TokenRequest {
  id: number;
  encoding: "o200k" | "cl100k";
  texts: string[];
}

export interface TokenReply {
  id: number;
  /** -1 when counting failed. */
  tokens: number;
  error?: string;
}

/** The call waits this long for the encoder, then the estimate stands. */
const PATIENCE_MS = 2000;
/** A thread that has just started reads its tables first, which takes a busy machine a while. */
const START_PATIENCE_MS = 10_000;
const IDLE_MS = 15_000;

const CHARS_PER_TOKEN = 4;
/** Characters outside of Latin scripts are close to a token each. */
const TOKENS_PER_WIDE_CHAR = 0.9;

/** Estimate without any table: exact enough to hold an amount back, and quick on megabytes. */
export function estimateTokens(text: string): number {
  return estimateFromLengths(text.length, Buffer.byteLength(text));
}

/** From UTF-16 and UTF-8 length: the surplus of bytes tells how much of the text is not Latin. */
export function estimateFromLengths(chars: number, bytes: number): number {
  const wide = Math.min(chars, Math.max(0, bytes - chars) / 2);
  return Math.ceil((chars - wide) / CHARS_PER_TOKEN + wide * TOKENS_PER_WIDE_CHAR);
}

function encodingOf(model: string): TokenRequest["encoding"] {
  return /^(gpt-4o|chatgpt-4o|gpt-4\.1|gpt-5|o\d)/.test(model) ? "o200k" : "cl100k";
}

/** In the binary every module lies at its root, and workers below it where they lay below src. */
const COUNTER_URL = new URL(
  Bun.isStandaloneExecutable ? "./relay/token-worker.ts" : "./token-worker.ts",
  import.meta.url,
).href;

/** Bun's Worker can let the process end; the browser's type, which shadows it here, does not know that. */
interface CounterThread extends Worker {
  ref(): void;
  unref(): void;
}

export interface TokenCounter {
  /**
   * Undefined when the encoder failed or took too long, when too much waits for it already, and as soon as `signal`
   * fires: nobody waits any more.
   */
  count(texts: string[], model: string, signal?: AbortSignal): Promise<number | undefined>;
  /** Texts of this length would be counted if less waited; longer ones than can ever wait are estimated. */
  isFullFor(chars: number): boolean;
  close(): void;
}

/** What all that waits may hold together; a text above it is estimated at once. */
export const MAX_WAITING_CHARS = 16 * 1024 * 1024;
/** Handed to the thread at a time: what is cancelled costs at most this, and short texts never wait behind long ones. */
const TURN_CHARS = 64 * 1024;

interface Job {
  id: number;
  encoding: TokenRequest["encoding"];
  texts: string[];
  chars: number;
  /** What comes next: a text, and a place in it. */
  text: number;
  at: number;
  tokens: number;
  end: (tokens: number | undefined) => void;
}

/** The next pieces of a job, up to a turn; none when it is through. */
function nextPieces(job: Job): string[] {
  const pieces: string[] = [];
  let left = TURN_CHARS;
  while (left > 0 && job.text < job.texts.length) {
    const text = job.texts[job.text] ?? "";
    let to = Math.min(job.at + left, text.length);
    const last = text.charCodeAt(to - 1);
    // Never between the halves of one character.
    if (to < text.length && last >= 0xd800 && last <= 0xdbff) to += 1;
    pieces.push(job.at === 0 && to === text.length ? text : text.slice(job.at, to));
    left -= Math.max(1, to - job.at);
    job.at = to;
    if (to === text.length) {
      job.text += 1;
      job.at = 0;
    }
  }
  return pieces;
}

export function createTokenCounter(
  startThread = () => new Worker(COUNTER_URL) as CounterThread,
): TokenCounter {
  let worker: CounterThread | undefined;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let nextId = 1;
  /** The thread has answered once: its tables are there. */
  let isReady = false;
  /** In turns; the thread has the pieces of `current`. */
  const waiting = new Set<Job>();
  let current: Job | undefined;
  let waitingChars = 0;

  function stop(): void {
    clearTimeout(idle);
    worker?.terminate();
    worker = undefined;
    isReady = false;
    current = undefined;
    for (const job of waiting) job.end(undefined);
  }

  function start(): CounterThread {
    const started = startThread();
    started.onmessage = (event: MessageEvent<TokenReply>) => {
      const { id, tokens } = event.data;
      isReady = true;
      const job = current;
      current = undefined;
      // What was given up meanwhile has ended already.
      if (job?.id === id && waiting.has(job)) {
        waiting.delete(job);
        job.tokens += tokens;
        if (tokens < 0) job.end(undefined);
        else if (job.text >= job.texts.length) job.end(job.tokens);
        // Behind the others.
        else waiting.add(job);
      }
      turn();
    };
    started.onerror = () => stop();
    started.unref();
    return started;
  }

  function turn(): void {
    if (current || !worker) return;
    const [job] = waiting;
    if (!job) return;
    current = job;
    const { id, encoding } = job;
    worker.postMessage({ id, encoding, texts: nextPieces(job) } satisfies TokenRequest);
  }

  return {
    count(texts, model, signal) {
      let chars = 0;
      for (const text of texts) chars += text.length;
      if (chars === 0) return Promise.resolve(0);
      if (waitingChars + chars > MAX_WAITING_CHARS || signal?.aborted === true)
        return Promise.resolve(undefined);
      return new Promise((resolve) => {
        try {
          worker ??= start();
        } catch {
          resolve(undefined);
          return;
        }
        clearTimeout(idle);
        idle = setTimeout(stop, IDLE_MS);
        idle.unref();
        const giveUp = (): void => job.end(undefined);
        const patience = setTimeout(giveUp, isReady ? PATIENCE_MS : START_PATIENCE_MS);
        const job: Job = {
          id: nextId++,
          encoding: encodingOf(model),
          texts,
          chars,
          text: 0,
          at: 0,
          tokens: 0,
          end(tokens) {
            clearTimeout(patience);
            signal?.removeEventListener("abort", giveUp);
            waiting.delete(job);
            waitingChars -= chars;
            // Called once: nothing has a way to a job that is not waiting.
            job.end = () => undefined;
            resolve(tokens);
          },
        };
        signal?.addEventListener("abort", giveUp, { once: true });
        waiting.add(job);
        waitingChars += chars;
        turn();
      });
    },
    isFullFor: (chars) => chars <= MAX_WAITING_CHARS && waitingChars + chars > MAX_WAITING_CHARS,
    close: stop,
  };
}
