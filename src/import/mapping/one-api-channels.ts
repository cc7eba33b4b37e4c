// The channel numbers of one-api, which are not those of the later products, and what its `config` column holds.
// Refuses to guess: a number that means nothing here comes switched off.
import { channelAddress } from "../../shared/channel-address.ts";
import type { SourceRow } from "../source.ts";
import { objectOf, textOf } from "../values.ts";

interface Meaning {
  type: number;
  /** Where the number stood for an address. */
  baseUrl?: string;
  /** What one-api put behind the address itself has no version in it. */
  isBare?: boolean;
}

/** An upstream of OpenAI's shape, whose address the number alone said. */
const at = (baseUrl: string, isBare = false): Meaning => ({ type: 1, baseUrl, isBare });

/** Names as one-api's list of 2025-02 has them. */
const MEANINGS: Readonly<Record<number, Meaning>> = {
  2: at("https://oa.api2d.net"),
  4: at("https://api.closeai-proxy.xyz"),
  5: at("https://api.openai-sb.com"),
  26: at("https://api.baichuan-ai.com"),
  27: { type: 35 },
  28: { type: 42 },
  29: at("https://api.groq.com/openai"),
  30: { type: 4 },
  32: at("https://api.stepfun.com"),
  34: { type: 49 },
  35: { type: 34 },
  36: { type: 43 },
  37: { type: 39 },
  39: at("https://api.together.xyz"),
  40: { type: 45 },
  41: at("https://api.novita.ai/v3/openai"),
  42: { type: 41 },
  44: { type: 40 },
  45: { type: 48 },
  47: { type: 46 },
  48: at("https://spark-api-open.xf-yun.com"),
  49: at("https://dashscope.aliyuncs.com/compatible-mode"),
  50: at("", true),
  51: at("https://generativelanguage.googleapis.com/v1beta/openai", true),
};

const KEPT: ReadonlySet<number> = new Set([
  1,
  3,
  ...Array.from({ length: 20 }, (_, index) => index + 6),
  31,
  33,
]);

export interface OneApiChannel {
  /** Undefined: it has no meaning here. */
  type: number | undefined;
  baseUrl: string;
  key: string;
  other: string;
}

/** Key and place of AWS, Vertex and others, which stand in a column of their own since 2024. */
function fromConfig(row: SourceRow, type: number): { key: string; other: string } {
  const config = objectOf(row, "config");
  const text = (name: string): string => (typeof config[name] === "string" ? config[name].trim() : "");
  let key = textOf(row, "key");
  let other = textOf(row, "other");
  if (text("ak") !== "" && text("sk") !== "") key = [text("ak"), text("sk"), text("region")].join("|");
  if (text("vertex_ai_adc") !== "") {
    key = text("vertex_ai_adc");
    other = text("region") || other;
  }
  if (other === "")
    other = ["user_id", "api_version", "library_id", "plugin"].map(text).find((each) => each !== "") ?? "";
  return { key, other: type === 41 && other === "" ? text("region") : other };
}

export function oneApiChannel(row: SourceRow, number: number): OneApiChannel {
  const meaning = MEANINGS[number];
  const type = KEPT.has(number) ? number : meaning?.type;
  const written = channelAddress(type ?? number, textOf(row, "base_url"));
  const address = written === "" ? (meaning?.baseUrl ?? "") : written;
  // It wrote no /v1 behind such an address; ours does.
  const baseUrl = meaning?.isBare === true ? address.replace(/\/v1$/, "") : address;
  return { type, baseUrl, ...fromConfig(row, type ?? number) };
}
