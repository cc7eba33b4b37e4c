// Whole Messages answers, both ways.
// Refuses an answer that is an error object: decoding throws the upstream's failure.
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { collect, defined, isBlank, signatureOf, textAnswer } from "../assemble.ts";
import type { Answer, AnswerBlock } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { citationFor } from "../citations.ts";
import { hasError, readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext } from "../dialect.ts";
import { asList, asObject, asString, parseJson } from "../json.ts";
import { packSignature } from "../signatures.ts";
import { decodeStream } from "./decode-stream.ts";
import { decodeUsage, encodeUsage } from "./usage.ts";
import { finishFromWire, finishToWire } from "./wire.ts";

/** Throws the upstream's failure for error bodies and for bodies that are no message. */
export function decodeAnswer(body: unknown, context: Pick<AnswerContext, "newId">): Answer {
  const wire = asObject(body);
  if (wire?.["type"] === "error" || (wire && hasError(wire, "content"))) {
    throw upstreamFailure({ status: 200, ...readErrorBody(body) });
  }
  if (!wire || !Array.isArray(wire["content"])) {
    throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  }
  const plain = plainAnswer(wire, wire["content"]);
  if (plain) return plain;
  const decoder = decodeStream(context);
  // The stream that this answer would have been; its usage is read once, from the whole object.
  const events = decoder.read({ type: "message_start", message: { ...wire, usage: undefined } });
  asList(wire["content"]).forEach((block, index) => {
    events.push(...decoder.read({ type: "content_block_start", index, content_block: block }));
    events.push(...decoder.read({ type: "content_block_stop", index }));
  });
  const { stop_reason, stop_sequence } = wire;
  events.push(...decoder.read({ type: "message_delta", delta: { stop_reason, stop_sequence } }));
  events.push(...decoder.read({ type: "message_stop" }));
  const answer = collect(events);
  answer.usage = decodeUsage(wire["usage"]) ?? emptyUsage();
  return answer;
}

/** A message of nothing but text blocks; undefined for everything else. */
function plainAnswer(wire: JsonObject, content: readonly unknown[]): Answer | undefined {
  const texts: string[] = [];
  for (const value of content) {
    const block = asObject(value);
    const text = block?.["text"];
    if (!block || block["type"] !== "text" || typeof text !== "string" || !isBlank(block["citations"]))
      return undefined;
    texts.push(text);
  }
  const raw = asString(wire["stop_reason"]) ?? null;
  const head = {
    id: asString(wire["id"]),
    model: asString(wire["model"]),
  };
  return textAnswer(defined(head), texts, {
    usage: decodeUsage(wire["usage"]) ?? emptyUsage(),
    reason: raw === null ? "stop" : finishFromWire(raw),
    rawReason: raw,
    ...defined({ stopSequence: asString(wire["stop_sequence"]) }),
  });
}

export function encodeAnswer(answer: Answer, context: AnswerContext): JsonObject {
  return {
    id: answer.id?.startsWith("msg_") ? answer.id : context.newId("msg_"),
    type: "message",
    role: "assistant",
    model: context.model ?? answer.model ?? "",
    content: answer.blocks.flatMap((block) => encodeBlock(block, context)),
    stop_reason: finishToWire(answer.reason),
    stop_sequence: answer.stopSequence ?? null,
    usage: encodeUsage(answer.usage),
  };
}

function encodeBlock(block: AnswerBlock, context: AnswerContext): JsonObject[] {
  switch (block.kind) {
    case "text":
    case "refusal": {
      const citations = block.notes
        .filter((note) => note.note === "citation")
        .map((note) => citationFor("anthropic", note))
        .filter((value) => value !== undefined);
      return [{ type: "text", text: block.text, ...(citations.length > 0 ? { citations } : {}) }];
    }
    case "thinking": {
      const redacted = signatureOf(block, "redacted");
      if (redacted) return [{ type: "redacted_thinking", data: packSignature(redacted, "anthropic") }];
      const signature = signatureOf(block);
      return [
        {
          type: "thinking",
          thinking: block.text,
          signature: signature ? packSignature(signature, "anthropic") : "",
        },
      ];
    }
    case "tool-call": {
      const signature = signatureOf(block);
      const input = block.text.trim() === "" ? {} : parseJson(block.text);
      const call: JsonObject = {
        type: "tool_use",
        id: block.callId ?? context.newId("toolu_"),
        name: block.name ?? "",
        input: asObject(input) ?? { input: block.text },
      };
      return signature
        ? [{ type: "thinking", thinking: "", signature: packSignature(signature, "anthropic") }, call]
        : [call];
    }
    case "hosted-tool": {
      const own = block.opaque.find((item) => item.dialect === "anthropic");
      const value = asObject(own?.value);
      if (!value) return [];
      const input =
        asString(value["type"]) === "server_tool_use" ? asObject(parseJson(block.text)) : undefined;
      return [input ? { ...value, input } : value];
    }
    case "image":
    case "audio":
      return [];
  }
}
