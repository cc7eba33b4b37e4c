// Moderations, and edits: the elder of chat completions, which no upstream serves any more and chat models do well.
// Refuses missing fields by name, as clients of these endpoints know it.
import { asList, asObject, asString } from "../../protocol/json.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { hasVerdicts } from "./answer-checks.ts";
import { checkCommon, checkNumbers, refused, visitInput } from "./endpoint.ts";
import type { Endpoint, Json, PromptVisitor } from "./endpoint.ts";
import { chat } from "./text.ts";
import type { RelayBody } from "../wire/read-body.ts";

const TEXT = { refusalCode: "invalid_text_request", dialect: "openai-chat" } as const;

/** Texts as they are or in parts; pictures are looked at by the upstream only. */
function visit(body: Json, visitor: PromptVisitor): void {
  visitInput(body["input"], visitor);
}

export const moderations: Endpoint = {
  ...TEXT,
  name: "moderations",
  defaultModel: "text-moderation-stable",
  canStream: false,
  isScreened: true,
  isConversation: false,
  holds: hasVerdicts,
  check(body) {
    const { input } = body;
    if (input === undefined || input === null || input === "" || (Array.isArray(input) && input.length === 0))
      throw refused(TEXT, "field_required", "input");
    if (typeof input !== "string" && !Array.isArray(input))
      throw refused(TEXT, "invalid_field", "input", "must be a text or a list");
  },
  visitPrompt: visit,
  outputLimit: () => 0,
  answersTokens: false,
  async ownUsage({ body, count }) {
    const texts: string[] = [];
    visit(body, { text: (text) => texts.push(text), tool: () => {}, media: () => {} });
    const usage = emptyUsage();
    usage.input.fresh = await count(texts);
    return usage;
  },
};

const NUMBERS = { n: { min: 1, max: 128, whole: true } };

/** The instruction speaks as the system, the text that is to be edited as the user. */
function asChat(body: RelayBody): RelayBody {
  const { json } = body;
  const { instruction, input, ...rest } = json;
  if (typeof instruction !== "string" || instruction === "")
    throw refused(TEXT, "field_required", "instruction");
  if (input !== undefined && input !== null && typeof input !== "string")
    throw refused(TEXT, "invalid_field", "input", "must be a text");
  checkNumbers(TEXT, json, NUMBERS);
  const system = `Edit the text of the next message. Answer with the edited text only. Instruction: ${instruction}`;
  const messages = [
    { role: "system", content: system },
    { role: "user", content: input ?? "" },
  ];
  const said: Record<string, unknown> = { ...rest, messages };
  delete said["stream"];
  const text = JSON.stringify(said);
  return { json: said, text, bytes: new TextEncoder().encode(text) };
}

/** The answer as the elder endpoint gave it. */
function asEdit(json: unknown): unknown {
  const wire = asObject(json) ?? {};
  return {
    object: "edit",
    created: wire["created"],
    choices: asList(wire["choices"]).map((value, index) => {
      const choice = asObject(value);
      return {
        text: asString(asObject(choice?.["message"])?.["content"]) ?? "",
        index: choice?.["index"] ?? index,
      };
    }),
    usage: wire["usage"],
  };
}

export const edits: Endpoint = {
  ...chat,
  canStream: false,
  translate: asChat,
  check: (body) => checkCommon(TEXT, body),
  answer: asEdit,
};
