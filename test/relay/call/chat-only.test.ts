// Guarantees for Responses clients at upstreams that have chat completions only, behind a type that stands for both: the
// call that finds it out is answered, the channel is not asked again until it is edited, and nobody is blamed.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import type { Script } from "../../support/fake-upstream.ts";
import { answerOf } from "../../support/dialect-upstream.ts";
import { dataLines, HI, MODEL, startGateway } from "../support.ts";
import type { Gateway } from "../support.ts";

let g: Gateway;
beforeAll(async () => {
  g = await startGateway({ quota: 1_000_000_000 });
  await g.setOption("SelfUseModeEnabled", "true");
});
afterAll(() => g.close());
beforeEach(async () => {
  g.upstream.reset();
  await edit();
});

let edits = 0;
/** Saves the channel again, as an administrator does. */
async function edit(setting: Record<string, unknown> = {}): Promise<void> {
  const { db, routing } = g.app.deps;
  const name = `edit ${++edits}`;
  await db.orm.update(db.t.channels).set({ name, setting: JSON.stringify(setting) });
  await routing.refresh([g.channelId]);
}

const json = (status: number, body: unknown): Script => ({
  status,
  headers: { "content-type": "application/json" },
  steps: [typeof body === "string" ? body : JSON.stringify(body)],
});

/** What servers without the Responses API answer to it; chat completions work. */
function chatServer(answer: Script): void {
  g.upstream.always((request) =>
    request.url.startsWith("/v1/responses") ? answer : answerOf("openai-chat")(request),
  );
}

const ask = (fields: Record<string, unknown> = {}) =>
  g.post("/v1/responses", { model: MODEL, input: "hi", ...fields });
const asked = (): string[] => g.upstream.requests.map(({ url }) => url);

const NO_ROUTE: Readonly<Record<string, Script>> = {
  "vLLM, FastAPI": json(404, { detail: "Not Found" }),
  "llama.cpp": json(404, { error: { code: 404, message: "File Not Found", type: "not_found_error" } }),
  "LM Studio": json(200, { error: "Unexpected endpoint or method. (POST /v1/responses)" }),
  "an OpenAI-shaped gateway": json(404, {
    error: {
      message: "Invalid URL (POST /v1/responses)",
      type: "invalid_request_error",
      param: null,
      code: null,
    },
  }),
  Ollama: json(404, "404 page not found"),
  nginx: json(404, '<html><head><title>404 Not Found</title></head><body id="model">nginx</body></html>'),
  "another method": json(405, { detail: "Method Not Allowed" }),
  "no words": json(404, ""),
};

describe("an upstream without the Responses API", () => {
  for (const [name, answer] of Object.entries(NO_ROUTE)) {
    for (const stream of [false, true]) {
      test(`${name}, ${stream ? "streamed" : "whole"}: the same call is answered, and the next asks chat at once`, async () => {
        chatServer(answer);
        const response = await ask({ stream });
        const text = await response.text();
        expect(response.status).toBe(200);
        const whole = stream ? dataLines(text).at(-1)?.["response"] : JSON.parse(text);
        expect(whole).toMatchObject({ object: "response", status: "completed" });
        expect(asked()).toEqual(["/v1/responses", "/v1/chat/completions"]);
        // Neither a retry nor a failure: one attempt, no error row, and the channel rests nowhere.
        const charge = await g.lastCharge();
        expect(charge?.other["attempts"]).toMatchObject([{ channel: g.channelId, code: "ok" }]);
        expect(charge?.other["upstream_dialect"]).toBe("openai-chat");
        expect((await g.logs()).filter((row) => row.type === 5)).toEqual([]);
        expect((await ask({ stream })).status).toBe(200);
        expect(asked().slice(2)).toEqual(["/v1/chat/completions"]);
      });
    }
  }

  test("is asked once more when the channel was edited", async () => {
    chatServer(json(404, { detail: "Not Found" }));
    await ask();
    await edit();
    await ask();
    const once = ["/v1/responses", "/v1/chat/completions"];
    expect(asked()).toEqual([...once, ...once]);
  });

  test("its refusal of the chat call is the client's, after one attempt", async () => {
    chatServer(json(404, { detail: "Not Found" }));
    g.upstream.script(json(404, { detail: "Not Found" }), json(400, { error: { message: "too long" } }));
    const response = await ask();
    expect([response.status, asked().length]).toEqual([400, 2]);
  });

  test("a model that no chat completions exist of is asked once", async () => {
    const { db, routing } = g.app.deps;
    await db.orm.update(db.t.channels).set({ models: `${MODEL},gpt-5-codex` });
    await routing.refresh([g.channelId]);
    g.upstream.always(json(404, { detail: "Not Found" }));
    expect((await ask({ model: "gpt-5-codex" })).status).toBe(404);
    expect(asked()).toEqual(["/v1/responses"]);
  });

  test("where nothing is found at all, that is not remembered", async () => {
    g.upstream.always(json(404, { detail: "Not Found" }));
    expect((await ask()).status).toBe(404);
    g.upstream.reset();
    g.upstream.always((request) => answerOf("openai-responses")(request));
    expect((await ask()).status).toBe(200);
    expect(asked()).toEqual(["/v1/responses"]);
  });

  test("is not told by a client's own words, which refusals repeat: the channel's other calls go on as they were", async () => {
    const message = "Invalid value: 'Unexpected endpoint or method'";
    for (const status of [400, 200]) {
      chatServer(json(status, { error: { message, code: "invalid_value" } }));
      await ask({ user: "unexpected endpoint or METHOD" });
      expect(asked()).not.toContain("/v1/chat/completions");
      g.upstream.reset();
    }
    g.upstream.always((request) => answerOf("openai-responses")(request));
    expect((await ask()).status).toBe(200);
    expect(asked()).toEqual(["/v1/responses"]);
  });

  test("other clients of the channel notice nothing", async () => {
    chatServer(json(404, { detail: "Not Found" }));
    await ask();
    const response = await g.chat({ messages: HI });
    expect([response.status, asked().at(-1)]).toEqual([200, "/v1/chat/completions"]);
  });
});

describe("a 404 that names what is missing is the client's", () => {
  for (const [name, body] of Object.entries({
    "a model, vLLM": {
      object: "error",
      message: `The model \`${MODEL}\` does not exist.`,
      type: "NotFoundError",
    },
    "a model by its code": { error: { message: "nothing here", code: "model_not_found" } },
    "a deployment": { error: { code: "DeploymentNotFound", message: "The API deployment does not exist." } },
    "a response": {
      error: { message: "Previous response with id 'resp_1' not found.", type: "invalid_request_error" },
    },
    "an item": { error: { message: "Item 'rs_123' not found.", type: "invalid_request_error" } },
  })) {
    test(name, async () => {
      g.upstream.always(json(404, body));
      expect((await ask()).status).toBe(404);
      expect(new Set(asked())).toEqual(new Set(["/v1/responses"]));
    });
  }
});

describe("the channel's setting", () => {
  test("convert: nobody is asked for the Responses API", async () => {
    await edit({ responses: "convert" });
    g.upstream.always(answerOf("openai-chat"));
    expect((await ask()).status).toBe(200);
    expect(asked()).toEqual(["/v1/chat/completions"]);
  });

  test("native: its 404 is what the client gets", async () => {
    await edit({ responses: "native" });
    chatServer(json(404, { detail: "Not Found" }));
    expect((await ask()).status).toBe(404);
    expect(new Set(asked())).toEqual(new Set(["/v1/responses"]));
  });
});
