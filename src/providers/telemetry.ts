// What OpenTelemetry's conventions for generative AI call the providers (`gen_ai.provider.name`, 2026): their word where they have
// one, else the owner's name of the row.
import { listProviders } from "./catalog.ts";

const CONVENTIONAL: Readonly<Record<number, string>> = {
  1: "openai",
  3: "azure.ai.openai",
  14: "anthropic",
  24: "gcp.gemini",
  25: "moonshot_ai",
  27: "perplexity",
  33: "aws.bedrock",
  34: "cohere",
  41: "gcp.vertex_ai",
  42: "mistral_ai",
  43: "deepseek",
  48: "x_ai",
};

const BY_TYPE = new Map(
  listProviders().map(({ id, owner }) => [id, CONVENTIONAL[id] ?? owner.replaceAll(" ", "_")]),
);

export function providerName(channelType: number): string {
  return BY_TYPE.get(channelType) ?? "_other";
}
