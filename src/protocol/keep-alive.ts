// How a silent stream is kept alive, in the form that each dialect's clients count as life.
// Nothing is ever sent to Google's: their parsers take comments and blank lines for broken JSON.
import type { DialectName } from "./canonical.ts";

export interface KeepAliveForm {
  /** Before the first frame of the answer; "" = never. */
  before: string;
  /** Between its frames. */
  between: string;
}

const COMMENT = ": PING\n\n";
const ANTHROPIC_PING = 'event: ping\ndata: {"type":"ping"}\n\n';
/**
 * As OpenAI's own API sends it while it thinks; without a number, because clients go on from the numbers of its events.
 * OpenAI's SDKs and the AI SDK throw on any event before response.created, and Codex' idle timer ignores comments.
 */
const RESPONSES_EVENT = 'event: keepalive\ndata: {"type":"keepalive"}\n\n';

export const KEEP_ALIVE: Readonly<Record<DialectName, KeepAliveForm>> = {
  "openai-chat": { before: COMMENT, between: COMMENT },
  "openai-responses": { before: COMMENT, between: RESPONSES_EVENT },
  anthropic: { before: ANTHROPIC_PING, between: ANTHROPIC_PING },
  gemini: { before: "", between: "" },
};
