// The body of a question to /pg/chat/completions, of settings and what was said.
// Refuses to send what nobody set: empty fields are the model's own affair.
import type { Message, Settings } from "./conversation.ts";

type ContentPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

export type Said = Pick<Message, "role" | "content" | "images">;

export interface ChatBody {
  model: string;
  messages: { role: string; content: string | ContentPart[] }[];
  stream: boolean;
  stream_options?: { include_usage: true };
  temperature: number;
  max_tokens?: number;
  group?: string;
  top_p?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  seed?: number;
  reasoning_effort?: string;
}

/** Fields that are sent only when something is typed in them. */
const NUMBERS = ["top_p", "frequency_penalty", "presence_penalty", "seed"] as const;

function further(settings: Settings): Partial<ChatBody> {
  const sent: Partial<ChatBody> = {};
  for (const name of NUMBERS) {
    const typed = settings[name].trim();
    if (typed !== "" && Number.isFinite(Number(typed))) sent[name] = Number(typed);
  }
  if (settings.reasoning_effort !== "") sent.reasoning_effort = settings.reasoning_effort;
  return sent;
}

/** A question with pictures has parts; one without stays plain text, which every upstream reads. */
function contentOf({ role, content, images }: Said): string | ContentPart[] {
  if (role !== "user" || images === undefined || images.length === 0) return content;
  return [
    ...(content.trim() === "" ? [] : [{ type: "text" as const, text: content }]),
    ...images.map((url) => ({ type: "image_url" as const, image_url: { url } })),
  ];
}

/** The system prompt is left out when empty, max_tokens when 0: both mean "the model's own". */
export function bodyOf(settings: Settings, context: readonly Said[]): ChatBody {
  const { model, group, system, temperature, max_tokens: maxTokens, isStream } = settings;
  return {
    model,
    ...(group === "" ? {} : { group }),
    messages: [
      ...(system.trim() === "" ? [] : [{ role: "system", content: system }]),
      ...context.map((said) => ({ role: said.role, content: contentOf(said) })),
    ],
    stream: isStream,
    ...(isStream ? { stream_options: { include_usage: true } as const } : {}),
    temperature,
    ...(maxTokens > 0 ? { max_tokens: maxTokens } : {}),
    ...further(settings),
  };
}
