// Vertex AI against a fake that verifies assertions with the public key: tokens, regions, three families of models.
// Time stands still unless a test moves it.
import { afterAll, expect, test } from "bun:test";
import { regionOf } from "../../../src/providers/adapters/vertex.ts";
import type { Failure } from "../../../src/shared/failures.ts";
import { createVertex, serviceAccount } from "./fakes/vertex.ts";
import { codeOf, failureOf, HI, perform, serve, streamed, text, whole, requestOf } from "./support.ts";
import type { CallOptions } from "./support.ts";

const fake = createVertex();
const upstream = serve(fake.handler);
afterAll(() => upstream.stop());

const NOW = 1_700_000_000_000;
const CONTENTS = { contents: [{ role: "user", parts: [{ text: "hi" }] }] };

function options(account: string, more: Partial<CallOptions> = {}): CallOptions {
  return {
    type: 41,
    key: serviceAccount(upstream.url, account),
    model: "gemini-2.0-flash",
    operation: "gemini",
    baseUrl: upstream.url,
    channel: { other: "us-central1" },
    body: CONTENTS,
    nowMs: NOW,
    ...more,
  };
}

const claude: Partial<CallOptions> = {
  model: "claude-3-5-sonnet-20241022",
  operation: "messages",
  body: { max_tokens: 10, messages: HI },
};
const llama: Partial<CallOptions> = {
  model: "meta/llama3-405b-instruct-maas",
  operation: "chat",
  body: { messages: HI },
};

test("three families of models answer under their own addresses, whole and streamed", async () => {
  const place = "projects/my-project/locations/us-central1";
  const paths: [Partial<CallOptions>, string, string][] = [
    [
      {},
      `/v1/${place}/publishers/google/models/gemini-2.0-flash:generateContent`,
      `/v1/${place}/publishers/google/models/gemini-2.0-flash:streamGenerateContent?alt=sse`,
    ],
    [
      claude,
      `/v1/${place}/publishers/anthropic/models/claude-3-5-sonnet-v2@20241022:rawPredict`,
      `/v1/${place}/publishers/anthropic/models/claude-3-5-sonnet-v2@20241022:streamRawPredict?alt=sse`,
    ],
    [
      llama,
      `/v1beta1/${place}/endpoints/openapi/chat/completions`,
      `/v1beta1/${place}/endpoints/openapi/chat/completions`,
    ],
  ];
  for (const [more, path, streamPath] of paths) {
    const plain = await whole(options("families", more));
    expect(requestOf(upstream).path).toBe(path);
    const stream = await streamed(options("families", more));
    expect(requestOf(upstream).path).toBe(streamPath);
    for (const answer of [plain, stream]) {
      expect([text(answer), answer.reason]).toEqual(["Hello world", "stop"]);
      expect([answer.usage.input.fresh, answer.usage.output.text]).toEqual([11, 7]);
    }
  }
});

test("texts are embedded, one a call where the model takes no more, with the tokens of all", async () => {
  const embed = (model: string) =>
    perform(
      options("embed", { model, operation: "embeddings", body: { input: ["a", "bc"], dimensions: 2 } }),
    );
  for (const model of ["text-embedding-004", "gemini-embedding-001"]) {
    expect(await (await embed(model)).json()).toMatchObject({
      data: [{ embedding: [1, 0.5] }, { embedding: [2, 0.5] }],
      usage: { prompt_tokens: 4 },
    });
    expect(requestOf(upstream).path).toBe(
      `/v1/projects/my-project/locations/us-central1/publishers/google/models/${model}:predict`,
    );
    expect(requestOf(upstream).json()).toMatchObject({ parameters: { outputDimensionality: 2 } });
  }
  expect(requestOf(upstream).json()["instances"]).toEqual([{ content: "bc" }]);
});

