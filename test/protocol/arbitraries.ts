// Random requests of each dialect for the property tests: only shapes the providers document.
// Refuses nothing.
import fc from "fast-check";

const word = fc.string({ minLength: 1, maxLength: 8 });
const json = fc.dictionary(
  fc.constantFrom("a", "b", "c"),
  fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null)),
  { maxKeys: 3 },
);
/** Random choice of optional fields: each present or absent. */
const some = <T extends object>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }, required: (keyof T)[] = []) =>
  fc.record(fields, { requiredKeys: required as never[] });

const chatText = fc.record({ type: fc.constant("text"), text: fc.string() });
const chatImage = fc.record({
  type: fc.constant("image_url"),
  image_url: some(
    {
      url: fc.constantFrom("https://example.org/a.png", "data:image/png;base64,AAAA"),
      detail: fc.constantFrom("low", "high"),
    },
    ["url"],
  ),
});
const chatContent = fc.oneof(
  fc.string(),
  fc.array(fc.oneof(chatText, chatImage), { minLength: 1, maxLength: 3 }),
);
const chatCall = fc.record({
  id: word,
  type: fc.constant("function"),
  function: fc.record({
    name: word,
    arguments: fc.oneof(
      fc.string(),
      json.map((value) => JSON.stringify(value)),
    ),
  }),
});
const chatMessage = fc.oneof(
  some({ role: fc.constantFrom("system", "developer"), content: fc.string(), name: word }, [
    "role",
    "content",
  ]),
  some({ role: fc.constant("user"), content: chatContent, name: word }, ["role", "content"]),
  some(
    {
      role: fc.constant("assistant"),
      content: fc.oneof(fc.string(), fc.constant(null)),
      tool_calls: fc.array(chatCall, { minLength: 1, maxLength: 2 }),
      reasoning_content: fc.string(),
    },
    ["role", "content"],
  ),
  fc.record({ role: fc.constant("tool"), tool_call_id: word, content: chatContent }),
);

export const chatRequest = some(
  {
    model: word,
    messages: fc.array(chatMessage, { minLength: 1, maxLength: 5 }),
    stream: fc.boolean(),
    stream_options: fc.record({ include_usage: fc.boolean() }),
    max_tokens: fc.nat(),
    max_completion_tokens: fc.nat(),
    temperature: fc.constantFrom(0, 0.5, 2),
    top_p: fc.constantFrom(0, 1),
    stop: fc.oneof(fc.string(), fc.array(fc.string(), { maxLength: 4 }), fc.constant(null)),
    n: fc.constantFrom(1, 2),
    parallel_tool_calls: fc.boolean(),
    reasoning_effort: fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh"),
    tools: fc.array(
      fc.record({
        type: fc.constant("function"),
        function: some({ name: word, description: fc.string(), parameters: json, strict: fc.boolean() }, [
          "name",
        ]),
      }),
      { maxLength: 2 },
    ),
    tool_choice: fc.oneof(
      fc.constantFrom("auto", "none", "required"),
      fc.record({ type: fc.constant("function"), function: fc.record({ name: word }) }),
    ),
    response_format: fc.oneof(
      fc.constant({ type: "json_object" }),
      fc.record({
        type: fc.constant("json_schema"),
        json_schema: some({ name: word, schema: json, strict: fc.boolean() }, ["name"]),
      }),
    ),
    logit_bias: fc.constant({ "50256": -100 }),
    user: word,
    future_field: fc.oneof(fc.boolean(), fc.integer(), fc.constant(null), json),
  },
  ["model", "messages"],
);

const block = fc.oneof(
  some({ type: fc.constant("text"), text: fc.string(), cache_control: fc.constant({ type: "ephemeral" }) }, [
    "type",
    "text",
  ]),
  fc.record({
    type: fc.constant("image"),
    source: fc.constantFrom(
      { type: "url", url: "https://example.org/a" },
      { type: "base64", media_type: "image/png", data: "AAAA" },
    ),
  }),
  fc.record({ type: fc.constant("thinking"), thinking: fc.string(), signature: fc.constant("c2ln") }),
  fc.record({ type: fc.constant("redacted_thinking"), data: fc.constant("ZGF0YQ==") }),
  some({ type: fc.constant("tool_use"), id: word, name: word, input: json, caller: json }, [
    "type",
    "id",
    "name",
    "input",
  ]),
  some(
    {
      type: fc.constant("tool_result"),
      tool_use_id: word,
      content: fc.oneof(fc.string(), fc.array(chatText, { maxLength: 2 })),
      is_error: fc.boolean(),
    },
    ["type", "tool_use_id"],
  ),
  fc.record({ type: fc.constantFrom("search_result", "server_tool_use", "future_block"), x: json }),
);

