// Bedrock's names of Anthropic's models, and which of them are reached through a cross-region profile.
// Names that are not in the table are Bedrock ids, profile ids or ARNs already.

/** Names whose id does not follow from them; the others of Anthropic's dated names do. */
const MODEL_IDS: Readonly<Record<string, string>> = {
  "claude-instant-1.2": "anthropic.claude-instant-v1",
  "claude-2.0": "anthropic.claude-v2",
  "claude-2.1": "anthropic.claude-v2:1",
  "claude-3-5-sonnet-20241022": "anthropic.claude-3-5-sonnet-20241022-v2:0",
};
const DATED_NAME = /^claude-[\w.-]*-\d{8}$/;

/** Region families with a profile, by model id. */
const PROFILES: Readonly<Record<string, readonly string[]>> = {
  "anthropic.claude-3-sonnet-20240229-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-3-opus-20240229-v1:0": ["us"],
  "anthropic.claude-3-haiku-20240307-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-3-5-sonnet-20240620-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-3-5-sonnet-20241022-v2:0": ["ap", "us"],
  "anthropic.claude-3-5-haiku-20241022-v1:0": ["us"],
  "anthropic.claude-3-7-sonnet-20250219-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-sonnet-4-20250514-v1:0": ["ap", "eu", "us"],
  "anthropic.claude-opus-4-20250514-v1:0": ["us"],
  "anthropic.claude-opus-4-1-20250805-v1:0": ["us"],
  "anthropic.claude-sonnet-4-5-20250929-v1:0": ["eu", "us"],
  "anthropic.claude-haiku-4-5-20251001-v1:0": ["eu", "us"],
  "anthropic.claude-opus-4-5-20251101-v1:0": ["eu", "us"],
};

/** These have a worldwide profile, and are not offered without one. */
const WORLDWIDE = /-4-5-/;

const PREFIXES: Readonly<Record<string, string>> = { us: "us", eu: "eu", ap: "apac" };

/** The id to call in a region: mapped, and led through the region family's profile where the model has one. */
export function bedrockModelId(model: string, region: string): string {
  const own = Object.hasOwn(MODEL_IDS, model) ? MODEL_IDS[model] : undefined;
  const id = own ?? (DATED_NAME.test(model) ? `anthropic.${model}-v1:0` : model);
  const families = Object.hasOwn(PROFILES, id) ? PROFILES[id] : undefined;
  if (!families) return id;
  const family = region.split("-", 1)[0] ?? "";
  if (families.includes(family)) return `${PREFIXES[family] ?? family}.${id}`;
  return WORLDWIDE.test(id) ? `global.${id}` : id;
}
