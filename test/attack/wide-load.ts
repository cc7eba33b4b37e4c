// The load of the wide test, as operations.md section 8 has it: calls, streams, clients that leave, upstreams that fail,
// console reads and exports, some fifty a second, at both nodes, whatever becomes of them. Everything is remembered.
// The rate is what the machine bears: others want it too, and a node that drowns in calls proves nothing.
// Refuses to judge, and to call again: what a caller saw is what counts.
import type { CallPlan } from "../support/mock-upstream.ts";
import { startSlowness } from "../support/stretch.ts";
import { callPlan, MODELS } from "./site.ts";
import type { CallOptions, Outcome } from "./site.ts";

/** Longer than anybody may be kept waiting: a hold, each longer one and what is given back wait ten seconds at most. */
const PATIENCE_MS = 40_000;
const PER_SECOND = 50;
/** Where work takes more than so many times longer than alone, the load is as many times thinner, down to a tenth. */
const FULL_RATE_SLOWNESS = 3;
const LEAST_RATE = 0.1;
const RATE_LOOK_MS = 2000;
const MOST_OPEN = 220;
const MOST_WORDS = 40;
/** An export asks for so much of the log's end. */
const EXPORT_SECONDS = 30;

/** Streams that take so long, beside the load. */
const LASTING_SECONDS = { long: 3, endless: 12 } as const;
const LASTING_PACE_MS = 250;

type LastingKind = keyof typeof LASTING_SECONDS;
type CallKind =
  "json" | "stream" | "left" | "failing" | "heavy" | "probe" | "console" | "export" | LastingKind;

/** What a call's own upstream takes, at most, in milliseconds. */
export const ownMs = (kind: CallKind): number =>
  kind === "long" || kind === "endless" ? LASTING_SECONDS[kind] * 1000 : 1000;

/** Shares of a hundred. */
const MIX: readonly (readonly [CallKind, number])[] = [
  ["json", 60],
  ["stream", 25],
  ["left", 5],
  ["failing", 5],
  ["console", 4],
  ["export", 1],
];

export interface LoadKey {
  tokenId: number;
  /** With its `sk-`. */
  text: string;
  isPoor: boolean;
}

export interface Call {
  id: string;
  kind: CallKind;
  /** 0 or 1. */
  node: number;
  /** Undefined for the console. */
  key: LoadKey | undefined;
  outcome: Outcome;
  beganMs: number;
  /** Infinity while it runs. */
  endedMs: number;
}

export interface LoadSite {
  urls: readonly string[];
  keys: readonly LoadKey[];
  /** Headers of root's session, which both nodes know. */
  rootHeaders: Readonly<Record<string, string>>;
  random: () => number;
}

export interface Load {
  /** In the order in which they began. */
  calls: Call[];
  start(): void;
  /** Begins nothing more; resolves when everything that had begun has ended. */
  pause(): Promise<void>;
  /** One call at a node, by a rich key where none is named, beside the load. */
  probe(node: number, key?: LoadKey): Promise<Call>;
  /** Streams at a node, by rich keys: `long` ones are over within a drain of the wide site, `endless` ones are not. */
  lasting(kind: LastingKind, node: number, count: number): Promise<Call[]>;
  /** Calls at a node whose rows in the journal are long, all at once. */
  heavy(node: number, count: number): Promise<Call[]>;
}

/** Asked in one dialect of a model of another, which knows none of these: they are dropped, and named in the row. */
const MANY_FIELDS = {
  ...Object.fromEntries(Array.from({ length: 45 }, (_, index) => [`unknown_${"x".repeat(240)}_${index}`, 1])),
  model: MODELS.anthropic,
};

const CONSOLE_PATHS = [
  "/api/log/?p=1&page_size=20",
  "/api/user/?p=1",
  "/api/status",
  "/api/log/stat",
  "/pricing",
];

function kindOf(chance: number): CallKind {
  let left = chance * 100;
  for (const [kind, share] of MIX) if ((left -= share) < 0) return kind;
  return "json";
}

