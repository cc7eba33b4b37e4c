// THE typed route module: one line per controller, with its URL prefix beside it. Eden types the console from it.
// Refuses to start with a route that declares no permission (checked in app.ts).
import { Elysia } from "elysia";
import { account } from "./api/account.ts";
import { catalog } from "./api/catalog.ts";
import { channelBulk } from "./api/channel-bulk.ts";
import { channelHealth } from "./api/channel-health.ts";
import { channelKeys } from "./api/channel-keys.ts";
import { channelOps } from "./api/channel-ops.ts";
import { channelUpstream } from "./api/channel-upstream.ts";
import { channelRules } from "./api/channel-rules.ts";
import { channels } from "./api/channels.ts";
import { costs } from "./api/costs.ts";
import { config } from "./api/config.ts";
import { customProviders } from "./api/custom-providers.ts";
import { data } from "./api/data.ts";
import { logClearing } from "./api/log-clearing.ts";
import { logExport } from "./api/log-export.ts";
import { inbox } from "./api/inbox.ts";
import { logs } from "./api/logs.ts";
import { metrics } from "./api/metrics.ts";
import type { MetricsAccess } from "./api/metrics.ts";
import { modelNotices } from "./api/model-notices.ts";
import { optionPreviews } from "./api/option-previews.ts";
import { oauthWidgets } from "./api/oauth-widgets.ts";
import { oauth } from "./api/oauth.ts";
import { options } from "./api/options.ts";
import { priceDrafts } from "./api/price-drafts.ts";
import { priceSync } from "./api/price-sync.ts";
import { prices } from "./api/prices.ts";
import { preflight } from "./api/preflight.ts";
import { rescueRoutes } from "./api/rescue.ts";
import { registration } from "./api/registration.ts";
import { orders } from "./api/orders.ts";
import { payments } from "./api/payments.ts";
import { plans } from "./api/plans.ts";
import { secondFactors } from "./api/second-factors.ts";
import { redemptions } from "./api/redemptions.ts";
import { sessions } from "./api/sessions.ts";
import { system } from "./api/system.ts";
import { tasks } from "./api/tasks.ts";
import { probes } from "./api/probes.ts";
import { tokens } from "./api/tokens.ts";
import { usage } from "./api/usage.ts";
import { userBulk } from "./api/user-bulk.ts";
import { users } from "./api/users.ts";
import { wallet } from "./api/wallet.ts";
import type { ChannelProbe, ChannelWatch } from "./core/channels/watch.ts";
import type { Deps } from "./core/deps.ts";
import type { Readiness } from "./core/site/readiness.ts";
import type { SessionSettings } from "./http/session.ts";
import { anthropicRelay } from "./relay/anthropic.ts";
import { billingRelay } from "./relay/billing.ts";
import { geminiRelay } from "./relay/gemini.ts";
import { midjourneyRelay } from "./relay/midjourney.ts";
import { openaiRelay } from "./relay/openai.ts";
import type { Moving } from "./moving.ts";
import type { Relay } from "./relay/call/pipeline.ts";
import { sunoRelay } from "./relay/suno.ts";

/** The gateway itself, and what administrators may ask of single channels. */
export interface Gateway {
  relay: Relay;
  watch: ChannelWatch;
  probe: ChannelProbe;
  metrics: MetricsAccess;
  readiness: Readiness;
  /** Which of several processes on the port this is. */
  worker: number | undefined;
  moving: Moving;
}

/** By themselves: one chain of all controllers is longer than the checker follows types. */
function peopleRoutes(deps: Deps, session: SessionSettings) {
  return new Elysia()
    .use(account(deps, session)) //       /api/user/login, logout, self, token, setting, models, groups
    .use(secondFactors(deps, session)) // /api/user/2fa, passkey, login/2fa; /api/verify
    .use(registration(deps, session)) //  /api/verification, reset_password, user/register, user/reset, oauth/email
    .use(rescueRoutes(deps, session)) //  /api/user/rescue
    .use(oauthWidgets(deps, session)) //  /api/oauth/wechat, telegram
    .use(oauth(deps, session)) //         /api/oauth, /api/user/oauth: sign-in providers and bindings
    .use(sessions(deps, session)) //      /api/user/sessions, :id/sessions
    .use(userBulk(deps, session)) //      /api/user/bulk, notes
    .use(users(deps, session)); //        /api/user (administration)
}

