// The table of dialects by name, for callers that find out at run time which two they stand between.
// Every dialect of the table has all halves.
import { anthropic } from "./anthropic/dialect.ts";
import type { DialectName } from "./canonical.ts";
import type { Dialect } from "./dialect.ts";
import { gemini } from "./gemini/dialect.ts";
import { openaiChat } from "./openai-chat/dialect.ts";
import { openaiResponses } from "./openai-responses/dialect.ts";

export const DIALECTS: Readonly<Record<DialectName, Required<Dialect>>> = {
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  anthropic,
  gemini,
};
