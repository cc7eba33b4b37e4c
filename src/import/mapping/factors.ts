// Second factors of the later products: one-time codes with their backup codes, and passkeys.
// Refuses a secret that no program could make codes of, and passkeys of another host, which browsers would never offer here.
import type { Sealer } from "../../core/kit/seal.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import { flagOf, isGiven, jsonOf, secondsOf, textOf, wholeOf } from "../values.ts";

export interface FactorFacts {
  notes: Notes;
  seal: Sealer;
  now: number;
  /** Whether the account is among those that live. */
  isLiving: (userId: number) => boolean;
  /** Host of the old site's passkeys, and of ours; "" where nobody said. */
  passkeyHost: { old: string; own: string };
}

/** RFC 4648, as authenticator programs take it. */
const BASE32 = /^[A-Z2-7]{16,}=*$/;
/** bcrypt, as the old products hash a code `XXXX-XXXX`. */
const BCRYPT = /^\$2[aby]\$\d\d\$.{53}$/;

export function mapTotp(
  row: SourceRow,
  { notes, seal, now, isLiving }: FactorFacts,
): NewRow<"totps"> | undefined {
  notes.read("two_fas");
  const userId = wholeOf(row, "user_id");
  if (isGiven(row, "deleted_at") || !flagOf(row, "is_enabled")) return undefined;
  if (!isLiving(userId)) {
    notes.rejected("two_fas", "user_gone", userId);
    return undefined;
  }
  const secret = textOf(row, "secret").replaceAll(/[\s-]/g, "").toUpperCase();
  if (!BASE32.test(secret)) {
    notes.rejected("two_fas", "totp_unusable", userId);
    return undefined;
  }
  notes.carried("two_fas");
  return { userId, secretSealed: seal.seal("user", secret), createdAt: secondsOf(row, "created_at") || now };
}

/** `hasTotp`: codes of an account without the factor would open nothing. */
export function mapBackupCode(
  row: SourceRow,
  notes: Notes,
  hasTotp: (userId: number) => boolean,
): Omit<NewRow<"backupCodes">, "id"> | undefined {
  notes.read("two_fa_backup_codes");
  const userId = wholeOf(row, "user_id");
  const hash = textOf(row, "code_hash");
  const isOver = isGiven(row, "deleted_at") || flagOf(row, "is_used");
  if (isOver || !hasTotp(userId) || !BCRYPT.test(hash)) return undefined;
  notes.carried("two_fa_backup_codes");
  return { userId, hash };
}

/** Standard base64 as base64url; "" where it is none. */
function url64(text: string): string {
  if (text === "" || !/^[A-Za-z0-9+/_-]+=*$/.test(text)) return "";
  return Buffer.from(text, "base64").toString("base64url");
}

function transportsOf(row: SourceRow): string {
  const found = jsonOf(row, "transports");
  return Array.isArray(found) ? found.filter((each) => typeof each === "string").join(",") : "";
}

export function mapPasskey(
  row: SourceRow,
  { notes, now, isLiving, passkeyHost }: FactorFacts,
): Omit<NewRow<"passkeys">, "id"> | undefined {
  notes.read("passkey_credentials");
  const userId = wholeOf(row, "user_id");
  if (isGiven(row, "deleted_at")) return undefined;
  const credentialId = url64(textOf(row, "credential_id"));
  const publicKey = url64(textOf(row, "public_key"));
  const problem = !isLiving(userId)
    ? "user_gone"
    : passkeyHost.old === "" || passkeyHost.old !== passkeyHost.own
      ? "passkey_host"
      : credentialId === "" || publicKey === ""
        ? "passkey_unusable"
        : undefined;
  if (problem) {
    notes.rejected("passkey_credentials", problem, userId);
    return undefined;
  }
  notes.carried("passkey_credentials");
  const aaguid = Buffer.from(textOf(row, "aaguid"), "base64").toString("hex");
  return {
    userId,
    credentialId,
    publicKey,
    counter: Math.max(0, wholeOf(row, "sign_count")),
    transports: transportsOf(row),
    deviceType: flagOf(row, "backup_eligible") ? "multiDevice" : "singleDevice",
    backedUp: flagOf(row, "backup_state"),
    aaguid: aaguid.length === 32 ? aaguid.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5") : "",
    name: "Passkey 1",
    createdAt: secondsOf(row, "created_at") || now,
    lastUsedAt: secondsOf(row, "last_used_at"),
  };
}

/** Accounts whom the rules of the old product's own engine deny something: `p, user:<id> or <id>, …, deny`. */
export function deniedBy(rows: readonly SourceRow[]): Set<number> {
  const denied = new Set<number>();
  for (const row of rows) {
    const values = ["v0", "v1", "v2", "v3", "v4", "v5"].map((column) => textOf(row, column));
    const id = Number(/^(?:user:|u:)?(\d+)$/.exec(values[0] ?? "")?.[1]);
    if (values.some((value) => value.toLowerCase() === "deny") && id > 0) denied.add(id);
  }
  return denied;
}
