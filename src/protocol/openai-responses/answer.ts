// Whole Responses answers, both ways.
// Refuses an answer that failed or is an error object: decoding throws the upstream's failure.
import { Failure } from "../../shared/failures.ts";
import { emptyUsage } from "../../shared/usage.ts";
import { collect, defined, isBlank, textAnswer } from "../assemble.ts";
import type { Answer } from "../assemble.ts";
import type { JsonObject } from "../canonical.ts";
import { hasError, readErrorBody, upstreamFailure } from "../classify.ts";
import type { AnswerContext } from "../dialect.ts";
import { asList, asNumber, asObject, asString } from "../json.ts";
import { decodeStream } from "./decode-stream.ts";
import { hasReasoning, withSealedIds } from "./references.ts";
import { decodeUsage } from "./usage.ts";
import { carrierItem, contentPart, encodeItem, encodeResponse, reasoningProof } from "./items.ts";

/** Throws the upstream's failure for failed responses and for bodies that are no response. */
export function decodeAnswer(body: unknown, context: Pick<AnswerContext, "newId">): Answer {
  const wire = asObject(body);
  const error = wire?.["error"];
  if (
    asObject(error)
      ? hasError(wire ?? {}, "output")
      : typeof error === "string" && !Array.isArray(wire?.["output"])
  )
    throw upstreamFailure({ status: 200, ...readErrorBody(body) });
  if (!wire || !Array.isArray(wire["output"])) {
    throw new Failure("upstream-down", "upstream_bad_answer", { retryable: true });
  }
  const plain = plainAnswer(wire, wire["output"]);
  if (plain) return plain;
  const type = wire["status"] === "incomplete" ? "response.incomplete" : "response.completed";
  const decoder = decodeStream(context);
  return collect(decoder.read({ type, response: wire }));
}

/** A completed response of nothing but text (and of reasoning that nobody shows); undefined for everything else. */
function plainAnswer(wire: JsonObject, output: readonly unknown[]): Answer | undefined {
  if (wire["status"] !== "completed" || !isBlank(wire["incomplete_details"])) return undefined;
  const texts: string[] = [];
  for (const value of output) {
    const item = asObject(value);
    const type = item?.["type"];
    if (item && type === "reasoning") {
      if (!["summary", "content", "encrypted_content"].every((key) => isBlank(item[key]))) return undefined;
    } else if (!item || type !== "message") return undefined;
    else {
      for (const inner of asList(item["content"])) {
        const part = asObject(inner);
        const text = part?.["text"];
        if (part?.["type"] !== "output_text" || typeof text !== "string") return undefined;
        if (!isBlank(part["annotations"]) || !isBlank(part["logprobs"])) return undefined;
        if (text !== "") texts.push(text);
      }
    }
  }
  const head = {
    id: asString(wire["id"]),
    model: asString(wire["model"]),
    createdAt: asNumber(wire["created_at"]),
  };
  return textAnswer(defined(head), texts, {
    usage: decodeUsage(wire["usage"]) ?? emptyUsage(),
    reason: "stop",
    rawReason: "completed",
  });
}

export function encodeAnswer(answer: Answer, context: AnswerContext): JsonObject {
  const output: JsonObject[] = [];
  let parts: JsonObject[] = [];
  const endMessage = (): void => {
    if (parts.length === 0) return;
    const id = context.newId("msg_");
    output.push({ id, type: "message", status: "completed", role: "assistant", content: parts });
    parts = [];
  };
  for (const block of answer.blocks) {
    if (block.kind === "text" || block.kind === "refusal") {
      parts.push(contentPart(block));
      continue;
    }
    const own = reasoningProof(block)?.id;
    const prefix = block.kind === "thinking" ? "rs_" : block.kind === "image" ? "ig_" : "fc_";
    const item = encodeItem(block, (block.kind === "thinking" && own) || context.newId(prefix));
    if (!item) continue;
    endMessage();
    const carrier = carrierItem(block, context.newId);
    if (carrier) output.push(carrier);
    output.push(item);
  }
  endMessage();
  const head = {
    id: answer.id?.startsWith("resp_") ? answer.id : context.newId("resp_"),
    model: context.model ?? answer.model ?? "",
    createdAt: answer.createdAt ?? context.nowSeconds,
  };
  const { sealItems: seal } = context;
  const isSealed = seal && (context.sealsAlways === true || hasReasoning(output));
  const items = isSealed ? withSealedIds(output, seal) : output;
  return encodeResponse(head, items, context, { reason: answer.reason, usage: answer.usage });
}
