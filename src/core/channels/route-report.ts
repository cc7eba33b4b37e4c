// What the routing simulator is asked, and what it tells; asked by administrators, answered by relay/call/simulate.ts.
import type { Failure } from "../../shared/failures.ts";
import type { UserAccount } from "../deps.ts";

export interface RouteQuestion {
  user: UserAccount;
  /** Id of one of the user's keys; 0: none, the playground. */
  tokenId: number;
  /** In the place of the user's or the key's; "": theirs. */
  group: string;
  model: string;
  /** Of the route, such as /v1/chat/completions. */
  path: string;
  /** Of the prompt. */
  tokens: number;
  /** The name that the client gives its session, or the fingerprint that log rows tell of it; "": of no session. */
  session: string;
}

/** Where the session that was asked about is bound, and whether its next call goes there. */
export interface RouteSession {
  /** "unbound": this node knows no such session. */
  state: "kept" | "left" | "unbound";
  /** 0: none. */
  channelId: number;
  /** Why it is left: as log rows say it. */
  reason: string;
}

/** Why a channel stands where it does; "turn": it would serve, and another one's turn it is. */
export type RouteVerdict =
  | "chosen"
  | "turn"
  | "priority"
  | "resting"
  | "keys_resting"
  | "keys_off"
  | "full"
  | "too_long"
  | "endpoint"
  | "group"
  | "off"
  | "auto_off";
export type KeyVerdict = "fit" | "resting" | "full" | "off" | "auto_off";

/** Times are Unix seconds; 0: none. */
export interface RouteCandidate {
  id: number;
  name: string;
  type: number;
  priority: number;
  weight: number;
  keyMode: string;
  /** Its place among those that would be asked, each after the one before has failed; 0: it would not be. */
  order: number;
  /** In which it would serve. */
  group: string;
  /** Which of its keys would be asked; -1: none. In the mode "random" any of those that are fit. */
  keyIndex: number;
  verdict: RouteVerdict;
  until: number;
  detail: string;
  keys: { index: number; label: string; verdict: KeyVerdict; until: number }[];
}

export interface RouteReport {
  /** Whose channels may serve, in their order. */
  groups: string[];
  /** What the call would be refused with. */
  refused: Failure | undefined;
  /** Undefined: nobody asked about one. */
  session: RouteSession | undefined;
  /** Every channel that lists the model: those that would be asked in their order, then the others. */
  candidates: RouteCandidate[];
}
