// How often a silent stream is kept alive, as the operator's options say.
// An interval of nothing means the default.
import type { Deps } from "../../core/deps.ts";

/** Interval of keep-alive comments in milliseconds; 0 = switched off. */
export function pingMs(options: Deps["options"]): number {
  if (!options.get("general_setting.ping_interval_enabled")) return 0;
  const seconds = options.get("general_setting.ping_interval_seconds");
  return (seconds > 0 ? seconds : 10) * 1000;
}
