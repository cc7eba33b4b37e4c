// The other three conversations: Responses, Messages and generateContent, each with its body, answer and events.
// The main fields, as the three providers' references describe them; others are passed on.
import {
  anything,
  either,
  EVENT_STREAM,
  flag,
  integer,
  JSON_TYPE,
  list,
  modelInPath,
  nullable,
  number,
  oneOf,
  open,
  ref,
  text,
  wholeOrStreamed,
  withoutVersion,
  word,
} from "../schema.ts";
import type { Parameter, RelayArea, RelayOperation } from "../schema.ts";

/** What every example answers. */
const WEIR = "A low dam that water flows over.";

const object = (description?: string) => ({
  type: "object",
  additionalProperties: true,
  ...(description === undefined ? {} : { description }),
});

const RESPONSES_CALLS: Readonly<Record<string, RelayOperation>> = {
  "POST /v1/responses": {
    tag: "Responses",
    summary: "Make a response",
    description: "Served by every model, whatever its provider speaks.",
    body: { schema: ref("ResponsesRequest"), example: { model: "gpt-5-mini", input: "What is a weir?" } },
    answer: wholeOrStreamed(
      {
        schema: ref("Response"),
        example: {
          id: "resp_1",
          object: "response",
          created_at: 1_750_000_000,
          status: "completed",
          model: "gpt-5-mini",
          output: [
            {
              id: "msg_1",
              type: "message",
              role: "assistant",
              status: "completed",
              content: [{ type: "output_text", text: WEIR, annotations: [] }],
            },
          ],
          usage: { input_tokens: 12, output_tokens: 9, total_tokens: 21 },
        },
      },
      ref("ResponsesEvent"),
    ),
    errors: "openai",
  },
  "POST /v1/responses/compact": {
    tag: "Responses",
    summary: "Make a long conversation short",
    description: "Only for models whose provider has this call.",
    body: {
      schema: open({ model: text(), input: either(text(), list(ref("ResponsesItem"))) }),
      example: { model: "gpt-5-codex", input: [{ role: "user", content: "What is a weir?" }] },
    },
    answer: { [JSON_TYPE]: { schema: ref("ResponsesCompaction") } },
    errors: "openai",
  },
};

export const responses: RelayArea = {
  schemas: {
    ResponsesRequest: open({
      model: text(),
      "input?": either(text(), list(ref("ResponsesItem"))),
      "instructions?": nullable(text()),
      "stream?": nullable(flag("Answer as events.")),
      "max_output_tokens?": nullable(integer()),
      "temperature?": nullable(number()),
      "top_p?": nullable(number()),
      "reasoning?": nullable(open({ "effort?": nullable(text()), "summary?": nullable(text()) })),
      "text?": open({ "format?": object(), "verbosity?": nullable(text()) }),
      "tools?": list(open({ type: text("`function`, `custom`, or a tool of the provider.") })),
      "tool_choice?": anything(),
      "parallel_tool_calls?": nullable(flag()),
      "include?": nullable(list(text())),
      "previous_response_id?": nullable(text("Only where the same upstream keeps its answers.")),
      "store?": nullable(flag()),
      "metadata?": nullable(object()),
    }),
    ResponsesItem: open(
      {
        "type?": text("`message`, `reasoning`, `function_call`, `function_call_output`, …"),
        "id?": nullable(text()),
        "role?": text(),
        "status?": nullable(text()),
        "content?": nullable(either(text(), list(ref("ResponsesContentPart")))),
        "call_id?": text(),
        "name?": text(),
        "arguments?": text("JSON, as the model wrote it."),
        "output?": either(text(), list(anything())),
        "summary?": list(open({ "type?": text(), "text?": text() })),
        "encrypted_content?": nullable(text()),
      },
      "A turn, a thought, a call or its result.",
    ),
    ResponsesContentPart: open({
      type: text("`input_text`, `input_image`, `output_text`, …"),
      "text?": text(),
    }),
    ResponsesUsage: open({
      input_tokens: integer(),
      output_tokens: integer(),
      total_tokens: integer(),
      "input_tokens_details?": open({ "cached_tokens?": integer() }),
      "output_tokens_details?": open({ "reasoning_tokens?": integer() }),
    }),
    Response: open(
      {
        id: text(),
        object: word("response"),
        created_at: number("Unix seconds."),
        status: text("`completed`, `incomplete`, `failed` or, in a stream, `in_progress`."),
        model: text(),
        output: list(ref("ResponsesItem")),
        "usage?": nullable(ref("ResponsesUsage")),
        "error?": nullable(open({ "code?": nullable(text()), "message?": text() })),
        "incomplete_details?": nullable(open({ "reason?": text() })),
      },
      "A whole answer.",
    ),
    ResponsesEvent: open(
      {
        type: text("`response.created`, `response.output_text.delta`, `response.completed`, …"),
        "sequence_number?": integer(),
        "response?": ref("Response"),
        "item?": ref("ResponsesItem"),
        "output_index?": integer(),
        "item_id?": text(),
        "delta?": anything(),
      },
      "The data of one event; its `event:` line repeats the type. Exactly one of completed, incomplete and failed ends a stream.",
    ),
    ResponsesCompaction: open({ "id?": text(), "object?": text(), output: list(ref("ResponsesItem")) }),
  },
  operations: { ...RESPONSES_CALLS, ...withoutVersion(RESPONSES_CALLS) },
};

