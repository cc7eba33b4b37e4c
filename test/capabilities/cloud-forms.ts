// The clouds: Bedrock with its signature and binary events, Vertex with its assertion.
// Refuses requests that are not signed as the clouds document it.
import { createHash, createHmac, createVerify, generateKeyPairSync } from "node:crypto";
import { awsEvent } from "../providers/adapters/fakes/bedrock.ts";
import type { RecordedRequest, Script } from "../support/fake-upstream.ts";
import { json, pathOf, TEXT, TOOL, USAGE, VECTOR } from "./fixture.ts";
import type { Fixture } from "./fixture.ts";
import { geminiAnswer, messageEvents, messagesAnswer, openaiAnswer } from "./openai-forms.ts";

const AWS_KEY = "AKIDEXAMPLE|aws-secret|us-east-1";

/** The signature recomputed from what arrived, by the steps of AWS's documentation. */
function isAwsSigned(request: RecordedRequest): boolean {
  const header = request.headers["authorization"] ?? "";
  const [, scope = "", names = "", signature = ""] =
    /Credential=AKIDEXAMPLE\/(\S+), SignedHeaders=(\S+), Signature=(\w+)/.exec(header) ?? [];
  const hash = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
  const sign = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();
  const path = pathOf(request).split("/").map(encodeURIComponent).join("/");
  const headers = names.split(";").map((name) => `${name}:${String(request.headers[name])}\n`);
  const canonical = `POST\n${path}\n\n${headers.join("")}\n${names}\n${hash(request.body)}`;
  const text = `AWS4-HMAC-SHA256\n${String(request.headers["x-amz-date"])}\n${scope}\n${hash(canonical)}`;
  const [day = "", region = "", service = ""] = scope.split("/");
  const key = sign(sign(sign(sign("AWS4aws-secret", day), region), service), "aws4_request");
  return createHmac("sha256", key).update(text).digest("hex") === signature;
}

/** Whether a frame tells words: Converse names them, Claude's are inside of base64. */
function isWords(type: string, payload: unknown): boolean {
  const { bytes } = payload as { bytes?: string };
  if (bytes === undefined) return type === "contentBlockDelta";
  return Buffer.from(bytes, "base64").toString().includes("text_delta");
}

/** Cut where no frame ends, behind the first words: a little of the next frame stands in the same piece. */
function awsStream(list: readonly [type: string, payload: unknown][]): Script {
  const frames = list.map(([type, payload]) => awsEvent(type, payload));
  const words = list.findIndex(([type, payload]) => isWords(type, payload));
  const all = Buffer.concat(frames);
  const until = words === -1 ? Math.floor(all.length / 2) : Buffer.concat(frames.slice(0, words + 1)).length;
  return {
    status: 200,
    headers: { "content-type": "application/vnd.amazon.eventstream" },
    steps: [all.subarray(0, until + 3), all.subarray(until + 3)],
  };
}

