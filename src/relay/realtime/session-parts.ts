// What a realtime session is given when it opens: its upstream, its first turn, and the ways to money and admission.
// Refuses to know of the handshake: a session may stay open for hours.
import type { Channel } from "../../core/channels/rows.ts";
import type { Deps } from "../../core/deps.ts";
import type { Language } from "../../shared/enums.ts";
import type { Failure } from "../../shared/failures.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Caller } from "../call/admission.ts";
import type { AttemptNote } from "../call/call.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import type { UpstreamSocket } from "./connect.ts";
import type { RealtimeSession } from "./session.ts";
import type { TurnHold } from "./turn-hold.ts";

export interface SessionParts {
  deps: Pick<Deps, "logger" | "costs" | "clock" | "observer" | "routing" | "prices" | "ledger">;
  counter: TokenCounter;
  requestId: string;
  language: Language;
  caller: Caller;
  channel: Channel;
  /** Of the channel's keys, from 0. */
  keyIndex: number;
  /** As requested: the name of the log. */
  model: string;
  upstreamModel: string;
  attempts: readonly AttemptNote[];
  isTranscription: boolean;
  /** Bytes of the largest frame that a client may send. */
  maxFrameBytes: number;
  upstream: UpstreamSocket;
  /** The first turn, held back before the upstream was called. */
  firstTurn: TurnHold;
  /** A turn was charged: answers of the model are that long, but for what was only heard. */
  charged: (usage: Usage, isHeard: boolean) => void;
  /** A transcription beside responses was charged by itself. */
  chargedHeard: (usage: Usage) => void;
  /** Holds back for the next turn, which reads what was charged last; throws failures of kinds quota and limit. */
  openTurn: (
    requestId: string,
    context: Usage | undefined,
    outputLimit: number | undefined,
  ) => Promise<TurnHold>;
  /** Why a turn cannot go on whose hold could not be lengthened. */
  refusal: (turn: TurnHold) => Failure;
  /** A quick look: false when something about the key changed that `readmit` has to judge. */
  isUnchanged: () => boolean;
  /** Throws when the key, its owner or the model are no longer admitted. */
  readmit: () => Promise<void>;
  /** The session is over and everything is recorded. */
  ended: (session: RealtimeSession) => void;
  /** The client sends faster than the upstream takes: look again soon with `relieve`. */
  congested: (session: RealtimeSession) => void;
}
