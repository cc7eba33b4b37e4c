// The second step of a sign-in: whoever has one-time codes shows one, or a passkey, before there is a session.
// Refuses to say that a factor is asked before the first proof was right.
import { eq } from "drizzle-orm";
import { UserStatus } from "../../shared/enums.ts";
import { refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { factorsOf } from "./factors/factor-rows.ts";
import { arePasskeysOn } from "./factors/passkeys.ts";
import { proveSecondCode } from "./factors/totp.ts";
import type { SignInMethod } from "./session-rows.ts";
import { countWrong, findTokenFlow, openTokenFlow, useTokenFlow } from "./token-flows.ts";
import type { UserRow } from "./users.ts";

export type SecondFactorDeps = Pick<Deps, "db" | "clock" | "seal" | "options" | "accounts">;

const FLOW_SECONDS = 300;

interface FirstProof {
  method: SignInMethod;
  provider: string;
  sessionVersion: number;
}

export interface SecondStep {
  require_2fa: true;
  flow_token: string;
  methods: string[];
}

/** The second step that the account asks for; undefined: none, the first proof is enough. */
export async function beginSecondFactor(
  deps: SecondFactorDeps,
  user: Pick<UserRow, "id" | "sessionVersion">,
  { method, provider = "" }: { method: SignInMethod; provider?: string },
): Promise<SecondStep | undefined> {
  const { hasTotp, passkeys, backupCodesLeft } = await factorsOf(deps, user.id);
  if (!hasTotp) return undefined;
  const payload: FirstProof = { method, provider, sessionVersion: user.sessionVersion };
  const flowToken = await openTokenFlow(deps, {
    kind: "login_2fa",
    userId: user.id,
    provider,
    payload,
    seconds: FLOW_SECONDS,
  });
  const methods = ["totp"];
  if (backupCodesLeft > 0) methods.push("backup");
  if (passkeys > 0 && arePasskeysOn(deps)) methods.push("passkey");
  return { require_2fa: true, flow_token: flowToken, methods };
}

export interface Entered {
  user: UserRow;
  method: SignInMethod;
  provider: string;
}

/** The account of a flow, if it may still come in as it could when the flow began. Throws `login_failed`. */
async function accountOf(
  deps: SecondFactorDeps,
  userId: number,
  { method, provider, sessionVersion }: FirstProof,
): Promise<Entered> {
  const { users } = deps.db.t;
  const [user] = await deps.db.orm.select().from(users).where(eq(users.id, userId));
  const isWell = user?.deletedAt === null && user.status === UserStatus.enabled;
  if (!user || !isWell || user.sessionVersion !== sessionVersion) throw refuse("login_failed");
  return { user, method, provider };
}

/** By a code. Throws `flow_over`, `second_factor_wrong`, `too_many_attempts`, `login_failed`. */
export async function finishByCode(
  deps: SecondFactorDeps,
  flowToken: string,
  code: string,
): Promise<Entered> {
  const flow = await findTokenFlow<FirstProof>(deps, "login_2fa", flowToken);
  if (!flow) throw refuse("flow_over");
  if (!(await proveSecondCode(deps, flow.userId, code))) {
    await countWrong(deps, "login_2fa", flowToken);
    throw refuse("second_factor_wrong");
  }
  if (!(await useTokenFlow(deps, "login_2fa", flowToken))) throw refuse("flow_over");
  return accountOf(deps, flow.userId, flow.payload);
}

/** By a passkey that `owner` has just shown. Throws `flow_over`, `passkey_refused`, `login_failed`. */
export async function finishByPasskey(
  deps: SecondFactorDeps,
  flowToken: string,
  owner: UserRow,
): Promise<Entered> {
  const flow = await useTokenFlow<FirstProof>(deps, "login_2fa", flowToken);
  if (!flow) throw refuse("flow_over");
  if (flow.userId !== owner.id) throw refuse("passkey_refused");
  return accountOf(deps, flow.userId, flow.payload);
}