export const anthropicRequest = some(
  {
    model: word,
    max_tokens: fc.nat(),
    messages: fc.array(
      fc.record({
        role: fc.constantFrom("user", "assistant"),
        content: fc.oneof(fc.string(), fc.array(block, { maxLength: 3 })),
      }),
      { maxLength: 4 },
    ),
    system: fc.oneof(fc.string(), fc.array(chatText, { maxLength: 2 })),
    stream: fc.boolean(),
    temperature: fc.constantFrom(0, 1),
    top_p: fc.constantFrom(0, 1),
    top_k: fc.nat(),
    stop_sequences: fc.array(fc.string(), { maxLength: 2 }),
    metadata: fc.oneof(fc.record({ user_id: fc.oneof(word, fc.constant(null)) }), json),
    thinking: fc.oneof(
      some(
        {
          type: fc.constant("enabled"),
          budget_tokens: fc.nat(),
          display: fc.constantFrom("omitted", "summarized"),
        },
        ["type", "budget_tokens"],
      ),
      fc.record({ type: fc.constantFrom("adaptive", "disabled", "between_tools") }),
    ),
    output_config: some({
      effort: fc.constantFrom("low", "max", null),
      format: fc.oneof(fc.constant(null), fc.record({ type: fc.constant("json_schema"), schema: json })),
      task_budget: json,
    }),
    tools: fc.array(
      fc.oneof(
        some(
          {
            name: word,
            description: fc.string(),
            input_schema: json,
            strict: fc.boolean(),
            type: fc.constantFrom("custom", null),
          },
          ["name", "input_schema"],
        ),
        fc.record({
          type: fc.constantFrom("web_search_20250305", "bash_20250124"),
          name: word,
          max_uses: fc.nat(),
        }),
      ),
      { maxLength: 2 },
    ),
    tool_choice: fc.oneof(
      some({ type: fc.constantFrom("auto", "any"), disable_parallel_tool_use: fc.boolean() }, ["type"]),
      fc.record({ type: fc.constant("none") }),
      fc.record({ type: fc.constant("tool"), name: word }),
    ),
    service_tier: fc.constantFrom("auto", "standard_only"),
    future_field: fc.oneof(fc.boolean(), fc.constant(0), fc.constant(null), json),
  },
  ["model", "max_tokens", "messages"],
);

const inputPart = fc.oneof(
  fc.record({ type: fc.constantFrom("input_text", "output_text"), text: fc.string() }),
  some(
    {
      type: fc.constant("input_image"),
      image_url: fc.constantFrom("https://example.org/a", "data:image/png;base64,AAAA"),
      detail: fc.constantFrom("auto", "low"),
    },
    ["type", "image_url"],
  ),
  some({ type: fc.constant("input_file"), file_url: fc.constant("https://example.org/f"), filename: word }, [
    "type",
    "file_url",
  ]),
  fc.record({ type: fc.constantFrom("future_part"), x: json }),
);
const inputItem = fc.oneof(
  some(
    {
      type: fc.constant("message"),
      role: fc.constantFrom("user", "assistant", "developer", "system"),
      content: fc.oneof(fc.string(), fc.array(inputPart, { maxLength: 2 })),
      id: word,
      phase: fc.constant(null),
    },
    ["role", "content"],
  ),
  some(
    {
      type: fc.constant("function_call"),
      call_id: word,
      name: word,
      arguments: fc.string(),
      id: word,
      status: fc.constant("completed"),
    },
    ["type", "call_id", "name", "arguments"],
  ),
  some(
    {
      type: fc.constant("function_call_output"),
      call_id: word,
      output: fc.oneof(fc.string(), fc.array(inputPart, { maxLength: 2 })),
      id: word,
    },
    ["type", "call_id", "output"],
  ),
  some(
    {
      type: fc.constant("reasoning"),
      id: word,
      summary: fc.constant([{ type: "summary_text", text: "s" }]),
      encrypted_content: fc.constantFrom("gAAA", null),
    },
    ["type", "id", "summary"],
  ),
  fc.record({ type: fc.constantFrom("item_reference", "web_search_call", "future_item"), id: word }),
);

