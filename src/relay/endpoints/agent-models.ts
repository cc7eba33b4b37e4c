// The model list as two coding agents want it: Codex asks with its version and reads descriptions of models, Claude Code
// shows only names that begin with claude or anthropic. Sources: both programs, Codex 0.169 and Claude Code 2.1.
import type { Deps } from "../../core/deps.ts";

/** Models that no agent can talk with, by their names. */
const NO_CONVERSATION =
  /embed|rerank|moderation|tts|whisper|transcribe|speech|realtime|dall-e|image|imagen|midjourney|^mj_|suno|sora|veo-|video|kling|vidu/i;

function isConversation(name: string): boolean {
  return !NO_CONVERSATION.test(name);
}

/** Before the names of other makers' models in Claude Code's list. */
const ALIAS = "anthropic/";
const SHOWN = /^(?:claude|anthropic)/i;

/** Whether Claude Code asks for the list that its model menu is filled from. */
export function isClaudeCode({ headers }: Request): boolean {
  return headers.get("user-agent")?.startsWith("claude-code/") === true;
}

/** Names and labels for Claude Code's menu: models of other makers stand under an alias. */
export function claudeCodeNames(names: readonly string[]): { id: string; label: string }[] {
  const own = names.filter((name) => SHOWN.test(name)).map((name) => ({ id: name, label: name }));
  const others = names.filter((name) => !SHOWN.test(name) && isConversation(name));
  return [...own, ...others.map((name) => ({ id: ALIAS + name, label: name }))];
}

/** The model that a name stands for: an alias of Claude Code's list, unless a channel serves that very name. */
export function aliasedModel(
  routing: Pick<Deps["routing"], "tiers">,
  { group, auto }: { group: string; auto: readonly string[] | undefined },
  model: string,
): string {
  if (!model.startsWith(ALIAS)) return model;
  const isServed = (name: string) => (auto ?? [group]).some((each) => routing.tiers(each, name).length > 0);
  if (isServed(model)) return model;
  const name = model.slice(ALIAS.length);
  return isServed(name) ? name : model;
}

/**
 * Models that Codex brings its own description of, which is better than ours and would be replaced by it: it lists them
 * by itself (0.169).
 */
const KNOWN_TO_CODEX = /^(?:gpt-(?:5\.[5-9]|[6-9]|daybreak)|codex-auto)/;
/** Models that think as hard as they are told. */
const REASONING =
  /claude-(?:3-7|[a-z]+-[4-9]|[4-9])|gemini-(?:2\.5|[3-9])|gpt-(?:[5-9]|oss)|(?:^|\/)o\d|deepseek-(?:r|v3\.[1-9]|v[4-9])|thinking|reason|qwen3|glm-[4-9]|kimi-k|grok-[3-9]|codex/i;

const EFFORTS = [
  { effort: "low", description: "Thinks little" },
  { effort: "medium", description: "Thinks where it helps" },
  { effort: "high", description: "Thinks long" },
];

/** Tokens that a model reads, by its family; Codex makes a conversation short before it outgrows them. */
const WINDOWS: readonly (readonly [RegExp, number])[] = [
  [/claude/i, 200_000],
  [/gemini/i, 1_000_000],
  [/gpt-4\.1/, 1_000_000],
  [/gpt-[5-9]/, 272_000],
];
const USUAL_WINDOW = 128_000;

/** What a model is told that Codex has no words of its own for. */
const INSTRUCTIONS = `You are a coding agent that works in Codex, a program in the user's terminal. You and the user share one workspace.

- Work on the task until it is done: look at the code before you change it, make the change, and check it with the project's own tests or tools where there are any.
- Use the tools that you are given. Run commands to read files and to search (prefer rg); change files with apply_patch where you have it.
- Change what the task needs and nothing else. Keep the style of the code around. Never undo changes that are not yours, and never run commands that destroy work unless the user asks for it.
- Files named AGENTS.md hold rules for their directory and everything below: follow them.
- Before a longer step say in one sentence what you are about to do. If something fails, find out why before you try again.
- At the end say in a few sentences what was done, what was checked, and what is left. Name files by their paths.`;

/** A model as Codex's list describes it; every field that Codex cannot do without, and those that serve it. */
function codexModel(slug: string, priority: number): Record<string, unknown> {
  const thinks = REASONING.test(slug);
  return {
    slug,
    display_name: slug,
    description: null,
    ...(thinks ? { default_reasoning_level: "medium" } : {}),
    supported_reasoning_levels: thinks ? EFFORTS : [],
    shell_type: "shell_command",
    visibility: "list",
    supported_in_api: true,
    priority,
    availability_nux: null,
    upgrade: null,
    base_instructions: INSTRUCTIONS,
    supports_reasoning_summaries: thinks,
    support_verbosity: false,
    default_verbosity: null,
    apply_patch_tool_type: "freeform",
    truncation_policy: { mode: "tokens", limit: 10_000 },
    supports_parallel_tool_calls: true,
    context_window: WINDOWS.find(([family]) => family.test(slug))?.[1] ?? USUAL_WINDOW,
    experimental_supported_tools: [],
    input_modalities: ["text", "image"],
  };
}

/** The list that Codex asks for with `client_version`; undefined for everybody else. */
export function codexModels(names: readonly string[], request: Request): unknown[] | undefined {
  // Looked for in the text first: other clients pay nothing for it.
  if (!request.url.includes("client_version=")) return undefined;
  if (!new URL(request.url).searchParams.has("client_version")) return undefined;
  return names
    .filter((name) => isConversation(name) && !KNOWN_TO_CODEX.test(name))
    .map((name, index) => codexModel(name, 100 + index));
}
