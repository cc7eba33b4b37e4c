// Alibaba DashScope's native calls: embeddings, and pictures that are made behind a task.
// Refuses token lists; a task that does not end is the attempt's deadline to end.
import { asList, asNumber, asObject, asString } from "../../protocol/json.ts";
import { upstreamFailure } from "../../protocol/classify.ts";
import type { AdapterCall } from "../adapter.ts";
import { jsonResponse, post, readJson } from "../adapter-kit.ts";
import { embeddedTexts, embeddingsAnswer } from "./ollama.ts";

const POLL_MS = 3000;

async function embeddings(call: AdapterCall): Promise<Response> {
  const { dimensions } = call.body;
  const response = await post(call, call.url, {
    model: call.model,
    input: { texts: embeddedTexts(call.body["input"]) },
    ...(typeof dimensions === "number" ? { parameters: { dimension: dimensions } } : {}),
  });
  if (response.status !== 200) return response;
  const body = await readJson(response);
  const items = asList(asObject(body["output"])?.["embeddings"]).map(asObject);
  const ordered = items.toSorted(
    (a, b) => (asNumber(a?.["text_index"]) ?? 0) - (asNumber(b?.["text_index"]) ?? 0),
  );
  const vectors = ordered.map((item) => item?.["embedding"] ?? []);
  return embeddingsAnswer(call.model, vectors, asNumber(asObject(body["usage"])?.["total_tokens"]));
}

async function pause(call: AdapterCall): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, POLL_MS);
    const stop = (): void => {
      clearTimeout(timer);
      reject(new DOMException("aborted", "AbortError"));
    };
    call.signal.addEventListener("abort", stop, { once: true });
  });
}

async function pictures(call: AdapterCall): Promise<Response> {
  const { prompt, n, size, response_format: format, negative_prompt: negative } = call.body;
  const submitted = await post(
    call,
    call.url,
    {
      model: call.model,
      input: { prompt, ...(negative === undefined ? {} : { negative_prompt: negative }) },
      parameters: {
        n: typeof n === "number" ? n : 1,
        size: typeof size === "string" ? size.replace("x", "*") : undefined,
      },
    },
    { "x-dashscope-async": "enable" },
  );
  if (submitted.status !== 200) return submitted;
  let output = asObject((await readJson(submitted))["output"]);
  const task = asString(output?.["task_id"]) ?? "";
  const { origin } = new URL(call.url);
  const { "content-type": _type, ...headers } = call.headers;
  while (output?.["task_status"] === "PENDING" || output?.["task_status"] === "RUNNING") {
    await pause(call);
    const seen = await call.fetch(`${origin}/api/v1/tasks/${encodeURIComponent(task)}`, {
      method: "GET",
      headers,
    });
    if (seen.status !== 200) return seen;
    output = asObject((await readJson(seen))["output"]);
  }
  if (output?.["task_status"] !== "SUCCEEDED") {
    const message = asString(output?.["message"]) ?? String(output?.["task_status"]);
    throw upstreamFailure({ status: 500, message, code: asString(output?.["code"]) ?? null, raw: output });
  }
  const urls = asList(output["results"]).flatMap((item) => asString(asObject(item)?.["url"]) ?? []);
  const data = await Promise.all(
    urls.map(async (url) => {
      if (format !== "b64_json") return { url };
      const picture = await call.fetch(url, { method: "GET", headers: {} });
      return { b64_json: Buffer.from(await picture.arrayBuffer()).toString("base64") };
    }),
  );
  return jsonResponse({ created: Math.floor(call.nowMs() / 1000), data });
}

export function ali(call: AdapterCall): Promise<Response> {
  return call.operation === "embeddings" ? embeddings(call) : pictures(call);
}
