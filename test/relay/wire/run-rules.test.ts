// The language of request rules by itself: every mode, its paths and conditions, what is refused when it is read, and its limits.
import { describe, expect, test } from "bun:test";
import { isSafePattern } from "../../../src/shared/safe-pattern.ts";
import { readHeaderRules } from "../../../src/shared/header-rules.ts";
import { MAX_OPERATIONS, readRequestRules, RULE_MODES } from "../../../src/shared/request-rules.ts";
import type { RuleFacts } from "../../../src/relay/wire/rule-conditions.ts";
import { overrideHeaders } from "../../../src/relay/wire/rule-headers.ts";
import { runRules } from "../../../src/relay/wire/run-rules.ts";
import type { RuleRun } from "../../../src/relay/wire/run-rules.ts";
import { Failure } from "../../../src/shared/failures.ts";

type Json = Record<string, unknown>;

const FACTS: RuleFacts = {
  model: "gpt-4o-2024",
  original_model: "gpt-4o",
  upstream_model: "gpt-4o-2024",
  user_id: 7,
  user_group: "vip",
  token_group: "",
  using_group: "default",
  request_path: "/v1/chat/completions",
  retry_index: 1,
  is_retry: true,
  last_error: { status_code: 429, code: "rate_limit", type: "limit", message: "slow down" },
  is_channel_test: false,
};

interface Outcome extends RuleRun {
  headers: Record<string, string>;
}

function run(
  stored: Json,
  body: Json,
  headers: Record<string, string> = {},
  client: Record<string, string> = {},
): Outcome {
  const { rules, problem } = readRequestRules(stored);
  if (!rules) throw new Error(JSON.stringify(problem));
  const frozen = JSON.stringify(body);
  const path = { headers: { ...headers }, client: new Headers(client), key: "sk-up" };
  const result = runRules(rules, body, path, { facts: FACTS });
  // Whatever it does, attempts share their input.
  expect(JSON.stringify(body)).toBe(frozen);
  return { ...result, headers: path.headers };
}

const one = (operation: Json, body: Json): Json => run({ operations: [operation] }, body).body;

