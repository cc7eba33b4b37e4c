// The caller's wallet: redeeming codes, invitations, and the own settings.
// Refuses more than a few guesses at codes per account and per address, and more than a few test notices.
import { Elysia, t } from "elysia";
import { affiliateCode, transferReward } from "../core/users/affiliates.ts";
import { createAttemptLimit } from "../core/kit/attempt-limit.ts";
import type { Deps, UserAccount } from "../core/deps.ts";
import { redeem } from "../core/users/redemptions.ts";
import { testSetting, updateSetting } from "../core/users/settings.ts";
import { done, ok } from "../http/envelope.ts";
import { failureText, messageText } from "../http/messages.ts";
import { plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure, refuse } from "../shared/failures.ts";

const WINDOW_MS = 20 * 60_000;
const WRONG_PER_ACCOUNT = 20;
const WRONG_PER_ADDRESS = 200;
const MAX_CODES = 100;
/** A test notice makes this server call an address of the user's choice. */
const TESTS_PER_ACCOUNT = 5;
const TEST_WINDOW_MS = 10 * 60_000;

const settingBody = t.Object({
  notify_type: t.Optional(plainText(20)),
  quota_warning_threshold: t.Optional(t.Number()),
  webhook_url: t.Optional(plainText(2048)),
  webhook_secret: t.Optional(plainText(255)),
  notification_email: t.Optional(plainText(320)),
  accept_unset_model_ratio_model: t.Optional(t.Boolean()),
});

/** What became of one of several codes. */
interface RedeemResult {
  key: string;
  /** Quota units; 0 when it was refused. */
  quota: number;
  /** Undefined: it was redeemed. */
  failure: Failure | undefined;
}

interface RedeemTerms {
  actor: UserAccount;
  address: string;
}

/** Redeems codes: every guess costs an attempt of the account and of the address; a good code gives both back. */
function createRedeemer(deps: Deps, limits: SessionSettings["limits"]) {
  const perAccount = createAttemptLimit(WRONG_PER_ACCOUNT, WINDOW_MS, () => deps.clock.monotonicMs());
  const perAddress = limits.perAddress("redeem", { count: WRONG_PER_ADDRESS, windowMs: WINDOW_MS });

  async function one({ actor, address }: RedeemTerms, key: string): Promise<number> {
    // The account first: whoever is at their own limit takes nothing more from their neighbours.
    const own = perAccount.take(String(actor.id));
    if (own !== undefined) throw tooManyAttempts(own);
    const shared = await perAddress.take(address);
    if (shared !== undefined) {
      perAccount.giveBack(String(actor.id));
      throw tooManyAttempts(shared);
    }
    const quota = await redeem(deps, actor, key);
    perAddress.giveBack(address);
    perAccount.giveBack(String(actor.id));
    return quota;
  }

  /** Answers for every code, also when the attempts run out half-way: what was credited before has to be reported. */
  async function several(terms: RedeemTerms, keys: readonly string[]): Promise<RedeemResult[]> {
    const results: RedeemResult[] = [];
    for (const key of keys) {
      try {
        results.push({ key, quota: await one(terms, key), failure: undefined });
      } catch (error) {
        if (results.length === 0 && (!(error instanceof Failure) || error.kind === "limit")) throw error;
        if (!(error instanceof Failure))
          deps.logger.error("a code could not be redeemed", { user: terms.actor.id, error: String(error) });
        results.push({
          key,
          quota: 0,
          failure: error instanceof Failure ? error : refuse("redemption_failed"),
        });
      }
    }
    return results;
  }

  return { one, several };
}

function tooManyAttempts(seconds: number): Failure {
  return new Failure("limit", "too_many_attempts", { params: { seconds }, retryAfterSeconds: seconds });
}

export function wallet(deps: Deps, session: SessionSettings) {
  const redeemer = createRedeemer(deps, session.limits);
  const tests = createAttemptLimit(TESTS_PER_ACCOUNT, TEST_WINDOW_MS, () => deps.clock.monotonicMs());

  return (
    new Elysia({ prefix: "/api/user" })
      .use(policy(session))
      .post(
        "/topup",
        async ({ actor, body, address }) => ok(await redeemer.one({ actor, address }, body.key ?? "")),
        { access: "user", body: t.Object({ key: t.Optional(plainText(255)) }) },
      )
      // † Several codes at once, each with an answer of its own.
      .post(
        "/topup/batch",
        async ({ actor, body, address, language }) => {
          const keys = [...new Set(body.keys.map((key) => key.trim()).filter((key) => key !== ""))];
          const results = (await redeemer.several({ actor, address }, keys)).map(
            ({ key, quota, failure }) => ({
              key,
              quota,
              success: failure === undefined,
              message: failure ? failureText(failure, language) : "",
            }),
          );
          return ok(results);
        },
        {
          access: "user",
          body: t.Object({ keys: t.Array(plainText(255), { minItems: 1, maxItems: MAX_CODES }) }),
        },
      )
      .get("/aff", async ({ actor }) => ok(await affiliateCode(deps, actor)), { access: "user" })
      .post(
        "/aff_transfer",
        async ({ actor, body, language }) => {
          await transferReward(deps, actor, body.quota);
          return { ...done(), message: messageText("aff_transferred", language) };
        },
        {
          access: "user",
          body: t.Object({ quota: t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) }),
        },
      )
      // † Sends a test notice the way the body says, without saving it.
      .post(
        "/setting/test",
        async ({ actor, body, language }) => {
          const seconds = tests.take(String(actor.id));
          if (seconds !== undefined) throw tooManyAttempts(seconds);
          await testSetting(deps, actor, body, language);
          return done();
        },
        { access: "user", body: settingBody },
      )
      .put(
        "/setting",
        async ({ actor, body, language }) => {
          await updateSetting(deps, actor, body, language);
          return { ...done(), message: messageText("setting_saved", language) };
        },
        {
          access: "user",
          body: settingBody,
        },
      )
  );
}
