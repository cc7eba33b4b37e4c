// Token counts for calls whose upstream reports none: a cheap estimate at once, the encoder's figure when it answers.
// Never blocks: the encoder lives in a Worker that starts on first need and leaves when idle, because it holds 80 MB.

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
const TIMEOUT_MS = 2000;
/** A thread that has just started reads its tables first, which takes a busy machine a while. */
const START_TIMEOUT_MS = 10_000;
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

/** Whether the encoder is the model's own: others count alike, but not the same. */
export function hasOwnEncoder(model: string): boolean {
  return /^(?:gpt-|chatgpt-|o\d|text-embedding-|codex)/.test(model);
}

/** Shares by which a count may be off: by the model's own encoder, whose texts are cut into pieces, and by another one's. */
export const COUNT_ERRORS = { encoder: 0.02, similar_encoder: 0.25 } as const;

/** In the binary every module lies at its root, and workers below it where they lay below src. */
const COUNTER_URL = new URL(
  Bun.isStandaloneExecutable ? "./relay/meter/token-worker.ts" : "./token-worker.ts",
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

/** One counter: its thread, and what waits for it. */
interface CounterState {
  readonly startThread: () => CounterThread;
  worker: CounterThread | undefined;
  idle: ReturnType<typeof setTimeout> | undefined;
  nextId: number;
  /** The thread has answered once: its tables are there. */
  isReady: boolean;
  /** In turns; the thread has the pieces of `current`. */
  readonly waiting: Set<Job>;
  current: Job | undefined;
  waitingChars: number;
}

export function createTokenCounter(
  startThread = () => new Worker(COUNTER_URL) as CounterThread,
): TokenCounter {
  const state: CounterState = {
    startThread,
    worker: undefined,
    idle: undefined,
    nextId: 1,
    isReady: false,
    waiting: new Set(),
    current: undefined,
    waitingChars: 0,
  };
  return {
    count(texts, model, signal) {
      let chars = 0;
      for (const text of texts) chars += text.length;
      if (chars === 0) return Promise.resolve(0);
      if (state.waitingChars + chars > MAX_WAITING_CHARS || signal?.aborted === true)
        return Promise.resolve(undefined);
      return enqueue(state, { texts, chars, encoding: encodingOf(model), signal });
    },
    isFullFor: (chars) => chars <= MAX_WAITING_CHARS && state.waitingChars + chars > MAX_WAITING_CHARS,
    close: () => stopThread(state),
  };
}

interface NewJob extends Pick<Job, "texts" | "chars" | "encoding"> {
  signal: AbortSignal | undefined;
}

/** Undefined when the job is given up: too slow, too late, or without a thread. */
function enqueue(
  state: CounterState,
  { texts, chars, encoding, signal }: NewJob,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    try {
      state.worker ??= start(state);
    } catch {
      resolve(undefined);
      return;
    }
    clearTimeout(state.idle);
    state.idle = setTimeout(() => stopThread(state), IDLE_MS);
    state.idle.unref();
    const giveUp = (): void => job.end(undefined);
    const timeout = setTimeout(giveUp, state.isReady ? TIMEOUT_MS : START_TIMEOUT_MS);
    const job: Job = {
      id: state.nextId++,
      encoding,
      texts,
      chars,
      text: 0,
      at: 0,
      tokens: 0,
      end(tokens) {
        clearTimeout(timeout);
        signal?.removeEventListener("abort", giveUp);
        state.waiting.delete(job);
        state.waitingChars -= chars;
        // Called once: nothing has a way to a job that is not waiting.
        job.end = () => undefined;
        resolve(tokens);
      },
    };
    signal?.addEventListener("abort", giveUp, { once: true });
    state.waiting.add(job);
    state.waitingChars += chars;
    sendPieces(state);
  });
}

function start(state: CounterState): CounterThread {
  const thread = state.startThread();
  thread.onmessage = (event: MessageEvent<TokenReply>) => takeReply(state, event.data);
  thread.onerror = () => stopThread(state);
  thread.unref();
  return thread;
}

/** Hands the thread the next pieces of the job whose turn it is. */
function sendPieces(state: CounterState): void {
  if (state.current || !state.worker) return;
  const [job] = state.waiting;
  if (!job) return;
  state.current = job;
  const { id, encoding } = job;
  state.worker.postMessage({ id, encoding, texts: nextPieces(job) } satisfies TokenRequest);
}

function takeReply(state: CounterState, { id, tokens }: TokenReply): void {
  const { current: job, waiting } = state;
  state.isReady = true;
  state.current = undefined;
  // What was given up meanwhile has ended already.
  if (job?.id === id && waiting.has(job)) {
    waiting.delete(job);
    job.tokens += tokens;
    if (tokens < 0) job.end(undefined);
    else if (job.text >= job.texts.length) job.end(job.tokens);
    // Behind the others.
    else waiting.add(job);
  }
  sendPieces(state);
}

/** Ends the thread; what waits for it gets the estimate. */
function stopThread(state: CounterState): void {
  clearTimeout(state.idle);
  state.worker?.terminate();
  state.worker = undefined;
  state.isReady = false;
  state.current = undefined;
  for (const job of state.waiting) job.end(undefined);
}