/** Mode, the operation without it, what comes in, what leaves. */
const MODES: readonly [mode: string, operation: Json, before: Json, after: Json][] = [
  ["set", { path: "temperature", value: 0 }, {}, { temperature: 0 }],
  ["set", { path: "a.b.c", value: [1] }, { a: { x: 1 } }, { a: { x: 1, b: { c: [1] } } }],
  [
    "set",
    { path: "messages.-1.name", value: "x" },
    { messages: [{}, {}] },
    { messages: [{}, { name: "x" }] },
  ],
  [
    "set",
    { path: "tools.*.strict", value: true },
    { tools: [{}, { strict: false }] },
    { tools: [{ strict: true }, { strict: true }] },
  ],
  ["set", { path: "top_p", value: 1, keep_origin: true }, { top_p: 0.5 }, { top_p: 0.5 }],
  ["set", { path: "list.5", value: 1 }, { list: [0] }, { list: [0] }],
  ["set", { path: "list.1", value: 1 }, { list: [0] }, { list: [0, 1] }],
  ["set", { path: "text.a", value: 1 }, { text: "a" }, { text: "a" }],
  ["set", { path: "a\\.b", value: 1 }, {}, { "a.b": 1 }],
  ["delete", { path: "stop" }, { stop: "x", n: 1 }, { n: 1 }],
  ["delete", { path: "messages.0" }, { messages: [1, 2] }, { messages: [2] }],
  [
    "delete",
    { path: "tools.*.cache_control" },
    { tools: [{ a: 1, cache_control: {} }] },
    { tools: [{ a: 1 }] },
  ],
  ["delete", { path: "list.*" }, { list: [1, 2, 3] }, { list: [] }],
  ["delete", { path: "nothing.here" }, { n: 1 }, { n: 1 }],
  ["copy", { from: "user", to: "metadata.user" }, { user: "u" }, { user: "u", metadata: { user: "u" } }],
  [
    "copy",
    { from: "user", to: "safety", keep_origin: true },
    { user: "u", safety: "s" },
    { user: "u", safety: "s" },
  ],
  [
    "move",
    { from: "max_tokens", to: "max_completion_tokens" },
    { max_tokens: 9 },
    { max_completion_tokens: 9 },
  ],
  ["move", { from: "gone", to: "there" }, { n: 1 }, { n: 1 }],
  ["move", { from: "a", to: "text.b" }, { a: 1, text: "t" }, { a: 1, text: "t" }],
  ["append", { path: "stop", value: ["b"] }, { stop: ["a"] }, { stop: ["a", "b"] }],
  ["append", { path: "prompt", value: "!" }, { prompt: "hi" }, { prompt: "hi!" }],
  [
    "append",
    { path: "metadata", value: { b: 2 } },
    { metadata: { a: 1, b: 1 } },
    { metadata: { a: 1, b: 2 } },
  ],
  [
    "append",
    { path: "metadata", value: { b: 2 }, keep_origin: true },
    { metadata: { b: 1 } },
    { metadata: { b: 1 } },
  ],
  ["append", { path: "stop", value: ["b"] }, {}, { stop: ["b"] }],
  ["append", { path: "n", value: "x" }, { n: 1 }, { n: 1 }],
  [
    "prepend",
    { path: "messages", value: { role: "system" } },
    { messages: [1] },
    { messages: [{ role: "system" }, 1] },
  ],
  ["prepend", { path: "model", value: "openai/" }, { model: "gpt" }, { model: "openai/gpt" }],
  ["trim_prefix", { path: "model", value: "openai/" }, { model: "openai/gpt" }, { model: "gpt" }],
  ["trim_suffix", { path: "model", value: "-high" }, { model: "o3-high" }, { model: "o3" }],
  ["ensure_prefix", { path: "model", value: "o/" }, { model: "o/a" }, { model: "o/a" }],
  ["ensure_prefix", { path: "model", value: "o/" }, { model: "a" }, { model: "o/a" }],
  ["ensure_suffix", { path: "model", value: ":free" }, { model: "a" }, { model: "a:free" }],
  ["trim_space", { path: "user" }, { user: " a\n" }, { user: "a" }],
  ["to_lower", { path: "model" }, { model: "GPT" }, { model: "gpt" }],
  ["to_upper", { path: "size" }, { size: "hd" }, { size: "HD" }],
  ["replace", { path: "model", from: "-", to: "$&" }, { model: "a-b-c" }, { model: "a$&b$&c" }],
  ["replace", { path: "model", from: "-" }, { model: "a-b" }, { model: "ab" }],
  [
    "regex_replace",
    { path: "model", from: "(?i)^GPT-(\\d)o$", to: "openai/gpt-$1o" },
    { model: "gpt-4o" },
    { model: "openai/gpt-4o" },
  ],
  ["regex_replace", { path: "n", from: "1", to: "2" }, { n: 1 }, { n: 1 }],
  [
    "prune_objects",
    { value: "redacted_thinking" },
    { messages: [{ content: [{ type: "text" }, { type: "redacted_thinking" }] }] },
    { messages: [{ content: [{ type: "text" }] }] },
  ],
  [
    "prune_objects",
    { path: "tools", value: { where: { "function.name": "x" }, recursive: false } },
    { tools: [{ function: { name: "x" } }, { a: 1 }], keep: { function: { name: "x" } } },
    { tools: [{ a: 1 }], keep: { function: { name: "x" } } },
  ],
  [
    "prune_objects",
    {
      value: {
        logic: "OR",
        conditions: [
          { path: "a", value: 1 },
          { path: "b", value: 1 },
        ],
      },
    },
    { x: { a: 1 }, y: { b: 1 }, z: { a: 2 } },
    { z: { a: 2 } },
  ],
];

test.each([...MODES])("%s %j: %j leaves as %j", (mode, operation, before, after) => {
  expect(one({ mode, ...operation }, before)).toEqual(after);
});

test("only what changed something is told, by mode and path, without what it wrote", () => {
  const { acts } = run(
    {
      temperature: 0.125,
      seed: 1,
      operations: [
        { mode: "delete", path: "stop" },
        { mode: "set", path: "user", value: "secret-text" },
        { mode: "move", from: "a", to: "b" },
      ],
    },
    { seed: 1, a: 2 },
  );
  expect(acts).toEqual([
    { mode: "set", path: "temperature" },
    { mode: "set", path: "user" },
    { mode: "move", path: "a → b" },
  ]);
});

