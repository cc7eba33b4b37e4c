// Access tokens of Google service accounts: a signed assertion is exchanged, and the token kept until it is nearly over.
// Refuses credentials that are no service account, and exchanges of one account that run side by side.
import { asNumber, asObject, asString, parseJson } from "../../protocol/json.ts";
import { scrub } from "../../protocol/classify.ts";
import { Failure } from "../../shared/failures.ts";
import type { AdapterCall } from "../adapter.ts";
import { createTokenCache } from "../adapter-kit.ts";

const DEFAULT_TOKEN_URL = "https://www.googleapis.com/oauth2/v4/token";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
const GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ASSERTION_SECONDS = 2100;
const DEFAULT_LIFE_SECONDS = 1800;

export interface ServiceAccount {
  projectId: string;
  clientEmail: string;
  privateKey: string;
  privateKeyId: string | undefined;
  tokenUrl: string;
}

function unusable(): Failure {
  return new Failure("upstream-auth", "channel_key_format", {
    params: { format: "service account JSON" },
    retryable: true,
  });
}

/** Throws channel_key_format unless the text is a service account's JSON. */
export function parseServiceAccount(key: string): ServiceAccount {
  const json = asObject(parseJson(key.trim()));
  const projectId = asString(json?.["project_id"]);
  const clientEmail = asString(json?.["client_email"]);
  const privateKey = asString(json?.["private_key"]);
  if (!projectId || !clientEmail || !privateKey) throw unusable();
  const tokenUrl = asString(json?.["token_uri"]) || DEFAULT_TOKEN_URL;
  if (!/^https?:\/\//.test(tokenUrl)) throw unusable();
  return { projectId, clientEmail, privateKey, privateKeyId: asString(json?.["private_key_id"]), tokenUrl };
}

function base64url(data: string | ArrayBuffer): string {
  return (typeof data === "string" ? Buffer.from(data) : Buffer.from(data)).toString("base64url");
}

async function importKey(pem: string): Promise<CryptoKey> {
  const body = pem.replace(/-----(?:BEGIN|END) [\w ]+-----/g, "").replace(/\\n|\s/g, "");
  try {
    const bytes = Buffer.from(body, "base64");
    const algorithm = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
    return await crypto.subtle.importKey("pkcs8", bytes, algorithm, false, ["sign"]);
  } catch {
    throw unusable();
  }
}

/** The RS256 assertion that the token endpoint exchanges. */
export async function signAssertion(account: ServiceAccount, nowMs: number): Promise<string> {
  const issuedAt = Math.floor(nowMs / 1000);
  const { privateKeyId: kid, clientEmail, tokenUrl } = account;
  const head = base64url(JSON.stringify({ alg: "RS256", typ: "JWT", ...(kid ? { kid } : {}) }));
  const claims = {
    iss: clientEmail,
    scope: SCOPE,
    aud: tokenUrl,
    iat: issuedAt,
    exp: issuedAt + ASSERTION_SECONDS,
  };
  const signed = `${head}.${base64url(JSON.stringify(claims))}`;
  const key = await importKey(account.privateKey);
  const signature = await crypto.subtle.sign("RSASSA-PKCS1-v1_5", key, Buffer.from(signed));
  return `${signed}.${base64url(signature)}`;
}

const tokens = createTokenCache();

function nameOf(account: ServiceAccount): string {
  const hash = new Bun.CryptoHasher("sha256");
  return hash.update(`${account.clientEmail}\n${account.tokenUrl}\n${account.privateKey}`).digest("hex");
}

async function exchange(
  account: ServiceAccount,
  call: AdapterCall,
): Promise<{ token: string; expiresAtMs: number }> {
  const assertion = await signAssertion(account, call.nowMs());
  const response = await call.fetch(account.tokenUrl, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
    body: new URLSearchParams({ grant_type: GRANT, assertion }).toString(),
    signal: call.signal,
  });
  const text = await response.text();
  const body = asObject(parseJson(text));
  const token = asString(body?.["access_token"]);
  if (response.status !== 200 || !token) {
    const isRefusal = response.status >= 400 && response.status < 500 && response.status !== 429;
    throw new Failure(isRefusal ? "upstream-auth" : "upstream-down", "token_exchange_failed", {
      internal: scrub(text, 2000),
      retryable: true,
    });
  }
  const seconds = asNumber(body?.["expires_in"]) ?? DEFAULT_LIFE_SECONDS;
  return { token, expiresAtMs: call.monotonicMs() + seconds * 1000 };
}

/** A token for the account; calls that need one at the same time share one exchange. */
export function accessToken(account: ServiceAccount, call: AdapterCall): Promise<string> {
  return tokens(nameOf(account), call.monotonicMs(), () => exchange(account, call));
}

/** For a token that the provider no longer takes: the next call gets a new one. */
export function forgetToken(account: ServiceAccount, token: string): Promise<void> {
  return tokens.forget(nameOf(account), token);
}