const anthropicVersion: Parameter = {
  name: "anthropic-version",
  in: "header",
  description: "Version of the API that the client speaks; passed on.",
  schema: { type: "string" },
  example: "2023-06-01",
};

export const messages: RelayArea = {
  schemas: {
    MessagesRequest: open({
      model: text(),
      messages: list(
        open({ role: oneOf(["user", "assistant"]), content: either(text(), list(ref("MessagesBlock"))) }),
      ),
      "max_tokens?": integer("Most tokens of the answer, thoughts included."),
      "system?": either(text(), list(ref("MessagesBlock"))),
      "stream?": flag("Answer as events."),
      "temperature?": number(),
      "top_p?": number(),
      "top_k?": integer(),
      "stop_sequences?": list(text()),
      "thinking?": open({ type: text("`enabled`, `adaptive` or `disabled`."), "budget_tokens?": integer() }),
      "tools?": list(
        open({ "name?": text(), "description?": text(), "input_schema?": object("JSON Schema.") }),
      ),
      "tool_choice?": open({ type: text("`auto`, `any`, `tool` or `none`."), "name?": text() }),
      "metadata?": object(),
    }),
    MessagesBlock: open({
      type: text("`text`, `image`, `document`, `thinking`, `tool_use`, `tool_result`, …"),
      "text?": text(),
      "thinking?": text(),
      "signature?": text(),
      "id?": text(),
      "name?": text(),
      "input?": anything("Arguments of a tool."),
      "tool_use_id?": text(),
      "content?": anything("Result of a tool."),
      "source?": object("Where a picture or document comes from."),
    }),
    MessagesUsage: open({
      "input_tokens?": nullable(integer()),
      "output_tokens?": integer(),
      "cache_creation_input_tokens?": nullable(integer()),
      "cache_read_input_tokens?": nullable(integer()),
    }),
    Message: open(
      {
        id: text(),
        type: word("message"),
        role: word("assistant"),
        model: text(),
        content: list(ref("MessagesBlock")),
        stop_reason: nullable(text("`end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `refusal`, …")),
        "stop_sequence?": nullable(text()),
        usage: ref("MessagesUsage"),
      },
      "A whole answer.",
    ),
    MessagesEvent: open(
      {
        type: text(
          "`message_start`, `content_block_delta`, `message_delta`, `message_stop`, `ping`, `error`, …",
        ),
        "message?": ref("Message"),
        "index?": integer(),
        "content_block?": ref("MessagesBlock"),
        "delta?": object(),
        "usage?": ref("MessagesUsage"),
        "error?": open({ type: text(), message: text() }),
      },
      "The data of one event; its `event:` line repeats the type.",
    ),
    MessagesTokenCount: open({ input_tokens: integer() }),
  },
  operations: {
    "POST /v1/messages": {
      tag: "Messages",
      summary: "Make a message",
      description: "Served by every model, whatever its provider speaks.",
      parameters: [anthropicVersion],
      body: {
        schema: ref("MessagesRequest"),
        example: {
          model: "claude-sonnet-4-5",
          max_tokens: 200,
          messages: [{ role: "user", content: "What is a weir?" }],
        },
      },
      answer: wholeOrStreamed(
        {
          schema: ref("Message"),
          example: {
            id: "msg_1",
            type: "message",
            role: "assistant",
            model: "claude-sonnet-4-5",
            content: [{ type: "text", text: WEIR }],
            stop_reason: "end_turn",
            stop_sequence: null,
            usage: { input_tokens: 12, output_tokens: 9 },
          },
        },
        ref("MessagesEvent"),
      ),
      errors: "anthropic",
    },
    "POST /v1/messages/count_tokens": {
      tag: "Messages",
      summary: "Count the tokens of a prompt",
      description: "Costs nothing.",
      parameters: [anthropicVersion],
      body: {
        schema: ref("MessagesRequest"),
        example: { model: "claude-sonnet-4-5", messages: [{ role: "user", content: "What is a weir?" }] },
      },
      answer: { [JSON_TYPE]: { schema: ref("MessagesTokenCount"), example: { input_tokens: 12 } } },
      errors: "anthropic",
    },
  },
};

const contents = [{ role: "user", parts: [{ text: "What is a weir?" }] }];

const EMBEDDED =
  "Reaches Google as it was written. Other providers are told texts and dimensions; parts that are no text are refused.";

