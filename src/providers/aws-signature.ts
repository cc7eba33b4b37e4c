// AWS Signature Version 4 for one request, as AWS's documentation "Signing AWS API requests" defines it.
// Proven against AWS's published test suite.
import { createHash, createHmac } from "node:crypto";

export interface AwsCredentials {
  accessKey: string;
  secretKey: string;
  region: string;
  service: string;
  sessionToken?: string;
}

export interface AwsRequest {
  method: string;
  /** As it is sent: path segments are encoded once. */
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** RFC 3986: everything but unreserved characters. */
function encodeStrict(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Headers to add: x-amz-date, authorization, and the session token when there is one. */
export function signAws(
  request: AwsRequest,
  credentials: AwsCredentials,
  nowMs: number,
): Record<string, string> {
  const { region, service, accessKey, secretKey, sessionToken } = credentials;
  const url = new URL(request.url);
  const stamp = new Date(nowMs).toISOString().replace(/[:-]|\.\d{3}/g, "");
  const day = stamp.slice(0, 8);
  const added: Record<string, string> = { "x-amz-date": stamp };
  if (sessionToken !== undefined && sessionToken !== "") added["x-amz-security-token"] = sessionToken;
  const signed = new Map<string, string>();
  for (const [name, value] of Object.entries({ ...request.headers, ...added, host: url.host }))
    signed.set(name.toLowerCase(), value.trim().replace(/\s+/g, " "));
  const names = [...signed.keys()].sort();
  // Every service but S3 encodes the path a second time.
  const path = url.pathname.split("/").map(encodeStrict).join("/");
  const query = [...url.searchParams]
    .map(([name, value]) => `${encodeStrict(name)}=${encodeStrict(value)}`)
    .sort()
    .join("&");
  const canonical = [
    request.method,
    path,
    query,
    ...names.map((name) => `${name}:${signed.get(name)}`),
    "",
    names.join(";"),
    sha256(request.body),
  ].join("\n");
  const scope = `${day}/${region}/${service}/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", stamp, scope, sha256(canonical)].join("\n");
  const key = hmac(hmac(hmac(hmac(`AWS4${secretKey}`, day), region), service), "aws4_request");
  const signature = hmac(key, text).toString("hex");
  added["authorization"] =
    `AWS4-HMAC-SHA256 Credential=${accessKey}/${scope}, SignedHeaders=${names.join(";")}, Signature=${signature}`;
  return added;
}
