// Caps of channels and their keys as all nodes keep them through the site's Valkey: a question for each place that is taken, a
// word that nobody waits for when it is given back. Refuses to decide without an answer: the node's share decides then.
import { lookEvery } from "../../db/look-around.ts";
import type { Clock } from "../deps.ts";
import type { ToldOwner } from "../kit/shared-scripts.ts";
import { NO_ASKED, NO_TOLD } from "../kit/shared-scripts.ts";
import type { SharedWire } from "../kit/shared-wire.ts";
import type { Caps } from "./rows.ts";

const MINUTE_MS = 60_000;
const BEAT_MS = 2000;
/** The server forgets what is open after an hour without a word. */
const AGAIN_MS = 20 * 60_000;
/** A place of another node may be given back at any time. */
const OPEN_MS = 100;

/** What one key or channel does on this node. */
export interface CapUse {
  /** Among all that processes share. */
  readonly name: string;
  inFlight: number;
  openTokens: number;
  /** On the steady clock: the other nodes have all of it so long. */
  fullUntilMs: number;
  /** On the steady clock: when there is room again, as far as the others know. */
  opensAtMs: number;
  /** What the others were told last; empty: tell it again. */
  told: string;
}

/** What a place is taken of. */
interface CapTaken {
  use: CapUse;
  caps: Caps;
}

interface CapVerdicts {
  /** Who has no room, and for how long. */
  refused(refuser: CapUse, waitMs: number): void;
  /** There was no answer: who has more than the node's share, if anybody. */
  overShare(): CapUse | undefined;
}

export interface SharedCaps {
  /** Answers are to be had, and count what all nodes have open: each may have all of a cap. */
  isUp(): boolean;
  /** Whether the place, which counts here already, may be had. */
  ask(taken: readonly CapTaken[], tokens: number, told: CapVerdicts): Promise<boolean> | undefined;
  /** So many tokens more (below 0: fewer) count in the minute; what is open stands in the uses. */
  ended(taken: readonly CapTaken[], tokens: number): void;
  close(): void;
}

const isCapped = ({ caps }: CapTaken): boolean =>
  caps.maxConcurrency > 0 || caps.rpmLimit > 0 || caps.tpmLimit > 0;
const figuresOf = ({ inFlight, openTokens }: CapUse): string => `${inFlight} ${openTokens}`;

function toldOf({ name, inFlight, openTokens }: CapUse, tokensUsed: number): ToldOwner {
  return { ...NO_TOLD, key: name, windowMs: MINUTE_MS, calls: inFlight, tokens: openTokens, tokensUsed };
}

export function createSharedCaps(wire: SharedWire, clock: Pick<Clock, "monotonicMs">): SharedCaps {
  /** With something open here, or told of last. */
  const uses = new Set<CapUse>();

  /** When all was told, whatever was known of it. */
  let againMs = clock.monotonicMs();

  function tell(told: readonly CapUse[], tokensOf: (use: CapUse) => number): void {
    for (const use of told) use.told = figuresOf(use);
    const words = told.map((use) => toldOf(use, tokensOf(use)));
    wire.tell(words, () => {
      for (const use of told) use.told = "";
    });
  }

  function beat(): void {
    if (!wire.isUp()) return;
    const isAgain = clock.monotonicMs() - againMs > AGAIN_MS;
    if (wire.wasForgotten() || isAgain) {
      againMs = clock.monotonicMs();
      for (const use of uses) use.told = "";
    }
    const late: CapUse[] = [];
    let isBusy = false;
    for (const use of uses) {
      if (use.inFlight > 0) isBusy = true;
      if (use.told !== figuresOf(use)) late.push(use);
      else if (use.inFlight === 0) uses.delete(use);
    }
    // Also a word of nobody says that this node lives.
    if (isBusy || late.length > 0) tell(late, () => 0);
  }

  wire.tellAgainBy(beat);
  const stop = lookEvery(BEAT_MS, beat);

  return {
    isUp: () => wire.isSettled(),
    ask(taken, tokens, told) {
      const capped = taken.filter(isCapped);
      if (capped.length === 0) return undefined;
      const asked = capped.map(({ use, caps }) => ({
        ...NO_ASKED,
        key: use.name,
        windowMs: MINUTE_MS,
        maxRequests: caps.rpmLimit,
        maxTokens: caps.tpmLimit,
        maxCalls: caps.maxConcurrency,
        calls: use.inFlight - 1,
        tokens: use.openTokens - tokens,
        // A call that is larger than the whole cap goes alone: its upstream decides.
        wantedTokens: Math.min(tokens, caps.tpmLimit),
      }));
      const found = wire.ask("begin", asked, { units: 0, least: 0, tokens });
      if (!found) return undefined;
      for (const { use } of capped) {
        uses.add(use);
        use.told = figuresOf(use);
      }
      // All of it was given in advance.
      if (!(found instanceof Promise)) return undefined;
      return found.then((answer) => {
        if (answer?.kind === "granted") return true;
        for (const { use } of capped) use.told = "";
        const refuser = answer ? capped[answer.place]?.use : told.overShare();
        if (!refuser) return true;
        told.refused(refuser, answer?.waitMs || OPEN_MS);
        return false;
      });
    },
    ended(taken, tokens) {
      // Also one that lies idle since its place was given back: what its call took is known only now.
      const capped = taken.filter((each) => isCapped(each) && (tokens !== 0 || uses.has(each.use)));
      if (capped.length === 0) return;
      for (const { use } of capped) uses.add(use);
      const limits = new Map(capped.map(({ use, caps }) => [use, caps.tpmLimit]));
      tell(
        capped.map(({ use }) => use),
        (use) => (limits.get(use) ? tokens : 0),
      );
    },
    close() {
      stop();
      wire.close();
    },
  };
}