function moneyRoutes(deps: Deps, session: SessionSettings) {
  return new Elysia()
    .use(payments(deps, session)) //      /api/user/pay, amount, topup/info, topup/pay; /api/payment, /api/stripe
    .use(orders(deps, session)) //        /api/user/topup (orders), statement
    .use(plans(deps, session)) //         /api/plan
    .use(redemptions(deps, session)) //   /api/redemption
    .use(wallet(deps, session)); //       /api/user/topup, aff, aff_transfer, setting
}

/** A chain of its own: the types of one longer than some thirty are too deep for the compiler. */
function settingRoutes(deps: Deps, session: SessionSettings) {
  return new Elysia()
    .use(options(deps, session)) //       /api/option
    .use(prices(deps, session)) //        /api/price
    .use(priceDrafts(deps, session)) //   /api/price/drafts
    .use(priceSync(deps, session)) //     /api/price/sync
    .use(costs(deps, session)) //         /api/cost
    .use(optionPreviews(deps, session)) // /api/option/preview, version
    .use(customProviders(deps, session)) // /api/custom-oauth-provider
    .use(config(deps, session)); //       /api/config
}

function channelRoutes(
  deps: Deps,
  session: SessionSettings,
  { watch, probe }: Pick<Gateway, "watch" | "probe">,
) {
  return new Elysia()
    .use(channelRules(deps, session, probe)) //     /api/channel/try_rules
    .use(channelOps(deps, session, watch, probe)) // /api/channel/test, update_balance, fetch_models, copy
    .use(channelKeys(deps, session, watch)) // /api/channel/keys, multi_key/manage
    .use(channelUpstream(deps, session, { watch, probe })) // /api/channel/upstream_updates
    .use(channelHealth(deps, session, probe)) // /api/channel/cells, route
    .use(channelBulk(deps, session)) //   /api/channel/batch, tag, disabled, fix
    .use(channels(deps, session)); //      /api/channel
}

export function createRoutes(deps: Deps, session: SessionSettings, gateway: Gateway) {
  const { relay, watch, probe, moving } = gateway;
  return new Elysia()
    .use(metrics(session, gateway.metrics)) // /metrics
    .use(probes(gateway.readiness, gateway.worker)) // /healthz, /readyz
    .use(openaiRelay(deps, session, relay)) // /v1, /pg
    .use(anthropicRelay(deps, session, relay)) // /v1/messages
    .use(geminiRelay(deps, session, relay)) // /v1beta
    .use(billingRelay(deps, session)) //  /v1/dashboard/billing, /dashboard/billing
    .use(system(deps, session, moving)) // /api/status, /api/setup, /api/notice, /api/about, /api/home_page_content
    .use(peopleRoutes(deps, session)) //  sign-in, registration, accounts: see above
    .use(settingRoutes(deps, session)) // what the site is set to: see above
    .use(channelRoutes(deps, session, { watch, probe })) // channels, one and many: see above
    .use(modelNotices(deps, session)) //  /api/model_notice
    .use(inbox(deps, session)) //         /api/inbox
    .use(tokens(deps, session)) //        /api/token
    .use(logs(deps, session)) //          /api/log
    .use(logClearing(deps, session)) //   /api/log (clearing)
    .use(logExport(deps, session)) //     /api/log (export)
    .use(usage(deps, session)) //         /api/usage
    .use(data(deps, session)) //          /api/data
    .use(midjourneyRelay(deps, relay)) // /mj, /:mode/mj
    .use(sunoRelay(deps, relay)) //       /suno
    .use(tasks(deps, session)) //         /api/mj, /api/task
    .use(moneyRoutes(deps, session)) //   what comes in: see above
    .use(catalog(deps, session)) //       /api/models, /api/group, /api/pricing
    .use(preflight(session)); //          OPTIONS /api
}

export type Routes = ReturnType<typeof createRoutes>;
