// Headers by which some providers want to know a client's session, whatever the dialect.
// Sources: OpenRouter's documentation of sessions; OpenCode Zen, which asks for its own.
import type { UpstreamChannel } from "./define.ts";

const BY_HOST: readonly { host: RegExp; names: readonly string[] }[] = [
  { host: /^https?:\/\/(?:[\w-]+\.)*openrouter\.ai(?:[:/]|$)/i, names: ["x-session-id"] },
  {
    host: /^https?:\/\/(?:[\w-]+\.)*opencode\.ai(?:[:/]|$)/i,
    names: ["x-session-id", "x-opencode-session"],
  },
];
const OPENROUTER = 20;
const NONE: readonly string[] = [];

const known = new WeakMap<object, readonly string[]>();

/** Names of the client's headers that the channel's provider asks for. */
export function sessionHeaders(type: number, channel: Pick<UpstreamChannel, "baseUrl">): readonly string[] {
  let names = known.get(channel);
  if (!names) {
    const isOpenrouter = type === OPENROUTER && channel.baseUrl === "";
    const found = BY_HOST.find(({ host }) => host.test(channel.baseUrl));
    names = isOpenrouter ? ["x-session-id"] : (found?.names ?? NONE);
    known.set(channel, names);
  }
  return names;
}
