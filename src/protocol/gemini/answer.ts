// Whole generateContent answers, both ways.
// Refuses an answer that is an error object or a blocked prompt: decoding throws the upstream's failure.
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { choicesOf, collect, defined, signatureOf, textAnswer } from "../assemble.ts";
import type { Answer, AnswerBlock } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { citationFor } from "../citations.ts";
import { hasError } from "../classify.ts";
import type { AnswerContext } from "../dialect.ts";
import { asList, asObject, asString, parseJson } from "../json.ts";
import { packSignature } from "../signatures.ts";
import { decodeStream, errorStatus, promptRefusal } from "./decode-stream.ts";
import { decodeFailure } from "./failure.ts";
import { decodeUsage, encodeUsage } from "./usage.ts";
import { finishFromWire, finishToWire } from "./wire.ts";

/** Throws the upstream's failure for errors, blocked prompts and bodies that hold no candidate. */
export function decodeAnswer(body: unknown, context: Pick<AnswerContext, "newId">): Answer {
  const wire = asObject(body);
  if (wire && hasError(wire, "candidates")) throw decodeFailure(errorStatus(wire), body);
  const candidates = wire?.["candidates"];
  if (!wire || !Array.isArray(candidates) || candidates.length === 0) {
    const refused = wire ? promptRefusal(wire) : undefined;
    throw refused ?? new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  }
  const plain = candidates.length === 1 ? plainAnswer(wire, asObject(candidates[0])) : undefined;
  if (plain) return plain;
  const decoder = decodeStream(context);
  const events = decoder.read(wire);
  events.push(...decoder.end());
  return collect(events);
}

/** One candidate of plain text; undefined for everything else. */
function plainAnswer(wire: JsonObject, candidate: JsonObject | undefined): Answer | undefined {
  const raw = asString(candidate?.["finishReason"]);
  if (!candidate || !raw || candidate["groundingMetadata"] !== undefined) return undefined;
  if (candidate["index"] !== undefined && candidate["index"] !== 0) return undefined;
  let text = "";
  for (const value of asList(asObject(candidate["content"])?.["parts"])) {
    const part = asObject(value);
    if (!part || typeof part["text"] !== "string" || Object.keys(part).length > 1) return undefined;
    text += part["text"];
  }
  const head = { id: asString(wire["responseId"]), model: asString(wire["modelVersion"]) };
  return textAnswer(defined(head), text === "" ? [] : [text], {
    usage: decodeUsage(wire["usageMetadata"]) ?? emptyUsage(),
    reason: finishFromWire(raw, false),
    rawReason: raw,
  });
}

export function encodeAnswer(answer: Answer, context: AnswerContext): JsonObject {
  const numbers = choicesOf(answer);
  const candidates = numbers.map((index) => {
    const blocks =
      numbers.length === 1 ? answer.blocks : answer.blocks.filter((block) => (block.choice ?? 0) === index);
    const other = answer.others?.find((item) => item.choice === index);
    const parts = blocks.map(encodePart).filter((part) => part !== undefined);
    const metadata = grounding(blocks);
    return {
      content: { role: "model", parts },
      finishReason: finishToWire(index === 0 ? answer.reason : (other?.reason ?? "other")),
      index,
      ...(metadata ? { groundingMetadata: metadata } : {}),
    };
  });
  return {
    candidates,
    usageMetadata: encodeUsage(answer.usage),
    modelVersion: context.model ?? answer.model ?? "",
    responseId: answer.id ?? context.newId("resp_"),
  };
}

/** The part of a whole block; undefined for what this protocol does not know. */
export function encodePart(block: AnswerBlock): JsonObject | undefined {
  const plain = signatureOf(block);
  const signature = plain ?? signatureOf(block, "redacted");
  const signed = signature ? { thoughtSignature: packSignature(signature, "gemini", !plain) } : {};
  switch (block.kind) {
    case "text":
    case "refusal":
      return { text: block.text, ...signed };
    case "thinking":
      return { text: block.text, thought: true, ...signed };
    case "tool-call": {
      const args = block.text.trim() === "" ? {} : parseJson(block.text);
      const functionCall = {
        ...(block.callId === undefined ? {} : { id: block.callId }),
        name: block.name ?? "",
        args: asObject(args) ?? { input: block.text },
      };
      return { functionCall, ...signed };
    }
    case "image":
    case "audio": {
      if (block.data === undefined) return undefined;
      const mimeType = block.mime ?? (block.kind === "image" ? "image/png" : "audio/wav");
      return { inlineData: { mimeType, data: block.data }, ...signed };
    }
    case "hosted-tool": {
      const own = block.opaque.find((item) => item.dialect === "gemini");
      return asObject(own?.value);
    }
  }
}

/** The sources of an answer; undefined when it names none. */
export function grounding(blocks: readonly AnswerBlock[]): JsonObject | undefined {
  const groundingChunks = blocks
    .flatMap((block) => block.notes)
    .filter((note) => note.note === "citation")
    .map((note) => citationFor("gemini", note))
    .filter((value) => value !== undefined);
  return groundingChunks.length > 0 ? { groundingChunks } : undefined;
}