describe("conditions", () => {
  const acts = (more: Json, body: Json = {}, client: Record<string, string> = {}): boolean =>
    run({ operations: [{ mode: "set", path: "hit", value: true, ...more }] }, body, {}, client).body[
      "hit"
    ] === true;
  const CASES: readonly [what: string, more: Json, body: Json, expected: boolean][] = [
    ["full", { conditions: [{ path: "model", mode: "full", value: "a" }] }, { model: "a" }, true],
    ["full is typed", { conditions: [{ path: "n", value: "1" }] }, { n: 1 }, false],
    ["prefix", { conditions: [{ path: "model", mode: "prefix", value: "gpt-" }] }, { model: "gpt-4" }, true],
    ["suffix", { conditions: [{ path: "model", mode: "suffix", value: "-4" }] }, { model: "gpt-4" }, true],
    [
      "contains",
      { conditions: [{ path: "model", mode: "contains", value: "t-" }] },
      { model: "gpt-4" },
      true,
    ],
    [
      "contains in a list",
      { conditions: [{ path: "stop", mode: "contains", value: "x" }] },
      { stop: ["x"] },
      true,
    ],
    ["gt", { conditions: [{ path: "n", mode: "gt", value: 1 }] }, { n: 1 }, false],
    ["gte", { conditions: [{ path: "n", mode: "gte", value: 1 }] }, { n: 1 }, true],
    ["lt", { conditions: [{ path: "n", mode: "lt", value: 1 }] }, { n: 1 }, false],
    ["lte", { conditions: [{ path: "n", mode: "lte", value: 1 }] }, { n: 1 }, true],
    [
      "any of a star",
      { conditions: [{ path: "tools.*.type", value: "b" }] },
      { tools: [{ type: "a" }, { type: "b" }] },
      true,
    ],
    ["inverted", { conditions: [{ path: "n", value: 1, invert: true }] }, { n: 2 }, true],
    ["missing", { conditions: [{ path: "x", value: 1 }] }, {}, false],
    ["missing, inverted", { conditions: [{ path: "x", value: 1, invert: true }] }, {}, false],
    ["missing counts", { conditions: [{ path: "x", value: 1, pass_missing_key: true }] }, {}, true],
    ["OR is meant where nothing is said", { conditions: { model: "b", n: 1 } }, { n: 1 }, true],
    ["AND", { logic: "AND", conditions: { model: "b", n: 1 } }, { n: 1 }, false],
    ["the model by its facts where the body has none", { conditions: { model: "gpt-4o-2024" } }, {}, true],
    ["original model", { conditions: { original_model: "gpt-4o" } }, {}, true],
    [
      "user",
      { logic: "AND", conditions: { user_id: 7, user_group: "vip", using_group: "default" } },
      {},
      true,
    ],
    ["path", { conditions: { request_path: "/v1/chat/completions" } }, {}, true],
    [
      "retry",
      { logic: "AND", conditions: { is_retry: true, retry_index: 1, "last_error.status_code": 429 } },
      {},
      true,
    ],
    ["test", { conditions: { is_channel_test: true } }, {}, false],
    ["a group that the body claims", { conditions: { user_group: "vip" } }, { user_group: "poor" }, true],
    ["a user that the body claims", { conditions: { user_id: 1 } }, { user_id: 1 }, false],
    [
      "headers that the body claims",
      { conditions: { "request_headers.x-team": "red" } },
      { request_headers: { "x-team": "red" }, "request_headers.x-team": "red" },
      false,
    ],
    ["the model of the body that is sent", { conditions: { model: "b" } }, { model: "b" }, true],
  ];
  test.each([...CASES])("%s", (_, more, body, expected) => {
    expect(acts(more, body)).toBe(expected);
  });

  test("each fact is the call's, whatever stands in the body under its name", () => {
    for (const name of Object.keys(FACTS)) {
      if (name === "model") continue;
      const claimed = { ...FACTS, [name]: "claimed" };
      const conditions = [{ path: name, mode: "full", value: "claimed" }];
      expect({ name, acts: acts({ conditions }, claimed) }).toEqual({ name, acts: false });
    }
  });

  test("before a first failure there is no last error: the body's is none either", () => {
    const condition = { path: "last_error.code", mode: "full", value: "x" };
    const { rules } = readRequestRules({
      operations: [{ mode: "set", path: "hit", value: true, conditions: [condition] }],
    });
    const { last_error: _, ...facts } = FACTS;
    const path = { headers: {}, client: new Headers(), key: "" };
    const body = { last_error: { code: "x" } };
    expect(runRules(rules as NonNullable<typeof rules>, body, path, { facts }).body).toEqual(body);
  });

  test("a model in the body is the client's word where the address names it", () => {
    const operation = { mode: "set", path: "hit", value: true, conditions: { model: "gpt-4o-2024" } };
    const { rules } = readRequestRules({ operations: [operation] });
    const about = { facts: FACTS, isModelInAddress: true };
    const path = { headers: {}, client: new Headers(), key: "" };
    const run = runRules(rules as NonNullable<typeof rules>, { model: "other" }, path, about);
    expect(run.body).toEqual({ model: "other", hit: true });
  });

  test("ask for headers of the client, but never for its key", () => {
    const client = { "x-team": "red", authorization: "Bearer sk-client" };
    expect(acts({ conditions: { "request_headers.x-team": "red" } }, {}, client)).toBe(true);
    expect(
      acts(
        { conditions: [{ path: "request_headers.authorization", mode: "prefix", value: "" }] },
        {},
        client,
      ),
    ).toBe(false);
  });
});