export const bedrock: Fixture = {
  key: AWS_KEY,
  models: { messages: "claude-sonnet-4-20250514", chat: "amazon.nova-pro-v1:0" },
  isAuthorised: isAwsSigned,
  hasTools: true,
  reportsUsage: true,
  answer(request, scene) {
    if (scene.kind === "error") return json({ message: `provider says ${scene.status}` }, scene.status);
    const path = decodeURIComponent(pathOf(request));
    const isTool = scene.kind === "tool";
    if (path.startsWith("/model/us.anthropic.claude-sonnet-4-20250514-v1:0/")) {
      if (request.json()["anthropic_version"] !== "bedrock-2023-05-31" || "model" in request.json())
        return json({ message: "bad body" }, 400);
      if (path.endsWith("/invoke")) return messagesAnswer(false, scene);
      const content = isTool
        ? [{ type: "tool_use", id: "toolu_1", name: TOOL.name, input: TOOL.input }]
        : [{ type: "text", text: TEXT }];
      const list = messageEvents({ content, stop_reason: isTool ? "tool_use" : "end_turn" });
      return awsStream(
        list.map((event) => ["chunk", { bytes: Buffer.from(JSON.stringify(event)).toString("base64") }]),
      );
    }
    if (!path.startsWith("/model/amazon.nova-pro-v1:0/"))
      return json({ message: `no such model: ${path}` }, 404);
    const usage = { inputTokens: USAGE.prompt, outputTokens: USAGE.completion, totalTokens: 12 };
    const stopReason = isTool ? "tool_use" : "end_turn";
    if (path.endsWith("/converse")) {
      const block = isTool
        ? { toolUse: { toolUseId: "t1", name: TOOL.name, input: TOOL.input } }
        : { text: TEXT };
      return json({ output: { message: { role: "assistant", content: [block] } }, stopReason, usage });
    }
    const blocks: [string, unknown][] = isTool
      ? [
          [
            "contentBlockStart",
            { contentBlockIndex: 0, start: { toolUse: { toolUseId: "t1", name: TOOL.name } } },
          ],
          [
            "contentBlockDelta",
            { contentBlockIndex: 0, delta: { toolUse: { input: JSON.stringify(TOOL.input) } } },
          ],
        ]
      : [
          ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: "Hello" } }],
          ["contentBlockDelta", { contentBlockIndex: 0, delta: { text: " there!" } }],
        ];
    return awsStream([
      ["messageStart", { role: "assistant" }],
      ...blocks,
      ["contentBlockStop", { contentBlockIndex: 0 }],
      ["messageStop", { stopReason }],
      ["metadata", { usage }],
    ]);
  },
};

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const account = (url: string): string =>
  JSON.stringify({
    type: "service_account",
    project_id: "the-project",
    client_email: "robot@the-project.example",
    private_key: pair.privateKey.export({ type: "pkcs8", format: "pem" }),
    token_uri: `${url}/token`,
  });

function isGoogleAssertion(request: RecordedRequest): boolean {
  const assertion = new URLSearchParams(request.body.toString()).get("assertion") ?? "";
  const [head = "", claims = "", signature = ""] = assertion.split(".");
  const payload = JSON.parse(Buffer.from(claims, "base64url").toString()) as { iss: string };
  const isSigned = createVerify("RSA-SHA256")
    .update(`${head}.${claims}`)
    .verify(pair.publicKey, signature, "base64url");
  return isSigned && payload.iss === "robot@the-project.example";
}

/** `{url}` in the key is the fake's address. */
export const vertex: Fixture = {
  key: account("{url}"),
  other: JSON.stringify({ default: "europe-west1", "gemini-2.5-flash": "us-central1" }),
  models: {
    messages: "claude-sonnet-4-20250514",
    gemini: "gemini-2.5-flash",
    chat: "meta/llama-4",
    embeddings: "text-embedding-005",
    "image-generations": "imagen-3.0-generate-002",
  },
  isAuthorised: (request) =>
    pathOf(request) === "/token"
      ? isGoogleAssertion(request)
      : request.headers["authorization"] === "Bearer google-token",
  hasTools: true,
  reportsUsage: true,
  answer(request, scene) {
    const path = pathOf(request);
    if (path === "/token") return json({ access_token: "google-token", expires_in: 3600 });
    if (scene.kind === "error")
      return json(
        [{ error: { code: scene.status, message: `provider says ${scene.status}`, status: "X" } }],
        scene.status,
      );
    const claude =
      "/v1/projects/the-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4@20250514";
    const gemini = "/v1/projects/the-project/locations/us-central1/publishers/google/models/gemini-2.5-flash";
    if (path === `${claude}:rawPredict`) return messagesAnswer(false, scene);
    if (path === `${claude}:streamRawPredict`) return messagesAnswer(true, scene);
    const google = "/v1/projects/the-project/locations/europe-west1/publishers/google/models";
    if (path === `${google}/text-embedding-005:predict`)
      return json({
        predictions: [{ embeddings: { values: VECTOR, statistics: { token_count: USAGE.prompt } } }],
      });
    if (path === `${google}/imagen-3.0-generate-002:predict`)
      return json({ predictions: [{ mimeType: "image/png", bytesBase64Encoded: "pictures" }] });
    if (path.startsWith(`${gemini}:`)) return geminiAnswer(path.endsWith(":streamGenerateContent"), scene);
    if (path === "/v1beta1/projects/the-project/locations/europe-west1/endpoints/openapi/chat/completions")
      return openaiAnswer(request, scene);
    return json({ error: { code: 404, message: `no such path: ${path}`, status: "NOT_FOUND" } }, 404);
  },
};
