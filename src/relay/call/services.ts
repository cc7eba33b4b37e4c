// What relayed calls work with beside the product's services; one of each per process.
import type { Picker } from "../../core/channels/picker.ts";
import type { Deps } from "../../core/deps.ts";
import type { RateLimiter } from "../../core/kit/rate-limit.ts";
import type { Visitors } from "../../http/visitors.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import type { BodyBudget } from "../wire/body-budget.ts";
import type { ErrorRows } from "./error-rows.ts";
import type { UsualOutput } from "./usual-output.ts";
import type { InFlightCalls } from "./in-flight.ts";
import type { Lockstep } from "./lockstep.ts";
import type { PlanContext } from "./upstream-request.ts";
import type { ResponseAffinity } from "./response-affinity.ts";
import type { WordScreens } from "./word-screens.ts";

/** What realtime sessions and tasks share with the other calls. */
export interface RelayParts {
  picker: Picker;
  errorRows: ErrorRows;
  limiter: RateLimiter;
  counter: TokenCounter;
  /** How long the answers of each model are. */
  usual: UsualOutput;
  visitors: Visitors;
  bodies: BodyBudget;
}

/** What every stage of a call is given. */
export interface CallServices extends RelayParts {
  deps: Deps;
  lockstep: Lockstep;
  inFlight: InFlightCalls;
  affinity: ResponseAffinity;
  screens: WordScreens;
  plans: PlanContext;
  /** Ids of channels that were seen to stream without usage. */
  withoutUsage: Set<number>;
  /** How long a stream is read on for its usage that its client left in the middle. */
  countedReadOnMs: number;
}