test("embedding requests of Google's clients keep their tasks, titles and lengths; what is no text needs a model that reads it", async () => {
  const content = { parts: [{ text: "a" }, { text: "b" }] };
  const first = { content, taskType: "RETRIEVAL_DOCUMENT", title: "T", outputDimensionality: 1 };
  const own = { requests: [first, { content, task_type: "RETRIEVAL_QUERY", outputDimensionality: 3 }] };
  // Where all ask for one length, it stands in the translated form too; without it a rule of the channel took it away.
  const embed = (model: string, requests: object, more: object = {}) =>
    perform(
      options("own", {
        model,
        operation: "embeddings",
        body: { input: ["ab", "ab"], ...more },
        more: { own: { requests } },
      }),
    );
  const before = upstream.requests.length;
  expect(await (await embed("text-embedding-004", own.requests)).json()).toMatchObject({
    data: [{ embedding: [2] }, { embedding: [2, 0.5, 0] }],
    usage: { prompt_tokens: 4 },
  });
  const predicted = upstream.requests.slice(before).filter(({ path }) => path.endsWith(":predict"));
  expect(predicted.map((request) => request.json())).toEqual([
    {
      instances: [{ content: "ab", task_type: "RETRIEVAL_DOCUMENT", title: "T" }],
      parameters: { outputDimensionality: 1 },
    },
    { instances: [{ content: "ab", task_type: "RETRIEVAL_QUERY" }], parameters: { outputDimensionality: 3 } },
  ]);

  const picture = { inlineData: { mimeType: "image/png", data: "aGk=" } };
  const seen = { content: { parts: [{ text: "ab" }, picture] }, outputDimensionality: 1 };
  const requests = [seen, first];
  expect(await codeOf(() => embed("gemini-embedding-001", requests))).toBe("unsupported_field");
  expect(await (await embed("gemini-embedding-2", requests, { dimensions: 1 })).json()).toMatchObject({
    data: [{ embedding: [7] }, { embedding: [7] }],
    usage: { prompt_tokens: 6 },
  });
  expect(requestOf(upstream).path).toEndWith("/publishers/google/models/gemini-embedding-2:embedContent");
  expect(requestOf(upstream).json()).toEqual({
    content: { role: "user", ...content },
    embedContentConfig: { taskType: "RETRIEVAL_DOCUMENT", title: "T", outputDimensionality: 1 },
  });
});

test("Imagen draws, in its own shapes", async () => {
  const body = { prompt: "a square", n: 2, size: "1792x1024" };
  const drawn = await perform(
    options("imagen", { model: "imagen-3.0-generate-002", operation: "image-generations", body }),
  );
  expect(await drawn.json()).toMatchObject({ data: [{ b64_json: "aGk=" }, { b64_json: "aGk=" }] });
  expect(requestOf(upstream).json()).toEqual({
    instances: [{ prompt: "a square" }],
    parameters: { sampleCount: 2, aspectRatio: "16:9", personGeneration: "allow_adult" },
  });
});

test("Claude gets its version in the body and no model there; the client's beta header stays", async () => {
  const call = options("claude", claude);
  await whole(call);
  const sent = requestOf(upstream);
  expect(sent.json()).toEqual({ anthropic_version: "vertex-2023-10-16", max_tokens: 10, messages: HI });
  expect(sent.headers.get("anthropic-version")).toBeNull();
});

test("the assertion names the account, its scope and an end, and is signed with its key", async () => {
  const before = fake.claims.length;
  await whole(options("claims"));
  const claims = fake.claims[before];
  expect(claims).toEqual({
    iss: "claims@my-project.iam.gserviceaccount.com",
    scope: "https://www.googleapis.com/auth/cloud-platform",
    aud: `${upstream.url}/token`,
    iat: NOW / 1000,
    exp: NOW / 1000 + 2100,
    head: { alg: "RS256", typ: "JWT", kid: "kid-1" },
  });
});

test("calls at the same time share one exchange, and later ones its token until it is nearly over", async () => {
  const before = fake.claims.length;
  await Promise.all(Array.from({ length: 8 }, () => whole(options("shared"))));
  expect(fake.claims.length).toBe(before + 1);
  await whole(options("shared", { nowMs: NOW + 3_400_000 }));
  expect(fake.claims.length).toBe(before + 1);
  await whole(options("shared", { nowMs: NOW + 3_550_000 }));
  expect(fake.claims.length).toBe(before + 2);
});