describe("headers", () => {
  const CLIENT = {
    authorization: "Bearer sk-client",
    cookie: "session=1",
    "x-team": "{api_key}",
    "x-trace-id": "t1",
    "x-forwarded-for": "10.0.0.1",
    "anthropic-beta": "a,b,c",
  };
  const after = (operation: Json, headers: Record<string, string> = {}) =>
    run({ operations: [operation] }, {}, headers, CLIENT).headers;

  test("set, with the channel's key and the client's text as text", () => {
    expect(after({ mode: "set_header", path: "X-Key", value: "k {api_key}" })).toEqual({
      "x-key": "k sk-up",
    });
    expect(after({ mode: "set_header", path: "x-t", value: "{client_header:X-Team}/{api_key}" })).toEqual({
      "x-t": "{api_key}/sk-up",
    });
    expect(after({ mode: "set_header", path: "x-t", value: "{client_header:absent}" })).toEqual({});
    expect(after({ mode: "set_header", path: "x-t", value: "{client_header:authorization}" })).toEqual({});
    expect(after({ mode: "set_header", path: "a", value: "2", keep_origin: true }, { a: "1" })).toEqual({
      a: "1",
    });
  });

  test("lists of names are changed one by one", () => {
    const value = { b: null, c: "d", $append: ["e"] };
    expect(
      after({ mode: "set_header", path: "anthropic-beta", value }, { "anthropic-beta": "a,b,c" }),
    ).toEqual({
      "anthropic-beta": "a,d,e",
    });
    const only = { a: "a", $keep_only_declared: true };
    expect(
      after({ mode: "set_header", path: "anthropic-beta", value: only }, { "anthropic-beta": "a,b" }),
    ).toEqual({
      "anthropic-beta": "a",
    });
  });

  test("delete, copy, move, pass", () => {
    expect(after({ mode: "delete_header", path: "a" }, { a: "1" })).toEqual({});
    expect(after({ mode: "copy_header", from: "x-trace-id", to: "trace" })).toEqual({ trace: "t1" });
    expect(after({ mode: "move_header", from: "a", to: "b" }, { a: "1" })).toEqual({ b: "1" });
    expect(after({ mode: "copy_header", from: "authorization", to: "b" })).toEqual({});
    expect(
      after({ mode: "pass_headers", value: "x-trace-id, cookie, authorization, x-forwarded-for" }),
    ).toEqual({
      "x-trace-id": "t1",
    });
  });

  test("fields and headers fill each other", () => {
    const sync = { mode: "sync_fields", from: "header:x-trace-id", to: "json:prompt_cache_key" };
    expect(run({ operations: [sync] }, {}, {}, CLIENT).body).toEqual({ prompt_cache_key: "t1" });
    expect(run({ operations: [sync] }, { prompt_cache_key: "k" }).headers).toEqual({ "x-trace-id": "k" });
    expect(run({ operations: [sync] }, { prompt_cache_key: "k" }, {}, CLIENT).acts).toEqual([]);
  });

  test("header_override: set, take out, pass all or by pattern; keys and connections stay", () => {
    const apply = (
      stored: Json,
      headers: Record<string, string>,
      client: Record<string, string> = CLIENT,
    ) => {
      const { rules, problem } = readHeaderRules(stored);
      if (!rules) throw new Error(JSON.stringify(problem));
      const path = { headers: { ...headers }, client: new Headers(client), key: "sk-up" };
      return { acts: overrideHeaders(path, rules), headers: path.headers };
    };
    expect(apply({ "anthropic-beta": "", "X-A": "1" }, { "anthropic-beta": "x" })).toEqual({
      acts: [
        { mode: "delete_header", path: "anthropic-beta" },
        { mode: "set_header", path: "x-a" },
      ],
      headers: { "x-a": "1" },
    });
    const own = { authorization: "Bearer sk-up", "x-trace-id": "ours" };
    expect(apply({ "*": "" }, own).headers).toEqual({
      ...own,
      "x-team": "{api_key}",
      "anthropic-beta": "a,b,c",
    });
    expect(apply({ "re:^x-t.*d$": "" }, {}).headers).toEqual({ "x-trace-id": "t1" });
    const closed = { connection: "x-trace-id", "x-trace-id": "t1", "x-team": "a" };
    expect(apply({ "*": "" }, {}, closed).headers).toEqual({ "x-team": "a" });
    // A key that no header can hold fails its own channel.
    const bad = { headers: {}, client: new Headers(), key: "a\nb" };
    const { rules } = readHeaderRules({ "x-a": "{api_key}" });
    expect(() => rules && overrideHeaders(bad, rules)).toThrow(Failure);
  });
});