export function createLoad({ urls, keys, rootHeaders, random }: LoadSite): Load {
  const calls: Call[] = [];
  const open = new Set<Promise<void>>();
  const rich = keys.filter(({ isPoor }) => !isPoor);
  const poor = keys.filter(({ isPoor }) => isPoor);
  const whole = (limit: number) => Math.floor(random() * limit);
  const pick = <T>(list: readonly T[]): T => list[whole(list.length)] as T;
  let timer: ReturnType<typeof setInterval> | undefined;
  /** Of the full load. */
  let rate = 1;
  /** A thin load leaves connections silent until a node closes them, now and then in the moment in which they are used again. */
  const wantsOwn = (): boolean => rate < 1 || random() < 0.5;

  function record(kind: CallKind, node: number, key: LoadKey | undefined): Call {
    const outcome: Outcome = { status: 0, requestId: "", words: 0, text: "", isWhole: false, isBroken: true };
    const began = { beganMs: performance.now(), endedMs: Number.POSITIVE_INFINITY };
    const call: Call = { id: `wide-${calls.length}`, kind, node, key, outcome, ...began };
    calls.push(call);
    return call;
  }

  async function infer(call: Call, key: LoadKey): Promise<void> {
    const { kind, id } = call;
    const words = 1 + whole(MOST_WORDS);
    const plan: CallPlan = { id, isNamed: true, words, input: 3 + whole(8), firstMs: whole(60) };
    const isAlone = kind === "probe" || wantsOwn();
    // A limit is what clients of small balances send.
    const fields = kind === "heavy" ? MANY_FIELDS : key.isPoor ? { max_tokens: words } : {};
    const options: CallOptions = { isAlone, leaveAfterMs: PATIENCE_MS, fields };
    if (kind === "stream" || (kind === "left" && random() < 0.5))
      Object.assign(options, { stream: true, dialect: pick(["openai-chat", "anthropic"]) });
    if (options.stream) Object.assign(plan, { per: 4, paceMs: 20 + whole(60) });
    if (kind === "long" || kind === "endless") {
      Object.assign(options, { stream: true, dialect: pick(["openai-chat", "anthropic"]) });
      const lastingWords = (LASTING_SECONDS[kind] * 1000) / LASTING_PACE_MS;
      Object.assign(plan, { words: lastingWords, per: 1, paceMs: LASTING_PACE_MS, firstMs: 0 });
    }
    if (kind === "left") Object.assign(options, { leaveAfterMs: 20 + whole(200) });
    // On a model of its own: its channel may rest.
    if (kind === "failing") {
      plan.status = pick([429, 500]);
      options.dialect = "gemini";
    }
    call.outcome = await callPlan(urls[call.node] ?? "", key.text, plan, options);
  }

  async function look(call: Call, path: string): Promise<void> {
    const { outcome } = call;
    try {
      const answer = await fetch(`${urls[call.node]}${path}`, {
        headers: rootHeaders,
        signal: AbortSignal.timeout(PATIENCE_MS),
        keepalive: !wantsOwn(),
      });
      outcome.status = answer.status;
      outcome.text = (await answer.text()).slice(0, 300);
      Object.assign(outcome, { isWhole: true, isBroken: false });
    } catch (error) {
      outcome.failure = String(error);
    }
  }

  function begin(kind: CallKind, node: number, key: LoadKey | undefined): Promise<Call> {
    const call = record(kind, node, key);
    const since = Math.floor(Date.now() / 1000) - EXPORT_SECONDS;
    const path = kind === "export" ? `/api/log/export?type=2&start_timestamp=${since}` : pick(CONSOLE_PATHS);
    const work = (key ? infer(call, key) : look(call, path)).finally(() => {
      call.endedMs = performance.now();
      open.delete(work);
    });
    open.add(work);
    return work.then(() => call);
  }

  function beginOne(): void {
    if (open.size >= MOST_OPEN) return;
    const kind = kindOf(random());
    const isCall = kind !== "console" && kind !== "export";
    // Every fifth call comes from somebody who has hardly anything left.
    const key = random() < 0.2 && kind !== "failing" ? pick(poor) : pick(rich);
    void begin(kind, whole(urls.length), isCall ? key : undefined);
  }

  return {
    calls,
    start() {
      let dueMs = performance.now();
      rate = 1;
      let slowness = startSlowness();
      let lookMs = dueMs + RATE_LOOK_MS;
      timer ??= setInterval(() => {
        const nowMs = performance.now();
        // After a pause of this process what was missed is not made up for.
        dueMs = Math.max(dueMs, nowMs - 200);
        if (nowMs >= lookMs) {
          rate = Math.min(1, Math.max(LEAST_RATE, FULL_RATE_SLOWNESS / slowness()));
          slowness = startSlowness();
          lookMs = nowMs + RATE_LOOK_MS;
        }
        for (; dueMs <= nowMs; dueMs += 1000 / (PER_SECOND * rate)) beginOne();
      }, 10);
    },
    async pause() {
      clearInterval(timer);
      timer = undefined;
      while (open.size > 0) await Promise.all(open);
    },
    probe: (node, key = pick(rich)) => begin("probe", node, key),
    lasting: (kind, node, count) =>
      Promise.all(Array.from({ length: count }, () => begin(kind, node, pick(rich)))),
    heavy: (node, count) =>
      Promise.all(Array.from({ length: count }, () => begin("heavy", node, pick(rich)))),
  };
}
