// How a silent stream is kept alive: as often as the operator's options say, in the form of the client's dialect.
// An interval of nothing means the default.
import type { DialectName } from "../../protocol/canonical.ts";
import { KEEP_ALIVE } from "../../protocol/keep-alive.ts";
import type { Deps } from "../../core/deps.ts";

/** A keep-alive as bytes; undefined where the dialect bears none. */
export interface Ping {
  before: Uint8Array | undefined;
  between: Uint8Array | undefined;
}

const DEFAULT_SECONDS = 15;
const encoder = new TextEncoder();

const bytesOf = (text: string): Uint8Array | undefined => (text === "" ? undefined : encoder.encode(text));
const rowOf = (dialect: DialectName): Ping => ({
  before: bytesOf(KEEP_ALIVE[dialect].before),
  between: bytesOf(KEEP_ALIVE[dialect].between),
});

export const PINGS: Readonly<Record<DialectName, Ping>> = {
  "openai-chat": rowOf("openai-chat"),
  "openai-responses": rowOf("openai-responses"),
  anthropic: rowOf("anthropic"),
  gemini: rowOf("gemini"),
};

/** Milliseconds of silence towards a client of this dialect after which a ping is due; 0 = never. */
export function pingMs(options: Deps["options"], dialect: DialectName): number {
  if (!PINGS[dialect].between || !options.get("general_setting.ping_interval_enabled")) return 0;
  const seconds = options.get("general_setting.ping_interval_seconds");
  return (seconds > 0 ? seconds : DEFAULT_SECONDS) * 1000;
}
