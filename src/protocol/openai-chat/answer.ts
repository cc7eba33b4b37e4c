// Whole chat completion answers, both ways, by way of the stream halves: a message is one large delta.
// Refuses an answer that is an error object: decoding throws the upstream's failure.
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { citationFor } from "../citations.ts";
import { choicesOf, collect, defined, isBlank, signatureOf, textAnswer } from "../assemble.ts";
import type { Answer, AnswerBlock } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { hasError, readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext } from "../dialect.ts";
import { asList, asObject, dataUrl, rest } from "../json.ts";
import { sharedLogprobs } from "../logprobs.ts";
import { packSignature } from "../signatures.ts";
import { decodeStream } from "./decode-stream.ts";
import { decodeUsage, encodeUsage } from "./usage.ts";
import { ANSWER_FIELDS, finishFromWire, finishToWire } from "./wire.ts";
import type { WireChunk } from "./wire.ts";

/** Throws the upstream's failure for `{"error": …}` and for bodies that are no chat completion. */
export function decodeAnswer(body: unknown, context: Pick<AnswerContext, "newId">): Answer {
  const wire = asObject(body);
  if (!wire || (!Array.isArray(wire["choices"]) && !wire["error"])) {
    throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  }
  if (hasError(wire, "choices")) throw upstreamFailure({ status: 200, ...readErrorBody(body) });
  const decoder = decodeStream(context);
  const choices = asList(wire["choices"]);
  const plain = choices.length === 1 ? plainAnswer(wire, asObject(choices[0])) : undefined;
  if (plain) return plain;
  const events = decoder.read(choices.every(isPlaced) ? wire : answerAsChunk(wire));
  events.push(...decoder.push({ event: "", data: "[DONE]" }));
  return collect(events);
}

/** One choice of plain text; undefined for everything else. */
function plainAnswer(wire: JsonObject, choice: JsonObject | undefined): Answer | undefined {
  const message = asObject(choice?.["message"]);
  const raw = choice?.["finish_reason"];
  if (!choice || !message || choice["index"] !== 0 || typeof raw !== "string" || raw === "") return undefined;
  if (!isBlank(choice["logprobs"]) || choice["delta"] !== undefined) return undefined;
  const { content } = message;
  if (typeof content !== "string") return undefined;
  for (const key in message) {
    if (key !== "role" && key !== "content" && !isBlank(message[key])) return undefined;
  }
  const extra = rest(wire, ANSWER_FIELDS);
  const { id, model, created: createdAt } = wire as WireChunk;
  return textAnswer(defined({ id, model, createdAt, extra }), content === "" ? [] : [content], {
    usage: decodeUsage(wire["usage"]) ?? emptyUsage(),
    reason: finishFromWire(raw),
    rawReason: raw,
  });
}

/** Whether the decoder finds the places by itself: a choice that tells its number, and calls without numbers of their own. */
function isPlaced(value: unknown): boolean {
  const choice = asObject(value);
  if (typeof choice?.["index"] !== "number" || choice["delta"] !== undefined) return false;
  const calls = asObject(choice["message"])?.["tool_calls"];
  return asList(calls).every((call) => asObject(call)?.["index"] === undefined);
}

/** The same with numbers by place, which is what counts in a whole message. */
function answerAsChunk(wire: JsonObject): JsonObject {
  const choices = asList(wire["choices"]).map((value, index) => {
    const choice = asObject(value) ?? {};
    const message = asObject(choice["message"]) ?? {};
    const calls = message["tool_calls"];
    const delta = Array.isArray(calls)
      ? { ...message, tool_calls: calls.map((call, at) => ({ ...asObject(call), index: at })) }
      : message;
    return { index, ...choice, message: undefined, delta };
  });
  return { ...wire, choices };
}

