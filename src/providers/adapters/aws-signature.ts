// AWS Signature Version 4 over a POST with a body, as the API's reference describes it.
// Refuses presigned addresses and chunked uploads: model calls need neither.

export interface AwsCredentials {
  accessKey: string;
  secretKey: string;
}

export interface AwsRequest {
  method: string;
  /** As it goes over the wire: path and query already escaped. */
  url: URL;
  /** Headers to sign beside host and date, names in any case. */
  headers?: Readonly<Record<string, string>>;
  body: string | Uint8Array;
}

export interface AwsScope {
  region: string;
  service: string;
  /** Milliseconds since 1970. */
  nowMs: number;
}

const ALGORITHM = "AWS4-HMAC-SHA256";

function sha256(data: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(data).digest("hex");
}

function hmac(key: string | Uint8Array, data: string): Uint8Array {
  return new Bun.CryptoHasher("sha256", key).update(data).digest();
}

/** RFC 3986: what encodeURIComponent leaves alone beyond the unreserved characters is escaped as well. */
function escape(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The path escaped once more, segment by segment: every service but S3 signs what it gets that way. */
function canonicalPath(url: URL): string {
  return url.pathname.split("/").map(escape).join("/") || "/";
}

function canonicalQuery(url: URL): string {
  return [...url.searchParams]
    .map(([name, value]) => [escape(name), escape(value)] as const)
    .sort(([a, x], [b, y]) => (a === b ? compare(x, y) : compare(a, b)))
    .map(([name, value]) => `${name}=${value}`)
    .join("&");
}

/** Order by code units, which is what byte order means for escaped text. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** `20150830T123600Z`. */
function amzDate(nowMs: number): string {
  return new Date(nowMs).toISOString().replace(/\.\d{3}|[:-]/g, "");
}

/** The headers to send with the request: x-amz-date and authorization (the host is fetch's own). */
export function signAws(
  credentials: AwsCredentials,
  scope: AwsScope,
  request: AwsRequest,
): { "x-amz-date": string; authorization: string } {
  const date = amzDate(scope.nowMs);
  const signed = new Map<string, string>([
    ["host", request.url.host],
    ["x-amz-date", date],
  ]);
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    signed.set(name.toLowerCase(), value.trim().replace(/ +/g, " "));
  }
  const names = [...signed.keys()].sort(compare);
  const signedHeaders = names.join(";");
  const canonical = [
    request.method,
    canonicalPath(request.url),
    canonicalQuery(request.url),
    ...names.map((name) => `${name}:${signed.get(name) ?? ""}`),
    "",
    signedHeaders,
    sha256(request.body),
  ].join("\n");
  const day = date.slice(0, 8);
  const { region, service } = scope;
  const credentialScope = `${day}/${region}/${service}/aws4_request`;
  const toSign = [ALGORITHM, date, credentialScope, sha256(canonical)].join("\n");
  const key = [region, service, "aws4_request"].reduce<Uint8Array>(
    (parent, part) => hmac(parent, part),
    hmac(`AWS4${credentials.secretKey}`, day),
  );
  const signature = Buffer.from(hmac(key, toSign)).toString("hex");
  const { accessKey } = credentials;
  return {
    "x-amz-date": date,
    authorization: `${ALGORITHM} Credential=${accessKey}/${credentialScope}, SignedHeaders=${signedHeaders}, Signature=${signature}`,
  };
}
