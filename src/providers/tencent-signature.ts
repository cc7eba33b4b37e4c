// Tencent Cloud's TC3-HMAC-SHA256 for one request, as its documentation "Signature v3" defines it.
// Proven against the documented example.
import { createHash, createHmac } from "node:crypto";

export interface Tc3Request {
  secretId: string;
  secretKey: string;
  service: string;
  host: string;
  action: string;
  contentType: string;
  body: string;
  /** Unix seconds. */
  timestamp: number;
}

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();

/** The authorization header. */
export function signTc3(request: Tc3Request): string {
  const { secretId, secretKey, service, host, action, contentType, body, timestamp } = request;
  const day = new Date(timestamp * 1000).toISOString().slice(0, 10);
  const signedHeaders = "content-type;host;x-tc-action";
  const headers = `content-type:${contentType}\nhost:${host}\nx-tc-action:${action.toLowerCase()}\n`;
  const canonical = ["POST", "/", "", headers, signedHeaders, sha256(body)].join("\n");
  const scope = `${day}/${service}/tc3_request`;
  const text = ["TC3-HMAC-SHA256", timestamp, scope, sha256(canonical)].join("\n");
  const key = hmac(hmac(hmac(`TC3${secretKey}`, day), service), "tc3_request");
  const signature = hmac(key, text).toString("hex");
  return `TC3-HMAC-SHA256 Credential=${secretId}/${scope}, SignedHeaders=${signedHeaders}, Signature=${signature}`;
}
