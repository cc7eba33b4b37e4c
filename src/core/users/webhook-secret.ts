// The secret that signs a user's webhooks: sealed in the user's setting, opened when a notice is sent.
// Refuses to leave what earlier versions wrote in clear.
import { and, eq, like } from "drizzle-orm";
import type { Deps, UserSetting } from "../deps.ts";
import { parseSetting } from "./account-rows.ts";
import type { Sealer } from "../kit/seal.ts";

/** The setting with its secret sealed; also one that an earlier version wrote. */
export function withSealedSecret(seal: Sealer, setting: UserSetting): UserSetting {
  const { webhook_secret: clear, ...rest } = setting;
  if (clear === undefined || clear === "") return rest;
  return { ...rest, webhook_secret_sealed: seal.seal("user", clear) };
}

export function hasSecret(setting: UserSetting): boolean {
  return Boolean(setting.webhook_secret_sealed || setting.webhook_secret);
}

/** Empty where none is set. Throws SealError when it was sealed under another key. */
export function openSecret(seal: Sealer, setting: UserSetting): string {
  return setting.webhook_secret ?? seal.open("user", setting.webhook_secret_sealed ?? "");
}

/** Seals what earlier versions left in clear. Call at the start; a setting that is changed meanwhile is left to its writer. */
export async function sealClearSecrets({ db, seal }: Pick<Deps, "db" | "seal">): Promise<number> {
  const { users } = db.t;
  const rows = await db.orm
    .select({ id: users.id, setting: users.setting })
    .from(users)
    .where(like(users.setting, '%"webhook_secret"%'));
  let sealed = 0;
  for (const { id, setting } of rows) {
    const changed = await db.orm
      .update(users)
      .set({ setting: JSON.stringify(withSealedSecret(seal, parseSetting(setting))) })
      .where(and(eq(users.id, id), eq(users.setting, setting)))
      .returning({ id: users.id });
    sealed += changed.length;
  }
  return sealed;
}
