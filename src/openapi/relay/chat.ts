// Conversations in OpenAI's older form, and the endpoints that are older still: bodies, answers, events.
// The main fields, as https://platform.openai.com/docs/api-reference describes them; others are passed on.
import {
  anything,
  either,
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
  word,
} from "../schema.ts";
import type { RelayArea } from "../schema.ts";

const SAMPLE_MESSAGES = [
  { role: "system", content: "Answer in one sentence." },
  { role: "user", content: "What is a weir?" },
];

const toolCall = open({
  "index?": integer("Which call a piece of a stream belongs to."),
  "id?": text(),
  "type?": text("`function`, or `custom`."),
  "function?": open({ "name?": text(), "arguments?": text("JSON, as the model wrote it.") }),
});

const choice = (body: Record<string, object>) =>
  open({
    index: integer(),
    ...body,
    "finish_reason?": nullable(text("`stop`, `length`, `tool_calls` or `content_filter`.")),
    "logprobs?": anything(),
  });

const completionFields = {
  id: text(),
  "object?": text(),
  created: integer("Unix seconds."),
  model: text(),
  "system_fingerprint?": nullable(text()),
  "service_tier?": nullable(text()),
};

export const chat: RelayArea = {
  schemas: {
    ChatMessage: open(
      {
        role: oneOf(["system", "developer", "user", "assistant", "tool", "function"]),
        "content?": nullable(
          either(text(), list(ref("ChatContentPart"), "Texts, pictures, sound and files.")),
        ),
        "name?": text(),
        "tool_calls?": list(ref("ChatToolCall")),
        "tool_call_id?": text("Which call a message of the role `tool` answers."),
        "reasoning_content?": nullable(text("What the model thought, where its provider shows it.")),
      },
      "One turn of a conversation.",
    ),
    ChatContentPart: open({
      type: text("`text`, `image_url`, `input_audio` or `file`."),
      "text?": text(),
      "image_url?": open({ url: text("An address or a data: URL."), "detail?": text() }),
      "input_audio?": open({ data: text("Base64."), format: text("`wav` or `mp3`.") }),
      "file?": open({ "file_data?": text("A data: URL."), "filename?": text() }),
    }),
    ChatToolCall: toolCall,
    ChatTool: open({
      type: text("`function`, or `custom`."),
      "function?": open({
        name: text(),
        "description?": text(),
        "parameters?": { type: "object", additionalProperties: true, description: "JSON Schema." },
        "strict?": nullable(flag()),
      }),
    }),
    ChatCompletionRequest: open({
      model: text(),
      messages: list(ref("ChatMessage")),
      "stream?": flag("Answer as events."),
      "stream_options?": open({ "include_usage?": flag("One more event with the usage.") }),
      "max_tokens?": integer("Elder name of `max_completion_tokens`; 0 means none."),
      "max_completion_tokens?": integer("Most tokens of the answer, thoughts included."),
      "temperature?": nullable(number()),
      "top_p?": nullable(number()),
      "n?": nullable(integer("How many answers, up to 128.")),
      "stop?": nullable(either(text(), list(text()))),
      "seed?": nullable(integer()),
      "presence_penalty?": nullable(number()),
      "frequency_penalty?": nullable(number()),
      "reasoning_effort?": nullable(text("`none`, `minimal`, `low`, `medium`, `high`, …")),
      "response_format?": open({
        type: text("`text`, `json_object` or `json_schema`."),
        "json_schema?": anything(),
      }),
      "tools?": list(ref("ChatTool")),
      "tool_choice?": anything("`auto`, `none`, `required`, or the name of one tool."),
      "parallel_tool_calls?": flag(),
      "web_search_options?": anything(),
      "service_tier?": nullable(text()),
      "user?": text(),
    }),
    ChatCompletion: open(
      {
        ...completionFields,
        choices: list(choice({ message: ref("ChatMessage") })),
        "usage?": nullable(ref("OpenAIUsage")),
      },
      "A whole answer.",
    ),
    ChatCompletionChunk: open(
      {
        ...completionFields,
        choices: list(
          choice({
            delta: open({
              "role?": nullable(text()),
              "content?": nullable(text()),
              "reasoning_content?": nullable(text()),
              "tool_calls?": nullable(list(ref("ChatToolCall"))),
            }),
          }),
        ),
        "usage?": nullable(ref("OpenAIUsage")),
      },
      "The data of one event; the last line of a stream is `[DONE]`. A stream that fails ends with an OpenAIError.",
    ),
    OpenAIUsage: open({
      prompt_tokens: integer(),
      "completion_tokens?": integer(),
      total_tokens: integer(),
      "prompt_tokens_details?": nullable(open({ "cached_tokens?": integer(), "audio_tokens?": integer() })),
      "completion_tokens_details?": nullable(
        open({ "reasoning_tokens?": integer(), "audio_tokens?": integer() }),
      ),
    }),
    CompletionRequest: open({
      model: text(),
      prompt: either(text(), list(anything(), "Texts or lists of tokens.")),
      "stream?": flag(),
      "max_tokens?": integer(),
      "temperature?": nullable(number()),
      "suffix?": nullable(text()),
      "n?": nullable(integer()),
      "stop?": nullable(either(text(), list(text()))),
    }),
    Completion: open({
      ...completionFields,
      choices: list(choice({ text: text() })),
      "usage?": nullable(ref("OpenAIUsage")),
    }),
    EditRequest: open({
      model: text(),
      instruction: text(),
      "input?": nullable(text()),
      "n?": nullable(integer()),
    }),
    Edit: open({
      object: word("edit"),
      created: integer("Unix seconds."),
      choices: list(open({ text: text(), index: integer() })),
      "usage?": ref("OpenAIUsage"),
    }),
    PlaygroundRequest: open({
      model: text(),
      messages: list(ref("ChatMessage")),
      "group?": nullable(text("The group to be billed; one that the user may use.")),
      "stream?": flag(),
    }),
  },
  operations: {
    "POST /v1/chat/completions": {
      tag: "Chat",
      summary: "Continue a conversation",
      description:
        "Served by every model, whatever its provider speaks. Fields that are not listed are passed on.",
      body: {
        schema: ref("ChatCompletionRequest"),
        example: { model: "gpt-4o-mini", messages: SAMPLE_MESSAGES },
      },
      answer: wholeOrStreamed(
        {
          schema: ref("ChatCompletion"),
          example: {
            id: "chatcmpl-1",
            object: "chat.completion",
            created: 1_750_000_000,
            model: "gpt-4o-mini",
            choices: [
              {
                index: 0,
                message: { role: "assistant", content: "A low dam that water flows over." },
                finish_reason: "stop",
              },
            ],
            usage: { prompt_tokens: 24, completion_tokens: 9, total_tokens: 33 },
          },
        },
        ref("ChatCompletionChunk"),
      ),
      errors: "openai",
    },
    "POST /pg/chat/completions": {
      tag: "Chat",
      summary: "Continue a conversation in the playground",
      description: "As the signed-in user, without a key; billed to the group that the body names.",
      body: {
        schema: ref("PlaygroundRequest"),
        example: { model: "gpt-4o-mini", messages: SAMPLE_MESSAGES },
      },
      answer: wholeOrStreamed({ schema: ref("ChatCompletion") }, ref("ChatCompletionChunk")),
      errors: "openai",
    },
    "POST /v1/completions": {
      tag: "Chat",
      summary: "Continue a text",
      body: {
        schema: ref("CompletionRequest"),
        example: { model: "gpt-3.5-turbo-instruct", prompt: "A weir is" },
      },
      answer: wholeOrStreamed({ schema: ref("Completion") }, ref("Completion")),
      errors: "openai",
    },
    "POST /v1/edits": {
      tag: "Chat",
      summary: "Edit a text",
      description: "An endpoint that no provider has any more; a chat model does the work.",
      body: {
        schema: ref("EditRequest"),
        example: { model: "gpt-4o-mini", instruction: "Correct the spelling.", input: "A wier" },
      },
      answer: { [JSON_TYPE]: { schema: ref("Edit") } },
      errors: "openai",
    },
  },
};

