// What OpenAI's model names tell of reasoning: requests of other dialects ask for it as they know it. What models refuse
// stands in providers/model-rules.ts.
// Refuses to guess: a name it does not know takes everything, and a request of its own dialect is never changed by it.

export interface OpenaiTraits {
  /** Effort words the model takes, weakest first; empty = it does not reason; undefined = not known. */
  efforts: readonly string[] | undefined;
}

/** All words, weakest first. */
const WORDS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"] as const;
const UNKNOWN: OpenaiTraits = { efforts: undefined };

/** First match wins. */
const FAMILIES: readonly (readonly [RegExp, OpenaiTraits])[] = [
  [/^(?:gpt-3|gpt-4|chatgpt-|gpt-5(?:\.\d)?-chat)/, { efforts: [] }],
  [/^o1-(?:mini|preview)/, { efforts: [] }],
  [/^o\d/, { efforts: ["low", "medium", "high"] }],
  [/^gpt-5\.1-codex-max/, { efforts: ["low", "medium", "high", "xhigh"] }],
  [/^gpt-5(?:\.1)?-codex/, { efforts: ["low", "medium", "high"] }],
  [/^gpt-5\.1/, { efforts: ["none", "low", "medium", "high"] }],
  [/^gpt-5\.\d+-codex/, { efforts: ["low", "medium", "high", "xhigh"] }],
  [/^gpt-5\.\d/, { efforts: ["none", "low", "medium", "high", "xhigh"] }],
  [/^gpt-5/, { efforts: ["minimal", "low", "medium", "high"] }],
];

/** A vendor in front of the name (`openai/gpt-4o`) does not count. */
export function openaiTraits(model: string): OpenaiTraits {
  const name = model.slice(model.lastIndexOf("/") + 1);
  if (!/^(?:gpt-|chatgpt-|o\d)/.test(name)) return UNKNOWN;
  return FAMILIES.find(([pattern]) => pattern.test(name))?.[1] ?? UNKNOWN;
}

/** The word nearest to the wanted one that the model takes; undefined when it does not reason. */
export function nearestEffort(effort: string, { efforts }: OpenaiTraits): string | undefined {
  if (!efforts) return effort === "max" ? "xhigh" : effort;
  if (efforts.includes(effort)) return effort;
  const wanted = (WORDS as readonly string[]).indexOf(effort);
  // A word that nobody knows is the upstream's to judge.
  if (wanted === -1) return efforts.length > 0 ? effort : undefined;
  const weaker = efforts.filter((word) => (WORDS as readonly string[]).indexOf(word) < wanted);
  return weaker.at(-1) ?? efforts[0];
}