/** What stands behind the model's name and a colon, both versions of the API alike. */
const GEMINI_ACTIONS: Readonly<Record<string, Omit<RelayOperation, "route">>> = {
  generateContent: {
    tag: "Gemini",
    summary: "Generate content",
    description: "Served by every model, whatever its provider speaks.",
    body: { schema: ref("GeminiRequest"), example: { contents } },
    answer: {
      [JSON_TYPE]: {
        schema: ref("GeminiResponse"),
        example: {
          candidates: [
            { content: { role: "model", parts: [{ text: WEIR }] }, finishReason: "STOP", index: 0 },
          ],
          usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 9, totalTokenCount: 21 },
          modelVersion: "gemini-2.5-flash",
        },
      },
    },
    errors: "gemini",
  },
  streamGenerateContent: {
    tag: "Gemini",
    summary: "Generate content as a stream",
    parameters: [
      {
        name: "alt",
        in: "query",
        description: "`sse` for events; without it the pieces are the elements of one JSON list.",
        schema: { type: "string", enum: ["sse"] },
      },
    ],
    body: { schema: ref("GeminiRequest"), example: { contents } },
    answer: {
      [EVENT_STREAM]: { schema: ref("GeminiResponse") },
      [JSON_TYPE]: { schema: list(ref("GeminiResponse")) },
    },
    errors: "gemini",
  },
  countTokens: {
    tag: "Gemini",
    summary: "Count the tokens of contents",
    description: "Costs nothing.",
    body: {
      schema: open({
        "contents?": list(ref("GeminiContent")),
        "generateContentRequest?": ref("GeminiRequest"),
      }),
      example: { contents },
    },
    answer: { [JSON_TYPE]: { schema: open({ totalTokens: integer() }), example: { totalTokens: 12 } } },
    errors: "gemini",
  },
  embedContent: {
    tag: "Gemini",
    summary: "Turn a text into a vector",
    description: EMBEDDED,
    body: {
      schema: ref("GeminiEmbedRequest"),
      example: { content: { parts: [{ text: "A weir" }] } },
    },
    answer: { [JSON_TYPE]: { schema: open({ embedding: ref("GeminiVector") }) } },
    errors: "gemini",
  },
  batchEmbedContents: {
    tag: "Gemini",
    summary: "Turn texts into vectors",
    description: EMBEDDED,
    body: {
      schema: open({ requests: list(ref("GeminiEmbedRequest")) }),
      example: {
        requests: [{ model: "models/gemini-embedding-001", content: { parts: [{ text: "A weir" }] } }],
      },
    },
    answer: { [JSON_TYPE]: { schema: open({ embeddings: list(ref("GeminiVector")) }) } },
    errors: "gemini",
  },
};

function geminiOperations(): Record<string, RelayOperation> {
  const rows: Record<string, RelayOperation> = {};
  for (const version of ["v1beta", "v1"])
    for (const [action, row] of Object.entries(GEMINI_ACTIONS))
      rows[`POST /${version}/models/{model}:${action}`] = {
        ...row,
        route: `POST /${version}/models/*`,
        parameters: [modelInPath, ...(row.parameters ?? [])],
      };
  return rows;
}

export const gemini: RelayArea = {
  schemas: {
    GeminiContent: open({
      "role?": text("`user` or `model`."),
      "parts?": list(
        open({
          "text?": text(),
          "thought?": flag(),
          "thoughtSignature?": text(),
          "inlineData?": open({ mimeType: text(), data: text("Base64.") }),
          "fileData?": object(),
          "functionCall?": open({ "id?": text(), name: text(), "args?": object() }),
          "functionResponse?": open({ "id?": text(), name: text(), "response?": object() }),
        }),
      ),
    }),
    GeminiRequest: open({
      contents: either(list(ref("GeminiContent")), ref("GeminiContent")),
      "systemInstruction?": ref("GeminiContent"),
      "generationConfig?": open({
        "maxOutputTokens?": integer(),
        "temperature?": number(),
        "topP?": number(),
        "topK?": number(),
        "candidateCount?": integer(),
        "stopSequences?": list(text()),
        "responseMimeType?": text(),
        "responseSchema?": object(),
        "thinkingConfig?": object(),
      }),
      "tools?": list(object()),
      "toolConfig?": object(),
      "safetySettings?": list(object()),
    }),
    GeminiResponse: open(
      {
        "candidates?": list(
          open({
            "content?": ref("GeminiContent"),
            "finishReason?": text("`STOP`, `MAX_TOKENS`, `SAFETY`, …"),
            "index?": integer(),
            "groundingMetadata?": object(),
          }),
        ),
        "promptFeedback?": object(),
        "usageMetadata?": open({
          "promptTokenCount?": integer(),
          "candidatesTokenCount?": integer(),
          "thoughtsTokenCount?": integer(),
          "cachedContentTokenCount?": integer(),
          "totalTokenCount?": integer(),
        }),
        "modelVersion?": text(),
        "responseId?": text(),
      },
      "A whole answer, or one piece of a stream.",
    ),
    GeminiEmbedRequest: open({
      "model?": text(),
      content: ref("GeminiContent"),
      "outputDimensionality?": integer(
        "Length of the vector; one for all requests where the provider is another than Google.",
      ),
      "taskType?": text(
        "`RETRIEVAL_QUERY`, `RETRIEVAL_DOCUMENT`, …; Google's own, other providers do without.",
      ),
      "title?": text("Of the document; as the type of the task."),
    }),
    GeminiVector: open({ values: list(number()) }),
  },
  operations: geminiOperations(),
};