export const vectors: RelayArea = {
  schemas: {
    EmbeddingRequest: open({
      model: text(),
      input: either(text(), list(anything(), "Texts or lists of tokens.")),
      "encoding_format?": nullable(oneOf(["float", "base64"])),
      "dimensions?": nullable(integer()),
      "user?": text(),
    }),
    EmbeddingList: open({
      object: text("`list`."),
      data: list(
        open({
          index: integer(),
          "object?": text(),
          embedding: either(list(number()), text("Base64 of 32-bit floats.")),
        }),
      ),
      model: text(),
      "usage?": ref("OpenAIUsage"),
    }),
    ModerationRequest: open({ "model?": text(), input: either(text(), list(anything("Texts or parts."))) }),
    Moderation: open({
      "id?": text(),
      "model?": text(),
      results: list(
        open({
          flagged: flag(),
          "categories?": { type: "object", additionalProperties: true },
          "category_scores?": { type: "object", additionalProperties: true },
        }),
      ),
    }),
    RerankRequest: open({
      model: text(),
      query: text(),
      documents: list(anything("A text, or an object with a text.")),
      "top_n?": integer(),
      "return_documents?": flag(),
    }),
    Rerank: open({
      results: list(
        open({
          index: integer("Place in the request's list."),
          relevance_score: number(),
          "document?": anything(),
        }),
        "The best first.",
      ),
      usage: ref("OpenAIUsage"),
    }),
  },
  operations: {
    "POST /v1/embeddings": {
      tag: "Vectors",
      summary: "Turn texts into vectors",
      body: {
        schema: ref("EmbeddingRequest"),
        example: { model: "text-embedding-3-small", input: ["A weir"] },
      },
      answer: {
        [JSON_TYPE]: {
          schema: ref("EmbeddingList"),
          example: {
            object: "list",
            data: [{ object: "embedding", index: 0, embedding: [0.25, -0.5, 1] }],
            model: "text-embedding-3-small",
            usage: { prompt_tokens: 2, total_tokens: 2 },
          },
        },
      },
      errors: "openai",
    },
    "POST /v1/engines/{model}/embeddings": {
      tag: "Vectors",
      summary: "Turn texts into vectors, the model in the path",
      parameters: [modelInPath],
      body: {
        schema: open({ input: either(text(), list(anything())) }),
        example: { input: ["A weir"] },
      },
      answer: { [JSON_TYPE]: { schema: ref("EmbeddingList") } },
      errors: "openai",
    },
    "POST /v1/moderations": {
      tag: "Vectors",
      summary: "Judge texts and pictures",
      body: { schema: ref("ModerationRequest"), example: { input: "A weir" } },
      answer: { [JSON_TYPE]: { schema: ref("Moderation") } },
      errors: "openai",
    },
    ...Object.fromEntries(
      ["POST /v1/rerank", "POST /v2/rerank"].map((name) => [
        name,
        {
          tag: "Vectors" as const,
          summary: `Sort documents by how well they fit (${name.includes("v2") ? "Cohere's second version" : "Jina, Cohere"})`,
          body: {
            schema: ref("RerankRequest"),
            example: {
              model: "jina-reranker-v2",
              query: "water",
              documents: ["A weir", "A desert"],
              top_n: 1,
            },
          },
          answer: {
            [JSON_TYPE]: {
              schema: ref("Rerank"),
              example: {
                results: [{ index: 0, relevance_score: 0.93 }],
                usage: { prompt_tokens: 6, completion_tokens: 0, total_tokens: 6 },
              },
            },
          },
          errors: "openai" as const,
        },
      ]),
    ),
  },
};
