// What operators see of calls that failed: every refused call of a known key leaves one row with the reason's code, and
// administrators read the provider's own words, masked, where users read the public text.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { LogJson } from "../../../src/core/logs/list.ts";
import { refuse } from "../../support/fake-upstream.ts";
import { DATABASE_KINDS } from "../../support/postgres.ts";
import type { TestUser } from "../../support/app.ts";
import { HI, MODEL, startGateway } from "../support.ts";
import type { Gateway, LogLine } from "../support.ts";

const SECRET = "sk-abcdefghijklmnopqrstuv";

interface LogPage {
  data: { items: LogJson[] };
}

describe.each(DATABASE_KINDS)("on %s", (database) => {
  let g: Gateway;
  let admin: TestUser;
  let serial = 0;
  beforeAll(async () => {
    g = await startGateway({ database });
    admin = await g.app.createUser({ role: 100 });
  });
  afterAll(() => g.close());
  beforeEach(() => g.upstream.reset());

  const errors = async (): Promise<LogLine[]> => (await g.logs()).filter((row) => row.type === 5);

  /** The rows that a call leaves, and its status. */
  async function refusedBy(call: () => Promise<Response>): Promise<{ status: number; rows: LogLine[] }> {
    const before = (await errors()).length;
    const response = await call();
    await response.text();
    return { status: response.status, rows: (await errors()).slice(before) };
  }

  const reasons = (rows: readonly LogLine[]): unknown[] => rows.map((row) => row.other["error_code"]);
  const withKey = async (fields: Record<string, unknown>): Promise<{ authorization: string }> => {
    const { key } = await g.app.createToken(g.user.id, fields);
    return { authorization: `Bearer ${key}` };
  };
  const play = (body: object): Promise<Response> =>
    fetch(`${g.app.url}/pg/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...g.user.headers },
      body: JSON.stringify(body),
    });

  test("an unknown model leaves one row: whose key, which model, which reason, what it cost", async () => {
    const { status, rows } = await refusedBy(() => g.chat({ model: "nobody-has-it" }));
    expect(status).toBe(404);
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject({
      type: 5,
      quota: 0,
      channelId: 0,
      modelName: "nobody-has-it",
      group: "default",
      userId: g.user.id,
      tokenId: g.tokenId,
      other: { error_code: "model_not_found", error_type: "invalid_request_error", status_code: 404 },
    });
    expect(rows[0]?.content).toStartWith("The model 'nobody-has-it' does not exist (request id: ");
  });

  test.each<[string, () => Promise<Response>, string]>([
    ["a broken body", () => g.post("/v1/chat/completions", "{oops"), "invalid_json"],
    ["no messages", () => g.chat({ messages: [] }), "field_required"],
    [
      "a forbidden word",
      () => g.chat({ messages: [{ role: "user", content: "test_sensitive" }] }),
      "sensitive_words_detected",
    ],
    [
      "Anthropic's dialect",
      () => g.post("/v1/messages", { model: "none", max_tokens: 5, messages: HI }),
      "model_not_found",
    ],
    [
      "Gemini's dialect",
      () => g.post("/v1beta/models/none:generateContent", { contents: [] }),
      "model_not_found",
    ],
    ["a count of tokens", () => g.post("/v1/messages/count_tokens", { model: MODEL }), "field_required"],
    ["the playground", () => play({ model: "none", messages: HI }), "model_not_found"],
    ["a drawing", () => g.post("/mj/submit/imagine", {}), "task_request_invalid"],
    [
      "a song of a model that nobody has",
      () => g.post("/suno/submit/music", { prompt: "x" }),
      "model_not_found",
    ],
    ["a picture", () => g.post("/v1/images/generations", { model: "none", prompt: "x" }), "model_not_found"],
    [
      "a look at an unknown model",
      () => fetch(`${g.app.url}/v1/models/none`, { headers: { authorization: `Bearer ${g.key}` } }),
      "model_not_found",
    ],
    ["a call that is not served", () => g.post("/v1/images/variations", {}), "api_not_implemented"],
    [
      "a handshake that is none",
      () => fetch(`${g.app.url}/v1/realtime?model=none`, { headers: { authorization: `Bearer ${g.key}` } }),
      "websocket_required",
    ],
  ])("%s", async (_, call, reason) => {
    const { status, rows } = await refusedBy(call);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(reasons(rows)).toEqual([reason]);
  });

  test("what a key may not do is told to its owner: model, address, balance, time, the key itself", async () => {
    const cases: [Record<string, unknown>, string][] = [
      [{ modelLimitsEnabled: true, modelLimits: "other" }, "token_model_forbidden"],
      [{ allowIps: "10.1.2.3" }, "ip_not_allowed"],
      [{ remainQuota: 3 }, "token_quota_short"],
      [{ remainQuota: 0 }, "token_exhausted"],
      [{ expiredTime: 1 }, "token_expired"],
      [{ status: 2 }, "token_unusable"],
    ];
    for (const [fields, reason] of cases) {
      const headers = await withKey(fields);
      const { rows } = await refusedBy(() => g.chat({ max_tokens: 100_000 }, headers));
      expect(reasons(rows)).toEqual([reason]);
      expect(rows[0]).toMatchObject({ userId: g.user.id });
    }
  });

  test("no price, a field that nobody can carry, and no balance leave theirs", async () => {
    const model = `refused-${++serial}`;
    await g.app.createChannel({ baseUrl: g.upstream.url, models: model, type: 14 });
    expect(reasons((await refusedBy(() => g.chat({ model }))).rows)).toEqual(["model_not_priced"]);
    await g.setOption("SelfUseModeEnabled", "true");
    const many = await refusedBy(() => g.chat({ model, n: 3 }));
    await g.setOption("SelfUseModeEnabled", "false");
    expect([many.status, reasons(many.rows)]).toEqual([400, ["unsupported_field"]]);
    const poor = await g.app.createUser();
    const { key } = await g.app.createToken(poor.id);
    const broke = await refusedBy(() => g.chat({}, { authorization: `Bearer ${key}` }));
    expect(reasons(broke.rows)).toEqual(["user_quota_empty"]);
  });

  test("a failed attempt leaves its own row, and the call no second one", async () => {
    const model = `refused-${++serial}`;
    await g.app.createChannel({ baseUrl: g.upstream.url, models: model });
    await g.setOption("SelfUseModeEnabled", "true");
    g.upstream.script(refuse(500));
    const { rows } = await refusedBy(() => g.chat({ model }));
    await g.setOption("SelfUseModeEnabled", "false");
    expect(reasons(rows)).toEqual(["fake_500"]);
  });

  test("nobody's refusals leave none: wrong keys, and everything while the log of errors is off", async () => {
    const stranger = await refusedBy(() => g.chat({}, { authorization: "Bearer sk-nobody" }));
    expect([stranger.status, stranger.rows]).toEqual([401, []]);
    await g.setOption("ErrorLogEnabled", "false");
    const quiet = await refusedBy(() => g.chat({ model: "nobody-has-it" }));
    await g.setOption("ErrorLogEnabled", "true");
    expect([quiet.status, quiet.rows]).toEqual([404, []]);
  });

  test("a key that is refused a hundred times leaves ten rows of each reason, and the count of the rest", async () => {
    const headers = await withKey({});
    const flood = async (fields: Record<string, unknown>) =>
      Promise.all(Array.from({ length: 50 }, async () => (await g.chat(fields, headers)).text()));
    const before = (await errors()).length;
    await flood({ model: "nobody-has-it" });
    await flood({ messages: [] });
    const rows = (await errors()).slice(before);
    expect(rows).toHaveLength(20);
    g.app.services.gateway.relay.parts.errorRows.close();
    const counts = (await errors()).slice(before + 20).map((row) => row.other["more_errors"]);
    expect(counts.filter((count) => count === 40)).toHaveLength(2);
  });

  describe("the provider's words", () => {
    const message = `Incorrect API key provided: ${SECRET}. Ask https://provider.example/keys`;
    const masked = "Incorrect API key provided: [key]. Ask [url]";
    const read = async (path: string, as: TestUser) => {
      await g.app.deps.ledger.flush();
      const { body, text } = await g.app.call<LogPage>("GET", path, undefined, as);
      return { items: body.data.items, text };
    };

    async function failedModel(): Promise<string> {
      const model = `refused-${++serial}`;
      await g.app.createChannel({ baseUrl: g.upstream.url, models: model });
      await g.setOption("SelfUseModeEnabled", "true");
      g.upstream.script(
        refuse(401, { error: { message, type: "invalid_request_error", code: "invalid_api_key" } }),
      );
      const response = await g.chat({ model });
      expect([response.status, await response.text()]).toEqual([
        502,
        expect.not.stringContaining("Incorrect"),
      ]);
      await g.setOption("SelfUseModeEnabled", "false");
      return model;
    }

    test("are an administrator's content; the owner reads the public text, and nothing of them", async () => {
      const model = await failedModel();
      const shown = await read(`/api/log/?type=5&model_name=${model}`, admin);
      expect(shown.items.map(({ content }) => content)).toEqual([masked]);
      expect(shown.text).not.toContain(SECRET);
      const own = await read(`/api/log/self?type=5&model_name=${model}`, g.user);
      expect(own.items).toHaveLength(1);
      expect(own.items[0]?.content).toStartWith("上游拒绝了网关的凭证");
      const byKey = await fetch(`${g.app.url}/api/log/token?key=${g.key}`);
      const found = await g.app.call("GET", "/api/log/self/search?keyword=5", undefined, g.user);
      for (const text of [own.text, await byKey.text(), found.text]) {
        expect(text).toContain(model);
        expect(text).not.toMatch(/Incorrect|upstream_text|admin_info|provider\.example/);
      }
      const search = await g.app.call<{ data: LogJson[] }>(
        "GET",
        "/api/log/search?keyword=5",
        undefined,
        admin,
      );
      expect(search.body.data.find((row) => row.model_name === model)?.content).toBe(masked);
      const byWords = await g.app.call<{ data: LogJson[] }>(
        "GET",
        "/api/log/search?keyword=incorrect api",
        undefined,
        admin,
      );
      expect(byWords.body.data.map((row) => row.model_name)).toContain(model);
    });

    test("stand behind the public text where the provider sent no error object", async () => {
      const model = `refused-${++serial}`;
      await g.app.createChannel({ baseUrl: g.upstream.url, models: model });
      await g.setOption("SelfUseModeEnabled", "true");
      g.upstream.script(refuse(502, "<html>nginx at 10.0.0.7</html>"));
      await (await g.chat({ model })).text();
      await g.setOption("SelfUseModeEnabled", "false");
      const shown = await read(`/api/log/?type=5&model_name=${model}`, admin);
      expect(shown.items[0]?.content).toMatch(/^上游.*: <html>nginx at \[address\]<\/html>$/);
      const own = await read(`/api/log/self?type=5&model_name=${model}`, g.user);
      expect(own.items[0]?.content).toMatch(/^上游.*\(request id: \w+\)$/);
    });

    test("stand in the row that counts the rest, too", async () => {
      const model = `refused-${++serial}`;
      await g.app.createChannel({ baseUrl: g.upstream.url, models: model });
      await g.setOption("SelfUseModeEnabled", "true");
      g.upstream.always(refuse(418, { error: { message: "I am a teapot", type: "teapot_error" } }));
      const headers = await withKey({ name: `teapot ${database}` });
      for (let i = 0; i < 12; i++) await (await g.chat({ model }, headers)).text();
      g.upstream.always(undefined);
      await g.setOption("SelfUseModeEnabled", "false");
      g.app.services.gateway.relay.parts.errorRows.close();
      const shown = await read(`/api/log/?type=5&page_size=20&token_name=teapot ${database}`, admin);
      expect(shown.items).toHaveLength(11);
      expect(shown.items[0]?.content).toMatch(/2 .*I am a teapot$/);
    });

    test("are what a test of the channel says", async () => {
      const id = await g.app.createChannel({ baseUrl: g.upstream.url, models: `refused-${++serial}` });
      g.upstream.script(refuse(400, [{ error: { message, status: "INVALID_ARGUMENT" } }]));
      const { body } = await g.app.call<{ message: string }>(
        "GET",
        `/api/channel/test/${id}`,
        undefined,
        admin,
      );
      expect(body.message).toBe(masked);
    });
  });
});
