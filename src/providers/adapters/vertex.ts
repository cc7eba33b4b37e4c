// Google Vertex AI: a service account signs a token, region and project make the address; Gemini, Claude and Llama.
// Refuses keys that are no service account, and a region map without an entry for the model.
import { createHash, createSign } from "node:crypto";
import { asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { Failure } from "../../shared/failures.ts";
import type { AdapterCall } from "../adapter.ts";
import { createTokenCache, readJson } from "../adapter-kit.ts";

const TOKEN_URL = "https://www.googleapis.com/oauth2/v4/token";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ASSERTION_LIFE_SECONDS = 2100;
const ANTHROPIC_VERSION = "vertex-2023-10-16";

interface Account {
  project: string;
  email: string;
  privateKey: string;
  tokenUrl: string;
}

function accountOf(key: string): Account {
  const wire = asObject(parseJson(key));
  const project = asString(wire?.["project_id"]);
  const email = asString(wire?.["client_email"]);
  const privateKey = asString(wire?.["private_key"]);
  if (project === undefined || email === undefined || privateKey === undefined)
    throw new Failure("upstream-auth", "channel_key_unusable", { retryable: true });
  return { project, email, privateKey, tokenUrl: asString(wire?.["token_uri"]) ?? TOKEN_URL };
}

const base64url = (value: string): string => Buffer.from(value).toString("base64url");

/** RS256 assertion for Google's token endpoint (RFC 7523). */
export function signAssertion(
  account: { email: string; privateKey: string; tokenUrl: string },
  nowMs: number,
): string {
  const iat = Math.floor(nowMs / 1000);
  const claims = {
    iss: account.email,
    scope: SCOPE,
    aud: account.tokenUrl,
    iat,
    exp: iat + ASSERTION_LIFE_SECONDS,
  };
  const text = `${base64url(JSON.stringify({ alg: "RS256", typ: "JWT" }))}.${base64url(JSON.stringify(claims))}`;
  try {
    return `${text}.${createSign("RSA-SHA256").update(text).sign(account.privateKey).toString("base64url")}`;
  } catch {
    throw new Failure("upstream-auth", "channel_key_unusable", { retryable: true });
  }
}

const tokens = createTokenCache();

function accessToken(call: AdapterCall, account: Account): Promise<string> {
  const id = createHash("sha256").update(call.key).digest("hex");
  return tokens(id, call.nowMs(), async () => {
    const assertion = signAssertion(account, call.nowMs());
    const response = await call.fetch(account.tokenUrl, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({ grant_type: GRANT, assertion }).toString(),
    });
    const body = await readJson(response);
    const token = asString(body["access_token"]);
    if (response.status !== 200 || token === undefined)
      throw new Failure("upstream-auth", "upstream_auth", {
        retryable: true,
        internal: JSON.stringify(body).slice(0, 500),
      });
    const lifeSeconds = asNumber(body["expires_in"]) ?? 1800;
    return { token, expiresAtMs: call.nowMs() + lifeSeconds * 1000 };
  });
}

/** The special field is a region, or a map from the model to its region with a default. */
export function regionOf(other: string, model: string): string {
  const text = other.trim();
  if (!text.startsWith("{")) return text;
  const map = asObject(parseJson(text));
  const region = asString(map?.[model]) ?? asString(map?.["default"]);
  if (region === undefined) throw new Failure("no-channel", "provider_region", { retryable: true });
  return region;
}

/** Anthropic's dated names carry the date behind an @ here. */
export function vertexModel(model: string): string {
  if (model === "claude-3-5-sonnet-20241022") return "claude-3-5-sonnet-v2@20241022";
  return model.startsWith("claude") ? model.replace(/-(\d{8})$/, "@$1") : model;
}

export async function vertex(call: AdapterCall): Promise<Response> {
  const account = accountOf(call.key);
  const region = regionOf(call.channel.other, call.model);
  const host = region === "global" ? "aiplatform.googleapis.com" : `${region}-aiplatform.googleapis.com`;
  const base = call.channel.baseUrl || `https://${host}`;
  const place = `projects/${encodeURIComponent(account.project)}/locations/${encodeURIComponent(region)}`;
  const model = encodeURIComponent(vertexModel(call.model)).replaceAll("%40", "@");
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: call.isStream ? "text/event-stream" : "application/json",
    "accept-encoding": "identity",
    authorization: `Bearer ${await accessToken(call, account)}`,
  };
  let url: string;
  let body: Record<string, unknown> = { ...call.body };
  if (call.route.dialect === "anthropic") {
    url = `${base}/v1/${place}/publishers/anthropic/models/${model}:${call.isStream ? "streamRawPredict?alt=sse" : "rawPredict"}`;
    delete body["model"];
    body = { anthropic_version: ANTHROPIC_VERSION, ...body };
    const beta = call.headers["anthropic-beta"];
    if (beta !== undefined) headers["anthropic-beta"] = beta;
  } else if (call.route.dialect === "gemini") {
    const action = call.isStream ? "streamGenerateContent?alt=sse" : "generateContent";
    url = `${base}/v1/${place}/publishers/google/models/${model}:${action}`;
  } else {
    url = `${base}/v1beta1/${place}/endpoints/openapi/chat/completions`;
  }
  return call.fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
}
