// Dify: chat and agent apps, workflows, completions, files; each found out by what the app answers.
// Holds streams to their own last event.
import { afterAll, expect, test } from "bun:test";
import type { Failure } from "../../../src/shared/failures.ts";
import { handler } from "./fakes/dify.ts";
import {
  codeOf,
  failureOf,
  HI,
  perform,
  PNG,
  serve,
  streamed,
  text,
  WEATHER_TOOL,
  whole,
  requestOf,
} from "./support.ts";
import type { CallOptions } from "./support.ts";

const upstream = serve(handler);
afterAll(() => upstream.stop());

function dify(body: Record<string, unknown> = {}, key = "app-chat"): CallOptions {
  return { type: 37, key, model: "app", baseUrl: upstream.url, body: { messages: HI, ...body } };
}

const last = () => requestOf(upstream);
const said = (content: string) => ({ messages: [{ role: "user", content }] });

test("all turns reach the app as one query, and its usage comes back", async () => {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "one" },
    { role: "assistant", content: "two" },
    { role: "user", content: "three" },
  ];
  for (const answer of [
    await whole(dify({ messages, user: "u-1" })),
    await streamed(dify({ messages, user: "u-1" })),
  ]) {
    expect([text(answer), answer.reason]).toEqual(["Hello world", "stop"]);
    expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
  }
  expect([last().path, last().json()]).toEqual([
    "/v1/chat-messages",
    {
      inputs: {},
      query: "SYSTEM: \nBe brief.\nUSER: \none\nASSISTANT: \ntwo\nUSER: \nthree\n",
      response_mode: "streaming",
      user: "u-1",
      auto_generate_name: false,
    },
  ]);
  expect(requestOf(upstream, 1).json()["response_mode"]).toBe("blocking");
});

test("variables of the app travel as inputs", async () => {
  await whole(dify({ inputs: { tone: "kind" } }));
  expect(last().json()["inputs"]).toEqual({ tone: "kind" });
});

test("folded thoughts come as think tags", async () => {
  for (const answer of [
    await whole(dify(said("think"))),
    await streamed(dify(said("think"))),
    // A tag may be cut anywhere.
    await streamed(dify(said("think bit by bit"))),
  ])
    expect(text(answer)).toBe("<think>\nHm.</think>\nHello world");
});

test("pictures are uploaded, pictures by address are named", async () => {
  const content = [
    { type: "text", text: "Look" },
    { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } },
    { type: "image_url", image_url: { url: "https://x.example/a.png" } },
  ];
  await whole(dify({ messages: [{ role: "user", content }] }));
  expect(requestOf(upstream, 1).path).toBe("/v1/files/upload");
  const size = Buffer.from(PNG, "base64").length;
  expect(last().json()["files"]).toEqual([
    { type: "image", transfer_method: "local_file", upload_file_id: `file-${size}` },
    { type: "image", transfer_method: "remote_url", url: "https://x.example/a.png" },
  ]);
});

test("an agent that only streams is gathered for a whole answer", async () => {
  const answer = await whole(dify({}, "app-agent"));
  expect([text(answer), answer.usage.input.fresh]).toEqual(["Hello world", 11]);
  expect(text(await streamed(dify({}, "app-agent")))).toBe("Hello world");
});

test("workflow and completion apps are found out once and asked on their own path from then on", async () => {
  expect(text(await whole(dify({}, "app-workflow")))).toBe("Hello world");
  const before = upstream.requests.length;
  expect(text(await streamed(dify({}, "app-workflow")))).toBe("Hello world");
  expect(text(await streamed(dify(said("chunks"), "app-workflow")))).toBe("Hello world");
  expect(upstream.requests.slice(before).map((request) => request.path)).toEqual([
    "/v1/workflows/run",
    "/v1/workflows/run",
  ]);
  expect(last().json()["inputs"]).toEqual({ query: "USER: \nchunks\n" });
  const answer = await whole(dify({}, "app-completion"));
  expect([text(answer), last().path]).toEqual(["Hello world", "/v1/completion-messages"]);
});

test("errors keep their kind; a failed workflow and a cut stream never end cleanly", async () => {
  const refused = await failureOf(await perform(dify(said("refuse"))));
  expect([refused.kind, refused.text]).toEqual(["upstream-request", "query is too long"]);
  expect((await failureOf(await perform(dify({}, "stranger")))).kind).toBe("upstream-auth");
  const inside = (await streamed(dify(said("exception"))).catch((error: unknown) => error)) as Failure;
  expect(inside.kind).toBe("upstream-limit");
  for (const run of [whole, streamed]) {
    const failed = (await run(dify(said("exception"), "app-workflow")).catch(
      (error: unknown) => error,
    )) as Failure;
    expect(failed.kind).toBe("upstream-down");
  }
  const cut = await perform({ ...dify(said("cut")), isStream: true });
  expect(await codeOf(() => cut.text())).toBe("broken_stream");
});

test("tools and formats are refused by name", async () => {
  const before = upstream.requests.length;
  for (const body of [{ tools: [WEATHER_TOOL] }, { response_format: { type: "json_object" } }, { n: 2 }])
    expect(await codeOf(() => perform(dify(body)))).toBe("unsupported_field");
  expect(upstream.requests.length).toBe(before);
});
