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
