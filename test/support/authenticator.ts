// An authenticator for tests: makes ES256 passkeys and signs challenges as WebAuthn (level 3, sections 6.1 and 6.5) describes.
// It does whatever it is told to, wrong things too.
import { createHash, createSign, generateKeyPairSync, randomBytes } from "node:crypto";
import type { KeyObject } from "node:crypto";

type Cbor = number | string | Buffer | Map<number | string, Cbor>;

function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  if (value < 256) return Buffer.from([(major << 5) | 24, value]);
  return Buffer.from([(major << 5) | 25, value >> 8, value & 255]);
}

/** As much of CBOR (RFC 8949) as attestations need. */
function cbor(value: Cbor): Buffer {
  if (typeof value === "number") return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === "string")
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Map)
    return Buffer.concat([
      head(5, value.size),
      ...[...value].flatMap(([key, each]) => [cbor(key), cbor(each)]),
    ]);
  return Buffer.concat([head(2, value.length), value]);
}

const PRESENT = 0x01;
const VERIFIED = 0x04;
const ATTESTED = 0x40;

export interface Deed {
  challenge: string;
  origin: string;
  rpId: string;
  counter?: number;
  isVerified?: boolean;
  userHandle?: string | null;
}

export interface Authenticator {
  id: string;
  register(deed: Deed): Record<string, unknown>;
  assert(deed: Deed): Record<string, unknown>;
}

export function createAuthenticator(): Authenticator {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const rawId = randomBytes(16);
  const id = rawId.toString("base64url");

  const clientData = (type: string, { challenge, origin }: Deed): Buffer =>
    Buffer.from(JSON.stringify({ type, challenge, origin, crossOrigin: false }));

  function authData({ rpId, counter = 0, isVerified = true }: Deed, attested?: Buffer): Buffer {
    const flags = PRESENT | (isVerified ? VERIFIED : 0) | (attested ? ATTESTED : 0);
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    const hash = createHash("sha256").update(rpId).digest();
    return Buffer.concat([hash, Buffer.from([flags]), count, attested ?? Buffer.alloc(0)]);
  }

  return {
    id,
    register(deed) {
      const key = coseKey(publicKey);
      const length = Buffer.from([0, rawId.length]);
      const data = authData(deed, Buffer.concat([Buffer.alloc(16), length, rawId, key]));
      const attestation = new Map<string, Cbor>([
        ["fmt", "none"],
        ["attStmt", new Map()],
        ["authData", data],
      ]);
      return {
        id,
        rawId: id,
        type: "public-key",
        clientExtensionResults: {},
        response: {
          clientDataJSON: clientData("webauthn.create", deed).toString("base64url"),
          attestationObject: cbor(attestation).toString("base64url"),
          transports: ["internal"],
        },
      };
    },
    assert(deed) {
      const data = authData(deed);
      const client = clientData("webauthn.get", deed);
      const signed = Buffer.concat([data, createHash("sha256").update(client).digest()]);
      return {
        id,
        rawId: id,
        type: "public-key",
        clientExtensionResults: {},
        response: {
          clientDataJSON: client.toString("base64url"),
          authenticatorData: data.toString("base64url"),
          signature: createSign("SHA256").update(signed).sign(privateKey).toString("base64url"),
          ...(deed.userHandle === null || deed.userHandle === undefined
            ? {}
            : { userHandle: deed.userHandle }),
        },
      };
    },
  };
}

/** EC2, ES256, P-256 (RFC 9053). */
function coseKey(publicKey: KeyObject): Buffer {
  const { x = "", y = "" } = publicKey.export({ format: "jwk" });
  return cbor(
    new Map<number, Cbor>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, Buffer.from(x, "base64url")],
      [-3, Buffer.from(y, "base64url")],
    ]),
  );
}
