// Controller of /api/usage: what a program may know of its own key.
// Units are quota units; a key without a limit of its own tells what it has used, and that there is none.
import { Elysia } from "elysia";
import type { Deps, TokenAccount } from "../core/deps.ts";
import { limitsOfKey } from "../core/users/own-limits.ts";
import { failureResponse } from "../http/failures.ts";
import { ANY_SITE, createKeyReader } from "../http/key-reader.ts";
import { presentedKey } from "../http/relay-key.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

/** As the call's clients know it: `code` is true in place of `success`, 0 = never expires. */
async function tokenUsage(deps: Deps, token: TokenAccount) {
  const { name, remainQuota, usedQuota, unlimitedQuota, modelLimits, expiredTime } = token;
  return {
    code: true as const,
    message: "ok",
    data: {
      object: "token_usage" as const,
      name,
      total_granted: remainQuota + usedQuota,
      total_used: usedQuota,
      total_available: remainQuota,
      unlimited_quota: unlimitedQuota,
      model_limits: Object.fromEntries([...(modelLimits ?? [])].map((model) => [model, true])),
      model_limits_enabled: modelLimits !== undefined,
      expires_at: Math.max(0, expiredTime),
      // † Of the key itself, with what is spent of its budget; null: it has none.
      limits: await limitsOfKey(deps, token),
    },
  };
}

export function usage(deps: Deps, session: SessionSettings) {
  const tokenOfKey = createKeyReader(deps, session.limits);
  return new Elysia({ prefix: "/api" }).use(policy(session)).get(
    "/usage/token",
    async ({ request, set, language, address }) => {
      Object.assign(set.headers, ANY_SITE);
      const token = await tokenOfKey(presentedKey(request).key, address);
      if (!(token instanceof Failure)) return tokenUsage(deps, token);
      const answer = failureResponse(token, language);
      for (const [name, value] of Object.entries(ANY_SITE)) answer.headers.set(name, value);
      return answer;
    },
    { open: "public" },
  );
}
