// Request rules by the console's calls, on both databases: what is refused when a channel is saved, and rules tried without asking anybody.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTestApp } from "../support/app.ts";
import type { TestApp, TestUser } from "../support/app.ts";
import { startFakeUpstream } from "../support/fake-upstream.ts";
import type { FakeUpstream } from "../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../support/postgres.ts";

interface Sent {
  url: string;
  headers: Record<string, string>;
  body: string;
  rules: string[];
  dropped: string[];
  system_prompt_tokens: number;
  is_repriced: boolean;
  is_converted: boolean;
}

interface Answer<T> {
  success: boolean;
  message: string;
  code?: string;
  field?: string;
  data: T;
}

interface Tried {
  sent: Sent | null;
  refused: { status: number; code: string; message: string } | null;
}

const operations = (...list: unknown[]): string => JSON.stringify({ operations: list });

describe.each(DATABASE_KINDS)("request rules of channels on %s", (database) => {
  let app: TestApp;
  let admin: TestUser;
  let upstream: FakeUpstream;
  let id: number;

  beforeAll(async () => {
    [app, upstream] = await Promise.all([startTestApp({ database }), startFakeUpstream()]);
    admin = await app.createUser({ username: "admin", role: 10 });
    id = await app.createChannel({
      baseUrl: upstream.url,
      models: "gpt-4o",
      key: "sk-secret-of-the-channel",
    });
  });
  afterAll(async () => {
    await app.close();
    upstream.stop();
  });

  const save = (fields: Record<string, unknown>) =>
    app.call<Answer<{ id: number }>>("PUT", "/api/channel/", { id, ...fields }, admin);
  const tryRules = async (fields: Record<string, unknown>, request: Record<string, unknown> = {}) => {
    const path = "/v1/chat/completions";
    const body = JSON.stringify({ model: "gpt-4o", messages: [{ role: "user", content: "hi" }] });
    const answer = await app.call<Answer<Tried>>(
      "POST",
      "/api/channel/try_rules",
      { id, ...fields, request: { path, body, ...request } },
      admin,
    );
    return answer.body;
  };

  test.each([
    ["param_override", '{"operations":[{"mode":"sett","path":"a"}]}', "rule_mode_unknown", "operations[0]"],
    [
      "param_override",
      operations({ mode: "regex_replace", path: "a", from: "(a+)+$" }),
      "rule_pattern_unsafe",
      "(a+)+$",
    ],
    // The browser's engine knows it, the server's, which never runs away, does not.
    [
      "param_override",
      operations({ mode: "regex_replace", path: "a", from: "(?=a)b" }),
      "rule_pattern_unsafe",
      "(?=a)b",
    ],
    ["param_override", operations({ mode: "set", value: 1 }), "rule_field_invalid", "path"],
    ["header_override", '{"Host":"x"}', "rule_header_forbidden", "Host"],
    ["header_override", '{"a":"b\\nc"}', "rule_header_invalid", "header_override"],
    ["header_override", '{"re:(a+)+$":""}', "rule_pattern_unsafe", "(a+)+$"],
    ["settings", '{"allow_speed":"yes"}', "rule_field_invalid", "allow_speed"],
    ["setting", '{"system_prompt":1}', "rule_field_invalid", "system_prompt"],
    ["header_override", "[]", "channel_json_object", "header_override"],
  ])("%s %s is refused: %s", async (field, text, code, named) => {
    const { body } = await save({ [field]: text });
    expect(body).toMatchObject({ success: false, code, field });
    expect(body.message).toContain(named);
    // Tried, it is refused likewise.
    expect(await tryRules({ [field]: text })).toMatchObject({ success: false, code });
  });

  test("what is saved comes back as it was written", async () => {
    const fields = {
      param_override: '{ "operations": [{"mode":"delete","path":"user"}] }',
      header_override: '{"X-A":"{api_key}"}',
      settings: '{"disable_store":true,"unknown":1}',
    };
    expect((await save(fields)).body).toMatchObject({ success: true });
    const { body } = await app.call<Answer<Record<string, unknown>>>(
      "GET",
      `/api/channel/${id}`,
      undefined,
      admin,
    );
    expect(body.data).toMatchObject(fields);
    expect((await save({ param_override: "", header_override: "", settings: "" })).body.success).toBe(true);
  });

  test("a try shows what would leave and which rules acted; nobody is asked, nothing is written", async () => {
    const answer = await tryRules(
      {
        param_override: operations(
          { mode: "set", path: "n", value: 2 },
          { mode: "delete", path: "user" },
          { mode: "set", path: "temperature", value: 0, conditions: { is_retry: true } },
        ),
        header_override: '{"x-key":"{api_key}","x-team":"{client_header:x-team}"}',
        setting: '{"system_prompt":"Be kind."}',
        model_mapping: '{"gpt-4o":"gpt-4o-2024"}',
      },
      { headers: { "x-team": "red", authorization: "Bearer client" } },
    );
    const { sent, refused } = answer.data;
    expect(refused).toBeNull();
    expect(sent).toMatchObject({
      url: `${upstream.url}/v1/chat/completions`,
      rules: ["system_prompt messages", "set n", "set_header x-key", "set_header x-team"],
      dropped: [],
      is_repriced: true,
      is_converted: false,
    });
    expect(sent?.headers).toMatchObject({ "x-key": "<key>", "x-team": "red", authorization: "Bearer <key>" });
    expect(JSON.parse(sent?.body ?? "")).toEqual({
      model: "gpt-4o-2024",
      n: 2,
      messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "hi" },
      ],
    });
    expect(sent?.system_prompt_tokens).toBeGreaterThan(0);
    expect(JSON.stringify(answer)).not.toContain("sk-secret");
    expect(upstream.requests).toHaveLength(0);
    const row = await app.call<Answer<Record<string, unknown>>>(
      "GET",
      `/api/channel/${id}`,
      undefined,
      admin,
    );
    expect(row.body.data["param_override"]).toBe("");
    const again = await tryRules(
      {
        param_override: operations({
          mode: "set",
          path: "temperature",
          value: 0,
          conditions: { is_retry: true },
        }),
      },
      { last_status: 500 },
    );
    expect(again.data.sent?.rules).toEqual(["set temperature"]);
  });

  test("a channel that is not saved yet, of another dialect; and refusals as the client would read them", async () => {
    const converted = await tryRules({ id: undefined, type: 14, base_url: upstream.url });
    expect(converted.data.sent).toMatchObject({ is_converted: true, rules: [] });
    expect(JSON.parse(converted.data.sent?.body ?? "")).toMatchObject({ max_tokens: expect.any(Number) });
    const value = { message: "not here", status_code: 451, code: "elsewhere" };
    const refused = await tryRules({ param_override: operations({ mode: "return_error", value }) });
    expect(refused.data).toEqual({
      sent: null,
      refused: { status: 451, code: "elsewhere", message: "not here" },
    });
    expect((await tryRules({}, { path: "/v1/nothing" })).data.refused?.code).toBe("quote_path_unknown");
    expect((await tryRules({}, { body: "[]" })).data.refused?.code).toBe("invalid_field");
    expect((await tryRules({ id: 999_999 })).code).toBe("record_missing");
    const user = await app.createUser({ username: "user" });
    const asUser = await app.call<Answer<Tried>>(
      "POST",
      "/api/channel/try_rules",
      { request: { path: "", body: "" } },
      user,
    );
    expect(asUser.status).toBe(403);
  });
});
