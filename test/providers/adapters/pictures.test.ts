// Pictures of Replicate (predictions), SiliconFlow and Zhipu (other words), and one-picture providers that refuse more.
// The pause between two questions after a prediction is the test's own.
import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createReplicate } from "../../../src/providers/adapters/replicate.ts";
import type { AdapterFile } from "../../../src/providers/adapter.ts";
import { createReplicateFake, KEY } from "./fakes/replicate.ts";
import { adapterCall, codeOf, failureOf, perform, requestOf, serve } from "./support.ts";
import type { CallOptions } from "./support.ts";

const URL_1 = "https://replicate.delivery/1.webp";

describe("Replicate", () => {
  const fake = createReplicateFake();
  const upstream = serve(fake.handler);
  afterAll(() => upstream.stop());
  const pauses: number[] = [];
  const adapter = createReplicate((ms) => {
    pauses.push(ms);
    return Promise.resolve();
  });
  beforeEach(() => {
    pauses.length = 0;
    fake.states = [{ status: "succeeded", output: URL_1 }];
  });
  const options = (body: Record<string, unknown>, more: Partial<CallOptions> = {}): CallOptions => ({
    type: 56,
    key: KEY,
    model: "black-forest-labs/flux-1.1-pro",
    baseUrl: upstream.url,
    operation: "image-generations",
    body: { prompt: "a square", ...body },
    ...more,
  });
  const draw = (body: Record<string, unknown> = {}, more: Partial<CallOptions> = {}) =>
    adapter(adapterCall(options(body, more)));

  test("waits for the picture in the call, in the model's own words", async () => {
    // One picture is asked and paid for, whatever other words say of their number.
    const other = { num_outputs: 4, num_images: 4, number_of_images: 4, max_images: 4, batch_size: 4 };
    const openai = { n: 1, size: "1024x768", output_format: "jpeg", user: "u", quality: "hd" };
    const answer = await draw({ ...openai, seed: 3, ...other });
    expect(await answer.json()).toMatchObject({ data: [{ url: URL_1 }] });
    const { path, headers, json } = requestOf(upstream);
    expect([path, headers.get("prefer")]).toEqual([
      "/v1/models/black-forest-labs/flux-1.1-pro/predictions",
      "wait",
    ]);
    expect(json()).toEqual({
      input: { prompt: "a square", seed: 3, output_format: "jpg", aspect_ratio: "4:3" },
    });
  });

  test("asks after one that takes longer, at the channel's own address", async () => {
    fake.states = [
      { status: "starting" },
      { status: "processing" },
      { status: "succeeded", output: [URL_1, URL_1] },
    ];
    const model = { model: "black-forest-labs/flux-schnell" };
    const answer = (await (await draw({ n: 2 }, model)).json()) as { data: unknown[] };
    expect([answer.data.length, pauses]).toEqual([2, [1000, 1000]]);
    expect(requestOf(upstream, 2).json()).toMatchObject({ input: { num_outputs: 2 } });
    expect(requestOf(upstream).headers.get("prefer")).toBeNull();
  });

  test("a version is asked for by itself", async () => {
    await draw({}, { model: "owner/name:5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa" });
    expect(requestOf(upstream).path).toBe("/v1/predictions");
    expect(requestOf(upstream).json()).toMatchObject({
      version: "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa",
    });
  });

  test("several are asked of models that count, and refused by name for those that make one", async () => {
    const before = upstream.requests.length;
    for (const model of [
      "black-forest-labs/flux-1.1-pro",
      "google/nano-banana",
      "stability-ai/stable-diffusion-3.5-large",
    ])
      expect([model, await codeOf(() => draw({ n: 2 }, { model }))]).toEqual([model, "unsupported_field"]);
    expect(upstream.requests.length).toBe(before);
    for (const model of ["black-forest-labs/flux-dev", "stability-ai/sdxl", "a/b:5c7d5dc6dd8bf75c"]) {
      // One that makes fewer all the same is answered with what it made.
      const answer = (await (await draw({ n: 2 }, { model })).json()) as { data: unknown[] };
      expect([model, answer.data.length]).toEqual([model, 1]);
      expect(requestOf(upstream).json()).toMatchObject({ input: { num_outputs: 2 } });
    }
  });

  test("sizes are ratios that the models have", async () => {
    for (const [size, ratio] of [
      ["1024x1792", "9:16"],
      ["1792x1024", "16:9"],
      ["1024x1536", "2:3"],
    ] as const) {
      await draw({ size });
      expect(requestOf(upstream).json()).toMatchObject({ input: { aspect_ratio: ratio } });
    }
  });

  test("failed and cancelled predictions yield nothing", async () => {
    for (const [state, kind] of [
      [{ status: "failed", error: "CUDA out of memory", output: URL_1 }, "upstream-down"],
      [{ status: "failed", error: "NSFW content detected", output: URL_1 }, "upstream-refusal"],
      [{ status: "canceled", output: URL_1 }, "upstream-down"],
    ] as const) {
      fake.states = [state];
      expect([state, (await failureOf(await draw())).kind as string]).toEqual([state, kind]);
    }
    fake.states = [{ status: "succeeded", output: null }];
    expect(await codeOf(() => draw())).toBe("upstream_bad_answer");
  });

  test("refusals keep their status", async () => {
    expect((await failureOf(await draw({}, { key: "r8_other" }))).kind).toBe("upstream-auth");
    expect((await failureOf(await draw({ prompt: "broke" }))).kind).toBe("upstream-quota");
  });

  test("edits carry their picture inside, larger ones are uploaded first", async () => {
    const file = (name: string, size: number): AdapterFile => ({
      name,
      filename: "a.png",
      type: "image/png",
      bytes: new Uint8Array(size),
    });
    const edit = (model: string, files: readonly AdapterFile[]) =>
      draw({}, { operation: "image-edits", model, more: { files } });
    await edit("black-forest-labs/flux-fill-pro", [file("image", 3), file("mask", 300_000)]);
    expect(requestOf(upstream).json()).toEqual({
      input: {
        prompt: "a square",
        image: "data:image/png;base64,AAAA",
        mask: "https://files.example/300000",
      },
    });
    await edit("black-forest-labs/flux-kontext-pro", [file("image", 3)]);
    expect(requestOf(upstream).json()).toMatchObject({
      input: { input_image: "data:image/png;base64,AAAA" },
    });
    await edit("google/nano-banana", [file("image[]", 3), file("image[]", 3)]);
    expect((requestOf(upstream).json()["input"] as { image_input: unknown[] }).image_input.length).toBe(2);
  });
});

