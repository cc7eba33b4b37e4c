// A forgotten password: a link by letter, and the new password that it is worth.
// Refuses to tell whether an address has an account: the answer is the same, and the letter goes behind it.
import { randomBytes, randomInt } from "node:crypto";
import { and, eq, isNull, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import { UserStatus } from "../../shared/enums.ts";
import type { Language } from "../../shared/enums.ts";
import { Failure, refuse } from "../../shared/failures.ts";
import type { Deps } from "../deps.ts";
import { auditSteps } from "../logs/audit.ts";
import type { Origin } from "../logs/audit.ts";
import { sha256Hex } from "../kit/seal.ts";
import { checkNewPassword } from "./account-rules.ts";
import { beginFlow, consumeSteps, endFlowsSteps } from "./auth-flows.ts";
import { hashPassword } from "./credentials.ts";
import { forgetDevices } from "./devices.ts";
import { foldMail } from "./folding.ts";
import { letterLanguage, letterOf, siteLink } from "./letter-form.ts";
import { passwordWasResetWords, resetWords } from "./letter-texts.ts";
import { ownerOfMail } from "./mail-rules.ts";
import { mailServer } from "./mail-server.ts";
import { postSteps, sendSoon } from "./outbox.ts";
import { sendNow } from "./registration.ts";

/** Whether links can be made and sent at all. */
export function canReset(deps: Pick<Deps, "options">): boolean {
  return mailServer(deps) !== undefined && deps.options.get("ServerAddress") !== "";
}

/** Answers alike for every address; `asked`: what the visitor's browser prefers. Never waits for the mail server. */
export async function requestReset(deps: Deps, typed: string, asked: Language | undefined): Promise<void> {
  if (!canReset(deps)) throw refuse("reset_unavailable");
  const mail = foldMail(typed);
  if (!mail) throw new Failure("client", "mail_wrong", { param: "email" });
  const owner = await ownerOfMail(deps, mail.key);
  const isOpen = owner !== undefined && owner.deletedAt === null && owner.status === UserStatus.enabled;
  const token = randomBytes(16).toString("hex");
  await beginFlow(deps, {
    kind: "reset",
    subjectKey: mail.key,
    userId: isOpen ? owner.id : 0,
    hash: () => sha256Hex(token),
  });
  if (!isOpen) return;
  const language = letterLanguage(deps, owner.setting, asked);
  const url = siteLink(deps, `/user/reset?email=${encodeURIComponent(owner.email)}&token=${token}`);
  const words = resetWords(language, deps.options.get("SystemName"), url);
  sendNow(deps, letterOf(deps, owner.email, language, words)).catch((error: unknown) =>
    deps.logger.warn("a reset link did not go", { user: owner.id, error: String(error) }),
  );
}

const PASSWORD_CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789";
const PASSWORD_LENGTH = 12;

function newPassword(): string {
  return Array.from(
    { length: PASSWORD_LENGTH },
    () => PASSWORD_CHARACTERS[randomInt(PASSWORD_CHARACTERS.length)],
  ).join("");
}

export interface ResetInput {
  email: string;
  token: string;
  /** The new password; empty: one is made. */
  password: string;
  origin: Origin;
}

/**
 * Gives the account a new password and ends whatever could still act for it: sessions, devices, the access token, what was
 * begun. Second factors stay. Answers the account's id, and the password where it was made here.
 */
export async function resetPassword(
  deps: Deps,
  { email, token, password, origin }: ResetInput,
  asked: Language | undefined,
): Promise<{ userId: number; made: string }> {
  const mail = foldMail(email);
  if (!mail || token === "") throw refuse("invalid_params");
  if (password !== "") checkNewPassword(password, { username: "", mail: mail.key });
  const made = password === "" ? newPassword() : "";
  const passwordHash = await hashPassword(made || password);
  const { users } = deps.db.t;
  const userId = await deps.db.atomic(function* (tx) {
    const hash = sha256Hex(token);
    const flow = yield* consumeSteps(tx, deps, { kind: "reset", subjectKey: mail.key, hash });
    if (!flow) throw refuse("reset_link_wrong");
    const [row] = yield* q(
      tx
        .update(users)
        .set({ passwordHash, accessTokenHash: null, sessionVersion: sql`${users.sessionVersion} + 1` })
        .where(
          and(
            eq(users.id, flow.userId),
            eq(users.emailKey, mail.key),
            isNull(users.deletedAt),
            eq(users.status, UserStatus.enabled),
          ),
        )
        .returning({
          id: users.id,
          username: users.username,
          role: users.role,
          email: users.email,
          setting: users.setting,
        }),
    );
    if (!row) throw refuse("reset_link_wrong");
    yield* auditSteps(tx, deps, { user: row, action: "password.reset", by: { ...row, ...origin } });
    yield* endFlowsSteps(tx, deps, row.id);
    const language = letterLanguage(deps, row.setting, asked);
    const words = passwordWasResetWords(language, deps.options.get("SystemName"), siteLink(deps, "/reset"));
    const letter = letterOf(deps, row.email, language, words);
    yield* postSteps(tx, deps, { userId: row.id, kind: "password_reset", letter });
    return row.id;
  });
  await deps.accounts.userChanged(userId);
  await deps.sessions.endAll(userId, "reset");
  await forgetDevices(deps, userId);
  sendSoon(deps);
  return { userId, made };
}
