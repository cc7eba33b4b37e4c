// A new secret for an API key: the same key otherwise, and the secret before it taken for a while.
import { eq } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps, UserAccount } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { AuditActor } from "../logs/audit.ts";
import { tokenRotated } from "../logs/sentences.ts";
import { newSecret } from "./token-secret.ts";
import { lockedRow } from "./tokens.ts";
import { tokenWithUse } from "./token-json.ts";
import type { TokenJson } from "./token-json.ts";

/**
 * A new secret for the key, which keeps its settings, its limits and its history. The one before is taken for so many
 * seconds more; one before that is not, whatever was said of it.
 */
export async function rotateToken(
  deps: Deps,
  owner: UserAccount,
  { id, graceSeconds, by }: { id: number; graceSeconds: number; by: AuditActor },
): Promise<TokenJson> {
  const { tokens } = deps.db.t;
  const saved = await deps.db.atomic(function* (tx) {
    const before = yield* lockedRow(deps, tx, owner, id);
    const previous =
      graceSeconds === 0
        ? { previousKeyHash: null, previousUntil: 0 }
        : {
            previousKeyHash: before.keyHash,
            previousUntil: Math.floor(deps.clock.nowMs() / 1000) + graceSeconds,
          };
    const [row] = yield* q(
      tx
        .update(tokens)
        .set({ ...newSecret(deps), ...previous })
        .where(eq(tokens.id, id))
        .returning(),
    );
    if (!row) throw refuse("record_missing");
    yield* auditSteps(tx, deps, {
      user: owner,
      action: "key.rotated",
      params: { id, name: row.name, grace_seconds: graceSeconds },
      by,
      content: tokenRotated(row.name, graceSeconds),
    });
    return row;
  });
  await deps.accounts.tokenChanged(id);
  return tokenWithUse(deps, saved);
}