test("return_error ends the request with what its operator wrote", () => {
  const value = {
    message: "no pictures here",
    status_code: 451,
    code: "no_pictures",
    type: "policy",
    skip_retry: false,
  };
  let failure: unknown;
  try {
    run({ operations: [{ mode: "return_error", value, conditions: { n: 1 } }] }, { n: 1 });
  } catch (error) {
    failure = error;
  }
  expect(failure).toMatchObject({
    code: "rule_refused",
    status: 451,
    text: "no pictures here",
    wireCode: "no_pictures",
    type: "policy",
    retryable: true,
  });
  expect(run({ operations: [{ mode: "return_error", value, conditions: { n: 2 } }] }, { n: 1 }).acts).toEqual(
    [],
  );
});

describe("what is refused when it is read, by its place", () => {
  const deep = Array.from({ length: 17 }, (_, index) => ({ path: `a${index}`, value: 1 }));
  const CASES: readonly [what: string, operations: unknown, code: string, place: string][] = [
    ["no list", {}, "rules_not_list", "operations"],
    ["no object", ["set"], "rules_not_list", "operations[0]"],
    [
      "an unknown mode",
      [{ mode: "set", path: "a", value: 1 }, { mode: "sett" }],
      "rule_mode_unknown",
      "operations[1]",
    ],
    ["no mode", [{ path: "a" }], "rule_mode_unknown", "operations[0]"],
    ["no path", [{ mode: "delete" }], "rule_field_invalid", "operations[0]"],
    [
      "a path into prototypes",
      [{ mode: "set", path: "__proto__.a", value: 1 }],
      "rule_field_invalid",
      "operations[0]",
    ],
    ["no value", [{ mode: "set", path: "a" }], "rule_field_invalid", "operations[0]"],
    ["no text", [{ mode: "trim_prefix", path: "a", value: 1 }], "rule_field_invalid", "operations[0]"],
    ["unclear logic", [{ mode: "delete", path: "a", logic: "XOR" }], "rule_field_invalid", "operations[0]"],
    [
      "a condition's mode",
      [{ mode: "delete", path: "a", conditions: [{ path: "a", mode: "like", value: 1 }] }],
      "rule_mode_unknown",
      "operations[0].conditions[0]",
    ],
    [
      "a comparison with a text",
      [{ mode: "delete", path: "a", conditions: [{ path: "a", mode: "gt", value: "1" }] }],
      "rule_field_invalid",
      "operations[0].conditions[0]",
    ],
    [
      "17 conditions",
      [{ mode: "delete", path: "a", conditions: deep }],
      "rules_many",
      "operations[0].conditions",
    ],
    [
      "a nested quantifier",
      [{ mode: "regex_replace", path: "a", from: "(a+)+$", to: "" }],
      "rule_pattern_unsafe",
      "operations[0]",
    ],
    [
      "a header of the connection",
      [{ mode: "set_header", path: "Host", value: "x" }],
      "rule_header_forbidden",
      "operations[0]",
    ],
    [
      "a cookie",
      [{ mode: "copy_header", from: "a", to: "cookie" }],
      "rule_header_forbidden",
      "operations[0]",
    ],
    ["an error without words", [{ mode: "return_error", value: {} }], "rule_field_invalid", "operations[0]"],
    [
      "an error that is none",
      [{ mode: "return_error", value: { message: "a", status_code: 200 } }],
      "rule_field_invalid",
      "operations[0]",
    ],
    [
      "sides that are none",
      [{ mode: "sync_fields", from: "json:a", to: "b" }],
      "rule_field_invalid",
      "operations[0]",
    ],
  ];
  test.each([...CASES])("%s", (_, operations, code, place) => {
    const { problem } = readRequestRules({ operations });
    expect(problem).toMatchObject({ code, params: { place } });
  });

  test("65 operations, and headers that no rule may write", () => {
    const operations = Array.from({ length: MAX_OPERATIONS + 1 }, () => ({ mode: "delete", path: "a" }));
    expect(readRequestRules({ operations }).problem?.code).toBe("rules_many");
    expect(readRequestRules({ operations: operations.slice(1) }).rules?.operations).toHaveLength(
      MAX_OPERATIONS,
    );
    for (const name of [
      "Host",
      "content-length",
      "Cookie",
      "x-forwarded-for",
      "new-api-user",
      "te",
      "Transfer-Encoding",
    ])
      expect(readHeaderRules({ [name]: "x" }).problem?.code).toBe("rule_header_forbidden");
    expect(readHeaderRules({ "a b": "x" }).problem?.code).toBe("rule_header_invalid");
    expect(readHeaderRules({ a: 1 }).problem?.code).toBe("rule_header_invalid");
    expect(readHeaderRules({ a: "x\r\ny: z" }).problem?.code).toBe("rule_header_invalid");
    expect(readHeaderRules({ "re:(a+)+$": "" }).problem?.code).toBe("rule_pattern_unsafe");
  });

  test("each mode of the table is one that was tried here", () => {
    const tried = new Set([
      ...MODES.map(([mode]) => mode),
      ..."set_header delete_header copy_header move_header pass_headers sync_fields return_error".split(" "),
    ]);
    expect(RULE_MODES.filter((mode) => !tried.has(mode))).toEqual([]);
  });
});

