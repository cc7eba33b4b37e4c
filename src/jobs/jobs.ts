// The table of what comes round by itself, and how often the operator wants it.
// Refuses logic of its own: each job is one call of a core function.
import type { ChannelWatch } from "../core/channel-watch.ts";
import type { Deps } from "../core/deps.ts";
import type { Job } from "./scheduler.ts";

const MINUTE = 60;

export function jobsOf(deps: Pick<Deps, "options">, watch: ChannelWatch): Job[] {
  const { options } = deps;
  return [
    {
      name: "channel-test",
      everySeconds: () => options.get("relay.channel_test_minutes") * MINUTE,
      run: async () => (await watch.testAll(false)).finished,
    },
    {
      name: "channel-balance",
      everySeconds: () => options.get("relay.channel_balance_minutes") * MINUTE,
      run: () => watch.updateBalances(),
    },
  ];
}