export const responsesRequest = some(
  {
    model: word,
    input: fc.oneof(fc.string(), fc.array(inputItem, { maxLength: 5 })),
    instructions: fc.oneof(fc.string(), fc.constant(null)),
    max_output_tokens: fc.oneof(fc.nat(), fc.constant(null)),
    temperature: fc.constantFrom(0, 2),
    top_p: fc.constantFrom(0, 1),
    parallel_tool_calls: fc.boolean(),
    stream: fc.boolean(),
    store: fc.boolean(),
    background: fc.boolean(),
    previous_response_id: fc.oneof(word, fc.constant(null)),
    reasoning: some({
      effort: fc.constantFrom("none", "high", null),
      summary: fc.constantFrom("auto", null),
      context: fc.constant("auto"),
    }),
    text: some({
      verbosity: fc.constantFrom("low", null),
      format: fc.oneof(
        fc.constant({ type: "text" }),
        fc.constant({ type: "json_object" }),
        some(
          {
            type: fc.constant("json_schema"),
            name: word,
            schema: json,
            strict: fc.constantFrom(true, false, null),
          },
          ["type", "name", "schema"],
        ),
      ),
    }),
    tools: fc.array(
      fc.oneof(
        some(
          {
            type: fc.constant("function"),
            name: word,
            parameters: fc.oneof(json, fc.constant(null)),
            strict: fc.constantFrom(true, false, null),
            description: fc.oneof(fc.string(), fc.constant(null)),
          },
          ["type", "name", "parameters", "strict"],
        ),
        fc.record({ type: fc.constantFrom("web_search", "mcp", "file_search"), x: json }),
      ),
      { maxLength: 2 },
    ),
    tool_choice: fc.oneof(
      fc.constantFrom("auto", "none", "required"),
      fc.record({ type: fc.constant("function"), name: word }),
      fc.record({ type: fc.constant("web_search") }),
    ),
    future_field: fc.oneof(fc.boolean(), fc.constant(0), fc.constant(null), json),
  },
  ["model", "input"],
);

const geminiPart = fc.oneof(
  some({ text: fc.string(), thoughtSignature: fc.constant("c2ln") }, ["text"]),
  some({ text: fc.string(), thought: fc.constant(true), thoughtSignature: fc.constant("c2ln") }, [
    "text",
    "thought",
  ]),
  some(
    {
      functionCall: some({ id: word, name: word, args: json, future: json }, ["name"]),
      thoughtSignature: fc.constant("c2ln"),
    },
    ["functionCall"],
  ),
  fc.record({ functionResponse: some({ id: word, name: word, response: json }, ["name", "response"]) }),
  some(
    {
      inlineData: fc.constantFrom(
        { mimeType: "image/png", data: "AAAA" },
        { mimeType: "video/mp4", data: "AAAA" },
      ),
      videoMetadata: json,
    },
    ["inlineData"],
  ),
  fc.record({
    fileData: fc.constantFrom(
      { mimeType: "image/png", fileUri: "https://example.org/a" },
      { fileUri: "gs://b/c", mimeType: "audio/wav" },
    ),
  }),
  fc.record({ executableCode: json }),
);

export const geminiRequest = some(
  {
    contents: fc.array(
      some({ role: fc.constantFrom("user", "model"), parts: fc.array(geminiPart, { maxLength: 3 }) }, [
        "parts",
      ]),
      { maxLength: 4 },
    ),
    systemInstruction: some(
      {
        role: fc.constant("user"),
        parts: fc.array(
          chatText.map(({ text }) => ({ text })),
          { maxLength: 2 },
        ),
      },
      ["parts"],
    ),
    generationConfig: some({
      maxOutputTokens: fc.nat(),
      temperature: fc.constantFrom(0, 2),
      candidateCount: fc.constantFrom(1, 2),
      stopSequences: fc.array(fc.string(), { maxLength: 2 }),
      thinkingConfig: some({ thinkingBudget: fc.constantFrom(-1, 0, 512), includeThoughts: fc.boolean() }),
      responseSchema: fc.constant({ type: "OBJECT" }),
      future: fc.constant(0),
    }),
    tools: fc.array(
      fc.oneof(
        fc.record({
          functionDeclarations: fc.array(
            some({ name: word, description: fc.string(), parameters: json }, ["name"]),
            { maxLength: 2 },
          ),
        }),
        fc.constant({ googleSearch: {} }),
      ),
      { maxLength: 2 },
    ),
    toolConfig: fc.constantFrom({ functionCallingConfig: { mode: "AUTO" } }, { retrievalConfig: {} }),
    safetySettings: fc.array(json, { maxLength: 1 }),
    futureField: fc.oneof(fc.boolean(), fc.constant(0), json),
  },
  ["contents"],
);
