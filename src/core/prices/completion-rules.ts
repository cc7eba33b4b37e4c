// Ratios that follow from a model's name: output over input, and audio over text, as an ordered table of rules.
// Refuses to overrule an operator: a listed ratio wins. Source: the billing reference, section 2.

interface CompletionRule {
  matches: (name: string) => boolean;
  ratio: number;
  /** Earlier versions ignored the operator's entry for such a name. */
  wasLocked: boolean;
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

const locked = (matches: CompletionRule["matches"], ratio: number): CompletionRule => ({
  matches,
  ratio,
  wasLocked: true,
});
const open = (matches: CompletionRule["matches"], ratio: number): CompletionRule => ({
  matches,
  ratio,
  wasLocked: false,
});

const COMPLETION_RULES: readonly CompletionRule[] = [
  locked((name) => name === "gpt-4o-2024-05-13", 3),
  locked((name) => isGpt4(name) && name.startsWith("gpt-4o"), 4),
  locked((name) => isGpt4(name) && name.startsWith("gpt-4.5-preview"), 2),
  locked(
    (name) => isGpt4(name) && (name.startsWith("gpt-4-turbo") || ends(name, "gpt-4-1106", "gpt-4-1105")),
    3,
  ),
  open(isGpt4, 2),
  locked((name) => name.startsWith("o1") || name.startsWith("o3"), 4),
  locked(is("chatgpt-4o-latest"), 3),
  locked((name) => has(name, "claude-3", "claude-sonnet-4", "claude-opus-4"), 5),
  locked((name) => has(name, "claude-instant-1", "claude-2"), 3),
  locked((name) => name === "gpt-3.5-turbo" || (name.startsWith("gpt-3.5") && name.endsWith("0125")), 3),
  locked((name) => name.startsWith("gpt-3.5") && name.endsWith("1106"), 2),
  locked(starts("gpt-3.5"), 4 / 3),
  locked(starts("mistral-"), 3),
  locked((name) => name.startsWith("gemini-1.5") || name.startsWith("gemini-2.0"), 4),
  locked(starts("gemini-2.5-pro-preview"), 8),
  open((name) => name.startsWith("gemini-2.5-flash-preview") && name.endsWith("-nothinking"), 4),
  open(starts("gemini-2.5-flash-preview"), 3.5 / 0.6),
  open(starts("gemini-"), 4),
  locked(is("command-r"), 3),
  locked(is("command-r-plus"), 5),
  locked(is("command-r-08-2024", "command-r-plus-08-2024"), 4),
  open(starts("command"), 4),
  locked((name) => is("deepseek-chat", "deepseek-reasoner")(name.toLowerCase()), 4),
  locked(
    (name) =>
      ["ERNIE-Speed-", "ERNIE-Lite-", "ERNIE-Character", "ERNIE-Functions"].some((each) =>
        name.startsWith(each),
      ),
    2,
  ),
  locked(is("llama2-70b-4096"), 0.8 / 0.64),
  locked(is("llama3-8b-8192"), 2),
  locked(is("llama3-70b-8192"), 0.79 / 0.59),
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

/** Whether an earlier version charged the family's ratio in spite of this entry. */
export function silencedByLock(name: string, entry: unknown): boolean {
  if (name.includes("/")) return false;
  const rule = ruleOf(name);
  return rule !== undefined && rule.wasLocked && rule.ratio !== entry;
}

/** Price of an audio token over a text input token. */
export function audioRatio(name: string): number {
  if (name.includes("-realtime")) {
    if (name.endsWith("gpt-4o-realtime-preview")) return 8;
    return name.includes("gpt-4o-mini-realtime-preview") ? 10 / 0.6 : 20;
  }
  if (name.includes("-audio")) {
    if (name.startsWith("gpt-4o-audio-preview")) return 16;
    return name.startsWith("gpt-4o-mini-audio-preview") ? 10 / 0.15 : 40;
  }
  return 20;
}

/** Price of an audio output token over an audio input token. */
export const AUDIO_COMPLETION_RATIO = 2;
