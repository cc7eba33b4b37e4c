// Ratios that follow from a model's name: output over input, and audio over text, as an ordered table of rules.
// Refuses to overrule an operator: a listed ratio wins. Source: the billing reference, section 2.

interface CompletionRule {
  matches: (name: string) => boolean;
  ratio: number;
  /** Elsewhere in the family this rule wins over what its operator listed. */
  isLocked: boolean;
}

const starts = (prefix: string) => (name: string) => name.startsWith(prefix);
const ends = (name: string, ...suffixes: string[]) => suffixes.some((suffix) => name.endsWith(suffix));
const has = (name: string, ...parts: string[]) => parts.some((part) => name.includes(part));
const is =
  (...names: string[]) =>
  (name: string) =>
    names.includes(name);

/** gpt-4 family without the aggregate names, which the option table prices. */
const isGpt4 = (name: string) =>
  name.startsWith("gpt-4") && !name.endsWith("-all") && !name.includes("gizmo");

const rule = (matches: CompletionRule["matches"], ratio: number): CompletionRule => ({
  matches,
  ratio,
  isLocked: true,
});
/** A rule that gave way to an operator's entry from the beginning. */
const loose = (matches: CompletionRule["matches"], ratio: number): CompletionRule => ({
  matches,
  ratio,
  isLocked: false,
});

const COMPLETION_RULES: readonly CompletionRule[] = [
  rule((name) => name === "gpt-4o-2024-05-13", 3),
  rule((name) => isGpt4(name) && name.startsWith("gpt-4o"), 4),
  rule((name) => isGpt4(name) && name.startsWith("gpt-4.5-preview"), 2),
  rule(
    (name) => isGpt4(name) && (name.startsWith("gpt-4-turbo") || ends(name, "gpt-4-1106", "gpt-4-1105")),
    3,
  ),
  loose(isGpt4, 2),
  rule((name) => name.startsWith("o1") || name.startsWith("o3"), 4),
  rule(is("chatgpt-4o-latest"), 3),
  rule((name) => has(name, "claude-3", "claude-sonnet-4", "claude-opus-4"), 5),
  rule((name) => has(name, "claude-instant-1", "claude-2"), 3),
  rule((name) => name === "gpt-3.5-turbo" || (name.startsWith("gpt-3.5") && name.endsWith("0125")), 3),
  rule((name) => name.startsWith("gpt-3.5") && name.endsWith("1106"), 2),
  rule(starts("gpt-3.5"), 4 / 3),
  rule(starts("mistral-"), 3),
  rule((name) => name.startsWith("gemini-1.5") || name.startsWith("gemini-2.0"), 4),
  rule(starts("gemini-2.5-pro-preview"), 8),
  loose((name) => name.startsWith("gemini-2.5-flash-preview") && name.endsWith("-nothinking"), 4),
  loose(starts("gemini-2.5-flash-preview"), 3.5 / 0.6),
  loose(starts("gemini-"), 4),
  rule(is("command-r"), 3),
  rule(is("command-r-plus"), 5),
  rule(is("command-r-08-2024", "command-r-plus-08-2024"), 4),
  loose(starts("command"), 4),
  rule((name) => is("deepseek-chat", "deepseek-reasoner")(name.toLowerCase()), 4),
  rule(
    (name) =>
      ["ERNIE-Speed-", "ERNIE-Lite-", "ERNIE-Character", "ERNIE-Functions"].some((each) =>
        name.startsWith(each),
      ),
    2,
  ),
  rule(is("llama2-70b-4096"), 0.8 / 0.64),
  rule(is("llama3-8b-8192"), 2),
  rule(is("llama3-70b-8192"), 0.79 / 0.59),
];

function ruleOf(name: string): CompletionRule | undefined {
  return COMPLETION_RULES.find((each) => each.matches(name));
}

/** What the operator listed; else the rule of the name's family; else output costs what input does. */
export function completionRatio(name: string, table: Readonly<Record<string, number>>): number {
  const entry = Object.hasOwn(table, name) ? table[name] : undefined;
  const listed = entry !== undefined && Number.isFinite(entry) && entry >= 0 ? entry : undefined;
  return listed ?? ruleOf(name)?.ratio ?? 1;
}

/**
 * A table of another instance without the entries that its built-in rules silenced there: here an entry wins, and would
 * move a price that nobody has changed. Names with a slash were never silenced.
 */
export function withoutSilenced(table: Readonly<Record<string, number>>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(table).filter(([name, ratio]) => {
      const found = name.includes("/") ? undefined : ruleOf(name);
      return found?.isLocked !== true || found.ratio === ratio;
    }),
  );
}

/** Of chats with sound. Others have "-audio" in their names, too: they read text aloud, or write down what is said. */
const isAudioChat = (name: string): boolean => has(name, "gpt-4o-audio", "gpt-4o-mini-audio", "gpt-audio");

/** Models whose sound has a price by its family (billing reference, section 7); that of others costs what their text does. */
const isSoundModel = (name: string): boolean => name.includes("-realtime") || isAudioChat(name);

/** Price of an audio token over a text input token, where nobody listed it. */
export function audioRatio(name: string): number {
  if (name.includes("-realtime")) {
    if (name.endsWith("gpt-4o-realtime-preview")) return 8;
    return name.includes("gpt-4o-mini-realtime-preview") ? 10 / 0.6 : 20;
  }
  if (isAudioChat(name)) {
    if (name.startsWith("gpt-4o-audio-preview")) return 16;
    return name.startsWith("gpt-4o-mini-audio-preview") ? 10 / 0.15 : 40;
  }
  return 1;
}

/** Price of an audio output token of a sound model over an audio input token. */
const AUDIO_COMPLETION_RATIO = 2;

/** What an audio output token costs where nobody listed it, by the prices of text output and of audio input. */
export function audioOutput(name: string, output: number, audioInput: number): number {
  return isSoundModel(name) ? audioInput * AUDIO_COMPLETION_RATIO : output;
}

/** The same as a ratio over an audio input token; undefined: no ratio over free audio input says it. */
export function audioCompletionRatio(name: string, completion: number, audio: number): number | undefined {
  if (isSoundModel(name)) return AUDIO_COMPLETION_RATIO;
  return audio > 0 ? completion / audio : undefined;
}
