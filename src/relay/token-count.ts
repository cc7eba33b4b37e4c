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
  /** Undefined when the encoder failed or took too long. */
  count(texts: string[], model: string): Promise<number | undefined>;
  close(): void;
}

export function createTokenCounter(): TokenCounter {
  let worker: CounterThread | undefined;
  let idle: ReturnType<typeof setTimeout> | undefined;
  let nextId = 1;
  /** The thread has answered once: its tables are there. */
  let isReady = false;
  const waiting = new Map<number, (tokens: number | undefined) => void>();

  function stop(): void {
    clearTimeout(idle);
    worker?.terminate();
    worker = undefined;
    isReady = false;
    for (const resolve of waiting.values()) resolve(undefined);
    waiting.clear();
  }

  function start(): CounterThread {
    const started = new Worker(COUNTER_URL) as CounterThread;
    started.onmessage = (event: MessageEvent<TokenReply>) => {
      const { id, tokens } = event.data;
      isReady = true;
      waiting.get(id)?.(tokens < 0 ? undefined : tokens);
      waiting.delete(id);
    };
    started.onerror = () => stop();
    started.unref();
    return started;
  }

  return {
    count(texts, model) {
      return new Promise((resolve) => {
        let thread: CounterThread;
        try {
          thread = worker ??= start();
        } catch {
          resolve(undefined);
          return;
        }
        clearTimeout(idle);
        idle = setTimeout(stop, IDLE_MS);
        idle.unref();
        const id = nextId++;
        const patience = setTimeout(
          () => {
            waiting.delete(id);
            resolve(undefined);
          },
          isReady ? PATIENCE_MS : START_PATIENCE_MS,
        );
        waiting.set(id, (tokens) => {
          clearTimeout(patience);
          resolve(tokens);
        });
        thread.postMessage({ id, encoding: encodingOf(model), texts } satisfies TokenRequest);
      });
    },
    close: stop,
  };
}