export function encodeAnswer(answer: Answer, context: AnswerContext): JsonObject {
  const numbers = choicesOf(answer);
  const choices = numbers.map((index) => {
    const blocks =
      numbers.length === 1 ? answer.blocks : answer.blocks.filter((block) => (block.choice ?? 0) === index);
    const reason =
      index === 0
        ? answer.reason
        : (answer.others?.find((other) => other.choice === index)?.reason ?? "other");
    return {
      index,
      message: encodeMessage(blocks),
      logprobs: joinLogprobs(blocks),
      finish_reason: finishToWire(reason),
    };
  });
  return {
    id: answer.id ?? context.newId("chatcmpl-"),
    object: "chat.completion",
    created: answer.createdAt ?? context.nowSeconds,
    model: context.model ?? answer.model ?? "",
    choices,
    usage: encodeUsage(answer.usage),
    ...answer.extra,
  };
}

function encodeMessage(blocks: readonly AnswerBlock[]): JsonObject {
  const [first] = blocks;
  if (first && blocks.length === 1 && first.kind === "text" && first.notes.length === 0)
    return { role: "assistant", content: first.text, refusal: null };
  const textOf = (kind: AnswerBlock["kind"]): string | null => {
    const found = blocks.filter((block) => block.kind === kind);
    return found.length === 0 ? null : found.map((block) => block.text).join("");
  };
  const message: JsonObject = { role: "assistant", content: textOf("text"), refusal: textOf("refusal") };
  const thinking = textOf("thinking");
  if (thinking) message["reasoning_content"] = thinking;
  const details = blocks.flatMap(reasoningDetails);
  if (details.length > 0) message["reasoning_details"] = details;
  const calls = blocks.filter((block) => block.kind === "tool-call");
  if (calls.length > 0) message["tool_calls"] = calls.map(encodeCall);
  const annotations = blocks.flatMap((block) =>
    block.notes
      .filter((note) => note.note === "citation")
      .map((note) => citationFor("openai-chat", note))
      .filter((value) => value !== undefined),
  );
  if (annotations.length > 0) message["annotations"] = annotations;
  const audio = blocks.find((block) => block.kind === "audio");
  if (audio) {
    const transcript = audio.notes.filter((note) => note.note === "transcript").map((note) => note.value);
    message["audio"] = { id: audio.callId ?? "", data: audio.data ?? "", transcript: transcript.join("") };
  }
  const images = blocks.filter((block) => block.kind === "image" && block.data !== undefined);
  if (images.length > 0) {
    message["images"] = images.map((image) => ({
      type: "image_url",
      image_url: { url: dataUrl(image.mime ?? "image/png", image.data ?? "") },
    }));
  }
  return message;
}

/** Signed or encrypted thinking in the spelling that clients send back. */
function reasoningDetails(block: AnswerBlock): JsonObject[] {
  if (block.kind !== "thinking") return [];
  const redacted = signatureOf(block, "redacted");
  if (redacted) {
    return [{ type: "reasoning.encrypted", data: packSignature(redacted, "openai-chat"), index: 0 }];
  }
  const signed = signatureOf(block);
  if (!signed) return [];
  const signature = packSignature(signed, "openai-chat");
  return [{ type: "reasoning.text", text: block.text, signature, index: 0 }];
}

function encodeCall(block: AnswerBlock): JsonObject {
  const { callId: id, name } = block;
  const wire: JsonObject = block.custom
    ? { id, type: "custom", custom: { name, input: block.text } }
    : { id, type: "function", function: { name, arguments: block.text || "{}" } };
  const signed = signatureOf(block);
  if (signed) wire["extra_content"] = { google: { thought_signature: packSignature(signed, "openai-chat") } };
  return wire;
}

function joinLogprobs(blocks: readonly AnswerBlock[]): JsonObject | null {
  if (blocks.every((block) => block.notes.length === 0)) return null;
  const content: unknown[] = [];
  const refusal: unknown[] = [];
  let found = false;
  for (const note of blocks.flatMap((block) => block.notes)) {
    if (note.note !== "logprobs") continue;
    if (note.dialect === "openai-responses") content.push(...sharedLogprobs(note.value));
    else if (note.dialect === "openai-chat") {
      const value = asObject(note.value);
      content.push(...asList(value?.["content"]));
      refusal.push(...asList(value?.["refusal"]));
    } else continue;
    found = true;
  }
  if (!found) return null;
  return { content: content.length > 0 ? content : null, refusal: refusal.length > 0 ? refusal : null };
}