test("patterns: short, no repetition inside a repetition, no looking back", () => {
  const good = ["^gpt-(4|5)", "a+b*c{2,3}", "(?i)claude", "[a+]+", "(?:ab)?c+", "(abc){1}", "\\(a+\\)"];
  const bad = [
    "(a+)+$",
    "(a*)*",
    "((a)+)+",
    "(a{1,9})*",
    "(a)\\1",
    "(?<x>a)\\k<x>",
    "a".repeat(201),
    "",
    "(",
    "(a+|b)+",
  ];
  expect(good.filter((pattern) => !isSafePattern(pattern))).toEqual([]);
  expect(bad.filter(isSafePattern)).toEqual([]);
});

test("patterns run in linear time and leave long texts alone", () => {
  const slow = { mode: "regex_replace", path: "t", from: "\\s*\\s*\\s*x$", to: "" };
  const startedMs = performance.now();
  const spaces = " ".repeat(60_000);
  expect(one(slow, { t: `${spaces}y` })).toEqual({ t: `${spaces}y` });
  // Backtracking would take hours.
  expect(performance.now() - startedMs).toBeLessThan(20_000);
  const long = `${"a".repeat(70_000)}x`;
  expect(one({ ...slow, from: "x$" }, { t: long })).toEqual({ t: long });
});
