// What all relayed calls share beside the product's services; one of each per process.
import type { Picker } from "../../core/channels/picker.ts";
import type { RateLimiter } from "../../core/kit/rate-limit.ts";
import type { Visitors } from "../../http/visitors.ts";
import type { TokenCounter } from "../meter/token-count.ts";
import type { BodyBudget } from "../wire/body-budget.ts";
import type { ErrorRows } from "./error-rows.ts";
import type { UsualOutput } from "./hold.ts";

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