test("a call that is given up during the exchange does not take the others along", async () => {
  const controller = new AbortController();
  const first = perform(options("given-up", { signal: controller.signal }));
  const second = whole(options("given-up"));
  controller.abort();
  expect(
    await first.then(
      () => "answered",
      () => "given up",
    ),
  ).toBe("given up");
  expect(text(await second)).toBe("Hello world");
});

test("a withdrawn token is exchanged anew, once", async () => {
  await whole(options("withdrawn"));
  fake.withdraw();
  const before = fake.claims.length;
  expect(text(await whole(options("withdrawn")))).toBe("Hello world");
  expect(fake.claims.length).toBe(before + 1);
});

test("a refused assertion is the key's fault, a broken token endpoint is not", async () => {
  const key = JSON.parse(serviceAccount(upstream.url, "stranger")) as Record<string, string>;
  const { generateKeyPairSync } = await import("node:crypto");
  const other = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const stranger = JSON.stringify({ ...key, private_key: other.export({ type: "pkcs8", format: "pem" }) });
  const refused = (await perform(options("x", { key: stranger })).catch(
    (error: unknown) => error,
  )) as Failure;
  expect([refused.kind, refused.code, refused.retryable]).toEqual([
    "upstream-auth",
    "token_exchange_failed",
    true,
  ]);
  const down = (await perform(options("broken")).catch((error: unknown) => error)) as Failure;
  expect([down.kind, down.code]).toEqual(["upstream-down", "token_exchange_failed"]);
});

test("keys that are no service account are refused before anything is sent", async () => {
  const before = upstream.requests.length;
  for (const key of ["", "sk-123", "{}", '{"project_id":"p","client_email":"a@b","private_key":"nonsense"}'])
    expect(await codeOf(() => perform(options("x", { key })))).toBe("channel_key_format");
  expect(upstream.requests.length).toBe(before);
});

test("regions come from the channel: one, or a map by model with a default", () => {
  expect(regionOf("europe-west1", "m", "m")).toBe("europe-west1");
  const map = JSON.stringify({ default: "us-central1", asked: "europe-west1", upstream: "asia-east1" });
  expect(regionOf(map, "asked", "upstream")).toBe("europe-west1");
  expect(regionOf(map, "other", "upstream")).toBe("asia-east1");
  expect(regionOf(map, "other", "other")).toBe("us-central1");
  for (const other of ["", "  ", "{}", "../x", '{"default":5}'])
    expect(() => regionOf(other, "m", "m")).toThrow("provider_region");
});

test("the region names the host, and the worldwide one has none in its name", async () => {
  const hosts: string[] = [];
  for (const other of ["europe-west4", "global", "us", "eu", '{"default":"us-east5","asked":"asia-east1"}']) {
    const fetch = (url: string, init: RequestInit): Promise<Response> => {
      if (url.startsWith(upstream.url)) return globalThis.fetch(url, init);
      hosts.push(new URL(url).host + new URL(url).pathname.split("/")[5]);
      return Promise.resolve(Response.json({}));
    };
    await perform(
      options("hosts", { baseUrl: "", channel: { other }, more: { fetch, requestedModel: "asked" } }),
    );
  }
  expect(hosts).toEqual([
    "europe-west4-aiplatform.googleapis.comeurope-west4",
    "aiplatform.googleapis.comglobal",
    "aiplatform.us.rep.googleapis.comus",
    "aiplatform.eu.rep.googleapis.comeu",
    "asia-east1-aiplatform.googleapis.comasia-east1",
  ]);
});

test("errors keep their kind and lose the project's name", async () => {
  const body = { contents: [{ role: "user", parts: [{ text: "refuse" }] }] };
  const failure = await failureOf(await perform(options("errors", { body })));
  expect([failure.kind, failure.upstreamStatus]).toEqual(["upstream-request", 404]);
  expect(failure.text).toContain("projects/[project]/locations");
});
