// Caps of channels and keys: calls at once, requests and tokens a minute; a place is leased for the whole attempt.
// Never exceeded on a node in any sixty seconds; several nodes have a share each (`shareOf`), which is a sum that is exact, or
// ask for each place where the site has a Valkey (shared-caps.ts): then all of a cap is open to each of them.
import { shareOf } from "../kit/node-share.ts";
import type { NodePlace } from "../kit/node-share.ts";
import type { Caps, Channel } from "./rows.ts";
import type { CapUse, SharedCaps } from "./shared-caps.ts";

const SLOT_MS = 1000;
/** A minute, and the slot that is not full yet. */
const SLOTS = 61;
/** Where only a call that ends makes room; what other nodes refused is asked for again after so long, too. */
const ASK_AGAIN_MS = 1000;

/** A sum over the last minute, in slots of a second. */
class MinuteSum {
  readonly #slots = new Float64Array(SLOTS);
  #at = 0;
  #sum = 0;

  of(nowMs: number): number {
    const at = Math.floor(nowMs / SLOT_MS);
    const past = Math.min(at - this.#at, SLOTS);
    for (let step = 1; step <= past; step++) {
      const slot = (this.#at + step) % SLOTS;
      this.#sum -= this.#slots[slot] ?? 0;
      this.#slots[slot] = 0;
    }
    if (past > 0) this.#at = at;
    return this.#sum;
  }

  add(amount: number, nowMs: number): void {
    this.of(nowMs);
    const slot = this.#at % SLOTS;
    this.#slots[slot] = (this.#slots[slot] ?? 0) + amount;
    this.#sum += amount;
  }

  /** What was added at that moment never was; nothing where its second has left the minute already. */
  takeBack(amount: number, addedMs: number): void {
    const at = Math.floor(addedMs / SLOT_MS);
    if (at <= this.#at - SLOTS || at > this.#at) return;
    const before = this.#slots[at % SLOTS] ?? 0;
    const after = Math.max(0, before - amount);
    this.#slots[at % SLOTS] = after;
    this.#sum += after - before;
  }

  /** Until the oldest that counts is over. */
  roomInMs(nowMs: number): number {
    this.of(nowMs);
    for (let step = 1; step <= SLOTS; step++) {
      const at = this.#at + step;
      if ((this.#slots[at % SLOTS] ?? 0) > 0) return at * SLOT_MS - nowMs;
    }
    return 0;
  }
}

/** What runs, and ran, with one key or over one channel. */
class Use implements CapUse {
  inFlight = 0;
  openTokens = 0;
  fullUntilMs = 0;
  /** When the window of all nodes opens, as they said last. */
  opensAtMs = 0;
  told = "";
  /** Since the start of this process. */
  requests = 0;
  limited = 0;
  minute: { requests: MinuteSum; tokens: MinuteSum } | undefined;

  constructor(readonly name: string) {}

  begin(caps: Caps, tokens: number, nowMs: number): void {
    this.inFlight++;
    this.openTokens += tokens;
    this.requests++;
    if (caps.rpmLimit === 0 && caps.tpmLimit === 0) return;
    this.minute ??= { requests: new MinuteSum(), tokens: new MinuteSum() };
    this.minute.requests.add(1, nowMs);
    this.minute.tokens.add(tokens, nowMs);
  }

  /** Nothing would be lost but how much it was asked since the start. */
  isIdle(nowMs: number): boolean {
    if (this.inFlight > 0 || this.fullUntilMs > nowMs) return false;
    return !this.minute || this.minute.requests.of(nowMs) + this.minute.tokens.of(nowMs) === 0;
  }

  end(tokens: number): void {
    this.inFlight--;
    this.openTokens -= tokens;
  }

  /** It never was; `atMs`: when it began. */
  undo(tokens: number, atMs: number): void {
    this.requests--;
    this.minute?.requests.takeBack(1, atMs);
    this.minute?.tokens.takeBack(tokens, atMs);
  }
}

const ALONE: NodePlace = { nodes: 1, rank: 0 };

/** A place under the caps of a channel and a key. */
export interface Lease {
  /**
   * Asks the other nodes, before anything is done with the place: false takes it back, another one may be free. Undefined:
   * nobody has to be asked.
   */
  confirm(): Promise<boolean> | undefined;
  /** The attempt is over; repeats do nothing. */
  release(): void;
  /** What it took in the end, in the place of what was expected of it. */
  spend(tokens: number): void;
  /** So many tokens more were taken by a part of it (a turn of a session) that is over; it goes on. */
  used(tokens: number): void;
}

/** What a key is doing, as this node knows it. */
interface KeyUse {
  requests: number;
  limited: number;
  inFlight: number;
}

export interface CapState {
  /** Whether key and channel bear one more call of so many tokens. */
  hasRoom(channel: Channel, keyIndex: number, tokens: number, nowMs: number): boolean;
  /** Call in the same turn as `hasRoom`: whoever takes a place has it until the release. */
  take(channel: Channel, keyIndex: number, tokens: number, nowMs: number): Lease;
  /** The provider asked this key for patience. */
  countLimited(keyId: number): void;
  useOf(keyId: number): KeyUse;
  /**
   * Milliseconds after which a channel that is full may have room again, as far as time alone makes it; `keyIndex`: with this key
   * of it.
   */
  roomInMs(channel: Channel, nowMs: number, keyIndex?: number): number;
  /** Resolves when one of the channels may have room, and after `waitMs` at the latest; who waits longest is first. */
  wait(wanted: Wanted, waitMs: number, signal: AbortSignal): Promise<void>;
}

/** Room that is waited for. */
interface Wanted {
  channelIds: readonly number[];
  /** Place of the only key that serves the call; undefined: any of the channel's does. */
  keyIndex?: number | undefined;
}

/** Room that there is again. */
interface Freed {
  channelId: number;
  keyIndex: number;
  /** The channel itself had a place taken: one more of any key's calls may go there. */
  isOfAnyKey: boolean;
}

interface Waiter {
  ids: ReadonlySet<number>;
  keyIndex: number | undefined;
  wake: () => void;
}

/** Calls that wait for room, the longest first. */
function createWaiters(): Pick<CapState, "wait"> & { wakeOne(freed: Freed): void } {
  const waiters = new Set<Waiter>();
  return {
    wakeOne({ channelId, keyIndex, isOfAnyKey }) {
      for (const waiter of waiters) {
        if (!waiter.ids.has(channelId)) continue;
        // Who is bound to another key finds no room there now, and would leave the next one asleep.
        const isServed = waiter.keyIndex === undefined || waiter.keyIndex === keyIndex;
        if (!isServed && !isOfAnyKey) continue;
        waiters.delete(waiter);
        waiter.wake();
        // It may still find its own key full, for which this one's place is free all the same.
        if (isServed) return;
      }
    },
    wait: ({ channelIds, keyIndex }, waitMs, signal) =>
      new Promise((resolve) => {
        const waiter: Waiter = { ids: new Set(channelIds), keyIndex, wake: done };
        const timer = setTimeout(done, waitMs);
        signal.addEventListener("abort", done, { once: true });
        waiters.add(waiter);
        function done(): void {
          clearTimeout(timer);
          signal.removeEventListener("abort", done);
          waiters.delete(waiter);
          resolve();
        }
      }),
  };
}

const NO_USE: KeyUse = { requests: 0, limited: 0, inFlight: 0 };

/** Keys that were deleted are among them; idle ones make room from here on. */
const MOST_USES = 50_000;
/** Looked at for one that is new. */
const LOOKS = 64;

function makeRoom(uses: Map<number, Use>, nowMs: number): void {
  let looks = LOOKS;
  for (const [id, use] of uses) {
    if (looks-- <= 0) return;
    uses.delete(id);
    if (!use.isIdle(nowMs)) uses.set(id, use);
  }
}

/** A key or channel in which a place was taken. */
interface Taken {
  use: Use;
  caps: Caps;
  id: number;
}

/** What a lease has of the state that it was taken of. */
interface LeaseDeps {
  shared: SharedCaps | undefined;
  monotonicMs: () => number;
  isOver: (taken: Taken, tokens: number, atMs: number) => boolean;
  /** Its place is free. */
  freed: () => void;
}

/** Of a place that was taken at `atMs` for so many tokens. */
function leaseOf(
  { taken, tokens, atMs }: { taken: readonly Taken[]; tokens: number; atMs: number },
  { shared, monotonicMs, isOver, freed }: LeaseDeps,
): Lease {
  let isOpen = true;
  /** That count in the end; what the release told of them. */
  let counted = tokens;
  /** From now on, or, fewer than none, where they were expected. */
  const count = (more: number): void => {
    const nowMs = monotonicMs();
    for (const { use } of taken)
      if (more > 0) use.minute?.tokens.add(more, nowMs);
      else use.minute?.tokens.takeBack(-more, atMs);
  };
  return {
    release() {
      if (!isOpen) return;
      isOpen = false;
      for (const { use } of taken) use.end(tokens);
      shared?.ended(taken, counted);
      freed();
    },
    confirm: () =>
      shared?.ask(taken, tokens, {
        refused(refuser, waitMs) {
          const nowMs = monotonicMs();
          refuser.fullUntilMs = nowMs + Math.min(ASK_AGAIN_MS, waitMs);
          refuser.opensAtMs = nowMs + waitMs;
          isOpen = false;
          for (const { use } of taken) {
            use.end(tokens);
            use.undo(tokens, atMs);
          }
        },
        overShare: () => taken.find((each) => isOver(each, tokens, atMs))?.use,
      }),
    spend(spent) {
      const more = spent - counted;
      if (more === 0) return;
      counted = spent;
      count(more);
      if (!isOpen) shared?.ended(taken, more);
    },
    used(some) {
      if (some <= 0) return;
      count(some);
      shared?.ended(taken, some);
    },
  };
}

const isLimited = ({ maxConcurrency, rpmLimit, tpmLimit }: Caps): boolean =>
  maxConcurrency > 0 || rpmLimit > 0 || tpmLimit > 0;

/** `place`: this node among those that live now; `shared`: where all of them ask. */
export function createCaps(
  { place }: { place: () => NodePlace },
  { monotonicMs }: { monotonicMs: () => number },
  shared?: SharedCaps,
): CapState {
  const byKey = new Map<number, Use>();
  const byChannel = new Map<number, Use>();
  const waiters = createWaiters();

  function isOpen(use: Use | undefined, caps: Caps, tokens: number, id: number, atMs: number): boolean {
    const { maxConcurrency, rpmLimit, tpmLimit } = caps;
    if (!isLimited(caps)) return true;
    if (use && use.fullUntilMs > atMs) return false;
    const here = shared?.isUp() === true ? ALONE : place();
    if (maxConcurrency > 0 && (use?.inFlight ?? 0) >= shareOf(maxConcurrency, here, id)) return false;
    const minute = use?.minute;
    if (rpmLimit > 0 && (minute?.requests.of(atMs) ?? 0) >= shareOf(rpmLimit, here, id)) return false;
    if (tpmLimit === 0) return true;
    const used = minute?.tokens.of(atMs) ?? 0;
    // A call that is larger than the whole cap goes alone: its upstream decides.
    return used + tokens <= shareOf(tpmLimit, here, id) || used === 0;
  }

  /** Who counts a call already has more than the node's share with it. */
  function isOver({ use, caps, id }: Taken, tokens: number, atMs: number): boolean {
    const { maxConcurrency, rpmLimit, tpmLimit } = caps;
    const here = place();
    if (maxConcurrency > 0 && use.inFlight > shareOf(maxConcurrency, here, id)) return true;
    if (rpmLimit > 0 && (use.minute?.requests.of(atMs) ?? 0) > shareOf(rpmLimit, here, id)) return true;
    const used = use.minute?.tokens.of(atMs) ?? 0;
    return tpmLimit > 0 && used > tokens && used > shareOf(tpmLimit, here, id);
  }

  function useIn(uses: Map<number, Use>, id: number): Use {
    let use = uses.get(id);
    if (!use) {
      if (uses.size >= MOST_USES) makeRoom(uses, monotonicMs());
      uses.set(id, (use = new Use(`lim:${uses === byKey ? "channel-key" : "channel"}:${id}`)));
    }
    return use;
  }

  return {
    hasRoom(channel, keyIndex, tokens, atMs) {
      const key = channel.keyRows[keyIndex];
      if (!key) return false;
      return (
        isOpen(byChannel.get(channel.id), channel.caps, tokens, channel.id, atMs) &&
        isOpen(byKey.get(key.id), key, tokens, key.id, atMs)
      );
    },
    take(channel, keyIndex, tokens, atMs) {
      const key = channel.keyRows[keyIndex];
      const ofKey = useIn(byKey, key?.id ?? 0);
      const ofChannel = channel.isCapped ? useIn(byChannel, channel.id) : undefined;
      ofKey.begin(key ?? channel.caps, tokens, atMs);
      ofChannel?.begin(channel.caps, tokens, atMs);
      const taken = [{ use: ofKey, caps: key ?? channel.caps, id: key?.id ?? 0 }];
      if (ofChannel) taken.push({ use: ofChannel, caps: channel.caps, id: channel.id });
      const isOfAnyKey = isLimited(channel.caps);
      const freed = (): void => waiters.wakeOne({ channelId: channel.id, keyIndex, isOfAnyKey });
      return leaseOf({ taken, tokens, atMs }, { shared, monotonicMs, isOver, freed });
    },
    countLimited(keyId) {
      useIn(byKey, keyId).limited++;
    },
    useOf: (keyId) => byKey.get(keyId) ?? NO_USE,
    roomInMs(channel, atMs, keyIndex) {
      const keys = channel.keyRows.filter((_, index) => keyIndex === undefined || index === keyIndex);
      const waits = [
        [byChannel.get(channel.id), channel.caps] as const,
        ...keys.map((key) => [byKey.get(key.id), key] as const),
      ].flatMap(([use, { rpmLimit, tpmLimit }]) => [
        (use?.opensAtMs ?? 0) - atMs,
        use?.minute && (rpmLimit > 0 || tpmLimit > 0) ? use.minute.requests.roomInMs(atMs) : 0,
        // Turns of a session have no request of their own.
        use?.minute && tpmLimit > 0 ? use.minute.tokens.roomInMs(atMs) : 0,
      ]);
      const timed = waits.filter((ms) => ms > 0);
      return timed.length === 0 ? ASK_AGAIN_MS : Math.max(1, Math.min(...timed));
    },
    wait: (wanted, waitMs, signal) => waiters.wait(wanted, waitMs, signal),
  };
}
