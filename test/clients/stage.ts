// The built product on an empty data directory, set up over its API with a channel for each dialect's scripted upstream.
// Refuses the product's insides: it is a process, and everything here goes over the wire.
import { startOperator } from "../support/operator.ts";
import { startServerProcess } from "../support/server.ts";
import { UPSTREAMS } from "../support/dialect-upstream.ts";
import type { DialectName } from "../../src/protocol/canonical.ts";
import { openDoor } from "./door.ts";
import type { Door } from "./door.ts";
import { startScriptedUpstream, USAGE } from "./upstream.ts";
import type { ScriptedUpstream } from "./upstream.ts";

/** The models of each dialect's channel; the first is what cases use where a client has no wish of its own. */
export const MODELS: Readonly<Record<DialectName, readonly string[]>> = {
  "openai-chat": ["deepseek-chat", "deepseek-reasoner"],
  "openai-responses": ["gpt-5.5", "gpt-6.1-sol", "gpt-5-mini", "gpt-4o-mini"],
  anthropic: ["claude-sonnet-4-5", "claude-haiku-4-5"],
  gemini: ["gemini-2.5-flash", "gemini-2.5-pro", "gemini-2.5-flash-lite"],
};

/** Of a channel of Jina's, which is billed by tokens. */
export const RERANKER = "reranker";

/** Of a price of 1 in and twice that out. */
const COMPLETION_RATIO = 2;
/** Quota that one answer of the scripted upstream costs. */
const CHARGE = USAGE.input + COMPLETION_RATIO * USAGE.output;

export interface Stage {
  door: Door;
  upstream: ScriptedUpstream;
  /** Of the present case. */
  readonly key: string;
  /** Gives the next case a key of its own, so that no late charge of another is counted to it. */
  begin(): Promise<void>;
  /** What is charged beside what should be, to the present key: undefined when both agree. */
  wrongCharges(): Promise<string | undefined>;
  log(): string;
  close(): Promise<void>;
}

interface LogRow {
  quota: number;
}

/** Starts everything; a keep-alive each second, so that silence of a second and a half has one in it. */
export async function openStage(): Promise<Stage> {
  const upstream = await startScriptedUpstream();
  const server = await startServerProcess();
  const [first, ...others] = Object.entries(MODELS) as [DialectName, readonly string[]][];
  const channel = ([dialect, models]: [DialectName, readonly string[]]) => ({
    type: UPSTREAMS[dialect].type,
    name: dialect,
    key: "upstream",
    base_url: upstream.url,
    models: models.join(","),
  });
  if (!first) throw new Error("no dialects");
  const { send, key: firstKey } = await startOperator(server, channel(first));
  for (const other of others) await send("POST", "/api/channel/", channel(other));
  const reranker = { type: 38, name: "rerank", key: "upstream", base_url: upstream.url, models: RERANKER };
  await send("POST", "/api/channel/", reranker);
  const names = [...Object.values(MODELS).flat(), RERANKER];
  const ratios = (value: number) => JSON.stringify(Object.fromEntries(names.map((name) => [name, value])));
  for (const [name, value] of [
    ["ModelRatio", ratios(1)],
    ["CompletionRatio", ratios(COMPLETION_RATIO)],
    ["general_setting.ping_interval_enabled", "true"],
    ["general_setting.ping_interval_seconds", "1"],
    // A scripted refusal is what the client shall see, not what a channel is switched off for.
    ["AutomaticDisableChannelEnabled", "false"],
  ])
    await send("PUT", "/api/option/", { key: name, value });
  const door = await openDoor(server.url);
  let key = firstKey;
  let cases = 0;
  return {
    door,
    upstream,
    get key() {
      return key;
    },
    async begin() {
      const name = `case-${++cases}`;
      const made = (await send("POST", "/api/token/", { name, unlimited_quota: true })) as { key: string };
      key = `sk-${made.key}`;
    },
    async wrongCharges() {
      const query = `type=2&p=1&page_size=100&token_name=case-${cases}`;
      const { items: rows } = (await send("GET", `/api/log/?${query}`)) as { items: LogRow[] };
      const answered = upstream.asked.filter(({ isAnswered }) => isAnswered).length;
      const charged = rows.reduce((sum, { quota }) => sum + quota, 0);
      const told = `${answered} answers at ${CHARGE} = ${answered * CHARGE}, charged ${charged} in ${rows.length} rows`;
      return charged === answered * CHARGE && rows.length === answered ? undefined : told;
    },
    log: () => server.log(),
    async close() {
      door.stop();
      await server.remove();
      upstream.stop();
    },
  };
}