describe("other words", () => {
  const upstream = serve(async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === "/pictures/1.png") return new Response("pixels");
    const url = `${upstream.url}/pictures/1.png`;
    if (pathname === "/v1/images/generations") {
      const { batch_size: count = 1 } = (await request.json()) as { batch_size?: number };
      const images = Array.from({ length: count }, () => ({ url }));
      return Response.json({ images, timings: { inference: 0.8 }, seed: 3 });
    }
    if (pathname === "/api/paas/v4/images/generations")
      return Response.json({ created: 1, data: [{ url }], content_filter: [] });
    return new Response("", { status: 404 });
  });
  afterAll(() => upstream.stop());
  const draw = (type: number, model: string, body: Record<string, unknown>) =>
    perform({
      type,
      key: "k",
      model,
      baseUrl: upstream.url,
      operation: "image-generations",
      body: { prompt: "p", ...body },
    });
  const pixels = { b64_json: Buffer.from("pixels").toString("base64") };

  test("SiliconFlow", async () => {
    const answer = await draw(40, "Kwai-Kolors/Kolors", {
      n: 2,
      size: "1024x1024",
      user: "u",
      guidance_scale: 7.5,
      response_format: "b64_json",
    });
    expect(((await answer.json()) as { data: unknown[] }).data).toEqual([pixels, pixels]);
    const asked = upstream.requests.find(({ path }) => path === "/v1/images/generations");
    expect(asked?.json()).toEqual({
      model: "Kwai-Kolors/Kolors",
      prompt: "p",
      image_size: "1024x1024",
      batch_size: 2,
      guidance_scale: 7.5,
    });
    // The number is said in OpenAI's words alone, the size where they are there: this is what was priced.
    await draw(40, "Kwai-Kolors/Kolors", { n: 1, batch_size: 4, size: "1024x1024", image_size: "2048x2048" });
    await draw(40, "Kwai-Kolors/Kolors", { image_size: "2048x2048" });
    const bodies = upstream.requests.filter(({ path }) => path === "/v1/images/generations");
    const plain = { model: "Kwai-Kolors/Kolors", prompt: "p", batch_size: 1 };
    expect(bodies.slice(1).map((each) => each.json() as unknown)).toEqual([
      { ...plain, image_size: "1024x1024" },
      { ...plain, image_size: "2048x2048" },
    ]);
  });

  test("Zhipu", async () => {
    const answer = await draw(26, "cogview-4", { n: 1, user: "u", response_format: "b64_json" });
    expect(((await answer.json()) as { data: unknown[] }).data).toEqual([pixels]);
    expect(requestOf(upstream, 1).json()).toEqual({ model: "cogview-4", prompt: "p", user_id: "u" });
  });

  test("providers that make one picture a call refuse several by name", async () => {
    const before = upstream.requests.length;
    for (const [type, model] of [
      [26, "cogview-4"],
      [45, "doubao-seedream-3-0-t2i"],
    ] as const)
      expect(await codeOf(() => draw(type, model, { n: 2 }))).toBe("unsupported_field");
    expect(upstream.requests.length).toBe(before);
  });
});
