// The step between a proven first factor and a session: whether the account has a second one, and the flow that waits for it.
import { randomBytes } from "node:crypto";
import { eq } from "drizzle-orm";
import type { Deps } from "../deps.ts";
import { sha256Hex } from "../kit/seal.ts";
import type { SignInMethod } from "./session-rows.ts";
import type { UserRow } from "./users.ts";

const FLOW_SECONDS = 300;

export interface FactorAsked {
  require_2fa: true;
  flow_token: string;
  methods: ("totp" | "backup" | "passkey")[];
}

/** Begins the wait for a second factor; undefined: the account has none. */
export async function beginSecondFactor(
  deps: Pick<Deps, "db" | "clock" | "seal">,
  user: UserRow,
  proof: { method: SignInMethod; provider?: string },
): Promise<FactorAsked | undefined> {
  const { authFlows, passkeys, totps } = deps.db.t;
  const [totp] = await deps.db.orm.select({ id: totps.userId }).from(totps).where(eq(totps.userId, user.id));
  if (!totp) return undefined;
  const [passkey] = await deps.db.orm
    .select({ id: passkeys.id })
    .from(passkeys)
    .where(eq(passkeys.userId, user.id))
    .limit(1);
  const token = randomBytes(32).toString("base64url");
  const now = Math.floor(deps.clock.nowMs() / 1000);
  await deps.db.orm.insert(authFlows).values({
    kind: "login_2fa",
    secretHash: sha256Hex(token),
    subjectKey: `#${user.id}`,
    userId: user.id,
    provider: proof.provider ?? "",
    payload: deps.seal.seal("flow", JSON.stringify({ method: proof.method, version: user.sessionVersion })),
    createdAt: now,
    expiresAt: now + FLOW_SECONDS,
  });
  const methods: FactorAsked["methods"] = passkey ? ["totp", "backup", "passkey"] : ["totp", "backup"];
  return { require_2fa: true, flow_token: token, methods };
}
