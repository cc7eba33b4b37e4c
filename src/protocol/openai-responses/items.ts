// The response object and its output items, as the stream's end and a whole answer both show them.
// Foreign blocks without an item form are left out.
import type { Usage } from "../../shared/usage.ts";
import { signatureOf } from "../assemble.ts";
import type { AnswerBlock } from "../assemble.ts";
import type { CanonicalRequest, JsonObject } from "../canonical.ts";
import { citationFor } from "../citations.ts";
import type { AnswerContext } from "../dialect.ts";
import type { FinishReason } from "../events.ts";
import { asList, asObject } from "../json.ts";
import { sharedLogprobs } from "../logprobs.ts";
import { packSignature } from "../signatures.ts";
import { clientCallItem } from "./client-items.ts";
import { encodeRequest } from "./encode-request.ts";
import { encodeUsage } from "./usage.ts";
import { ECHOED_FIELDS, unpackReasoning } from "./wire.ts";

/** The content part of a text or refusal block. */
export function contentPart(block: AnswerBlock): JsonObject {
  if (block.kind === "refusal") return { type: "refusal", refusal: block.text };
  const annotations = block.notes
    .filter((note) => note.note === "citation")
    .map((note) => citationFor("openai-responses", note))
    .filter((value) => value !== undefined);
  return { type: "output_text", text: block.text, annotations, logprobs: blockLogprobs(block) };
}

function blockLogprobs(block: AnswerBlock): unknown[] {
  return block.notes.flatMap((note) => {
    if (note.note !== "logprobs") return [];
    if (note.dialect === "openai-responses") return asList(note.value);
    return note.dialect === "openai-chat" ? sharedLogprobs(asObject(note.value)?.["content"]) : [];
  });
}

/** Encrypted content of a reasoning item, and the id that came with it. */
export function reasoningProof(block: AnswerBlock): { id: string; encrypted: string } | null {
  const plain = signatureOf(block);
  const signature = plain ?? signatureOf(block, "redacted");
  if (!signature) return null;
  if (signature.dialect === "openai-responses") return unpackReasoning(signature.value);
  return { id: "", encrypted: packSignature(signature, "openai-responses", !plain) };
}

/** The finished item of a block that is an item of its own; null for blocks this protocol does not know. */
export function encodeItem(block: AnswerBlock, id: string): JsonObject | null {
  switch (block.kind) {
    case "thinking": {
      const proof = reasoningProof(block);
      const summary = block.text === "" ? [] : [{ type: "summary_text", text: block.text }];
      return { id, type: "reasoning", summary, ...(proof ? { encrypted_content: proof.encrypted } : {}) };
    }
    case "tool-call": {
      const { callId: call_id, name, namespace, form } = block;
      if (form !== undefined) return clientCallItem(form, id, call_id, block.text);
      const type = block.custom ? "custom_tool_call" : "function_call";
      const head = { id, type, status: "completed", call_id, name };
      const asked = block.custom ? { input: block.text } : { arguments: block.text || "{}" };
      return { ...head, ...(namespace === undefined ? {} : { namespace }), ...asked };
    }
    case "image": {
      const format = block.mime?.split("/")[1] ?? "png";
      return {
        id,
        type: "image_generation_call",
        status: "completed",
        result: block.data ?? "",
        output_format: format,
      };
    }
    case "hosted-tool": {
      const own = block.opaque.find((item) => item.dialect === "openai-responses");
      return asObject(own?.value) ?? null;
    }
    default:
      return null;
  }
}

/** A reasoning item that only carries the signature of the call behind it. */
export function carrierItem(block: AnswerBlock, newId: AnswerContext["newId"]): JsonObject | null {
  const signature = block.kind === "tool-call" ? signatureOf(block) : null;
  if (!signature) return null;
  return {
    id: newId("rs_"),
    type: "reasoning",
    summary: [],
    encrypted_content: packSignature(signature, "openai-responses"),
  };
}

export interface ResponseHead {
  id: string;
  model: string;
  createdAt: number;
}

/** Whether an answer ends as incomplete: at its limit, or stopped by a filter. */
export function isCut(reason: FinishReason): boolean {
  return reason === "length" || reason === "content-filter" || reason === "refusal";
}

/** The response object; `reason` absent means in progress. */
export function encodeResponse(
  head: ResponseHead,
  output: JsonObject[],
  context: AnswerContext,
  end?: { reason: FinishReason; usage: Usage },
): JsonObject {
  const cut = end && isCut(end.reason);
  const status = end ? (cut ? "incomplete" : "completed") : "in_progress";
  return {
    ...echo(context),
    id: head.id,
    object: "response",
    created_at: head.createdAt,
    status,
    error: null,
    incomplete_details: cut
      ? { reason: end.reason === "length" ? "max_output_tokens" : "content_filter" }
      : null,
    model: head.model,
    output,
    usage: end ? encodeUsage(end.usage) : null,
  };
}

const echoes = new WeakMap<CanonicalRequest, JsonObject>();

/** The request's fields that the response object repeats, with the protocol's defaults; worked out once for a call. */
function echo({ request }: AnswerContext): JsonObject {
  if (request?.dialect !== "openai-responses") return echoOf({});
  let known = echoes.get(request);
  if (!known) {
    // The conversation is not repeated: only its instructions are written again.
    const messages = request.messages.filter((message) => message.topLevel);
    known = echoOf(encodeRequest({ ...request, messages }).body);
    echoes.set(request, known);
  }
  return known;
}

function echoOf(request: JsonObject): JsonObject {
  const out: JsonObject = {
    instructions: null,
    max_output_tokens: null,
    metadata: {},
    parallel_tool_calls: true,
    previous_response_id: null,
    temperature: 1,
    tool_choice: "auto",
    tools: [],
    top_p: 1,
  };
  for (const key of ECHOED_FIELDS) if (request[key] !== undefined) out[key] = request[key];
  return out;
}
