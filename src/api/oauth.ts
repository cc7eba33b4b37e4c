// Signing in by other sites: the way there and back, and which foreign accounts an account is bound to.
// Refuses to bind or unbind by an access token or from a page of another site; too many failures wait.
import { Elysia, t } from "elysia";
import type { Deps, UserAccount } from "../core/deps.ts";
import type { WrongLimit } from "../core/kit/attempt-limit.ts";
import { tooMany } from "../core/kit/site-limits.ts";
import { createEntryLimits } from "../core/users/entry-limits.ts";
import { bindingsFor, bindingsOf, unbindFor, unbindOwn } from "../core/users/providers/bindings.ts";
import { returnToFlow, startFlow } from "../core/users/providers/flow.ts";
import { bindBy, proveBy, signInBy } from "../core/users/providers/outcome.ts";
import { enabledProvider, isRedirecting } from "../core/users/providers/registry.ts";
import { telegramPage } from "../core/users/providers/telegram.ts";
import type { FlowIntent } from "../core/users/providers/types.ts";
import { beginSecondFactor } from "../core/users/second-factor.ts";
import type { SecondStep } from "../core/users/second-factor.ts";
import type { Session } from "../core/users/sessions.ts";
import { requireFreshProof, requireProofMethod } from "../core/users/step-up.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { enter } from "../http/entry.ts";
import type { Entrance } from "../http/entry.ts";
import { done, ok } from "../http/envelope.ts";
import type { Success } from "../http/envelope.ts";
import { flowOf, keptFlow } from "../http/flow-cookie.ts";
import { rowIdOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { checkUserHeader, isForeignSite, mustEnrol, policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Language } from "../shared/enums.ts";
import { UserStatus } from "../shared/enums.ts";
import { Failure, refuse } from "../shared/failures.ts";

/** Failed starts and returns of one address. */
const PER_ADDRESS = { count: 60, windowMs: 600_000 };
const MAX_REASON = 200;

const startBody = t.Object({
  provider: plainText(32),
  intent: given(t.Union([t.Literal("signin"), t.Literal("bind"), t.Literal("verify")])),
  next: given(plainText(2000)),
  aff: given(plainText(64)),
  accept_terms: given(t.Boolean()),
});

const long = t.Optional(plainText(4096));
const returned = { code: long, state: long, iss: long, error: long, error_description: long };

interface Visit {
  visitor: UserAccount | undefined;
  session: Session | undefined;
  request: Request;
}

/** Who binds, or proves themselves: signed in by a cookie, named by the header, on a page of this site. */
function ownSession(
  { options }: Pick<Deps, "options">,
  { visitor, session, request }: Visit,
  intent: Exclude<FlowIntent, "signin">,
): { actor: UserAccount; session: Session } {
  if (!visitor || !session) throw new Failure("auth", "auth_not_signed_in");
  checkUserHeader(request, visitor);
  if (visitor.status !== UserStatus.enabled) throw new Failure("forbidden", "auth_user_banned");
  // A proof may be what setting up a second factor waits for.
  if (intent === "bind" && mustEnrol(options, visitor))
    throw new Failure("forbidden", "second_factor_required");
  refuseForeign(request);
  return { actor: visitor, session };
}

function refuseForeign(request: Request): void {
  if (isForeignSite(request)) throw new Failure("forbidden", "foreign_site", { status: 403 });
}

/** What the provider says of a refusal, as plain text. */
function plainReason(text: string): string {
  return text
    .replace(/[\p{C}<>]/gu, " ")
    .trim()
    .slice(0, MAX_REASON);
}

interface Return extends Visit, Entrance {
  language: Language;
  id: string;
  params: Readonly<Record<string, string | undefined>>;
}

/** Of a binding, or a proof: where the browser goes on to. Named, because the checker would take it for all three. */
interface Proven {
  next: string;
}
type Waiting = SecondStep & Proven;
type CameIn = Awaited<ReturnType<typeof enter>> & Proven & { is_new: boolean };

/** Everything behind the return of a browser: the flow is used up first, then the code. */
async function comeBack(
  deps: Deps,
  session: SessionSettings,
  accounts: { take(address: string): Promise<void> },
  visit: Return,
): Promise<Success<Proven> | Success<Waiting> | Success<CameIn>> {
  const { request, address, id, params, language } = visit;
  const provider = await enabledProvider(deps, id);
  if (!isRedirecting(provider))
    throw new Failure("client", "oauth_off", { params: { provider: provider.label } });
  const sessionId = visit.session?.id ?? "";
  const flow = await returnToFlow(deps, {
    provider: id,
    state: params["state"] ?? "",
    browser: flowOf(request),
    sessionId,
  });
  const own = flow.intent === "signin" ? undefined : ownSession(deps, visit, flow.intent);
  if (params["error"] !== undefined) {
    const reason = plainReason(params["error_description"] || params["error"]);
    throw new Failure("client", "oauth_denied", { params: { provider: provider.label, reason } });
  }
  const callback = new URLSearchParams();
  for (const name of ["code", "state", "iss"] as const) {
    const value = params[name];
    if (value !== undefined) callback.set(name, value);
  }
  const profile = await provider.identify(callback, flow);
  const origin = { address, userAgent: request.headers.get("user-agent") ?? "" };
  const { next } = flow;
  if (own) {
    const { userId } = flow;
    if (flow.intent === "bind") await bindBy(deps, provider, profile, { userId, ...origin });
    else await proveBy(deps, provider, profile, { userId, sessionId, ...origin });
    return ok({ next }, flow.intent);
  }
  const { user, isNew } = await signInBy(deps, provider, profile, {
    ...origin,
    language,
    aff: flow.aff,
    acceptsTerms: flow.acceptsTerms,
    countAccount: () => accounts.take(address),
  });
  const proof = { method: "provider" as const, provider: id };
  const asked = provider.skipsSecondFactor ? undefined : await beginSecondFactor(deps, user, proof);
  if (asked) return ok({ ...asked, next });
  return ok({ ...(await enter(deps, session, visit, user, proof)), next, is_new: isNew });
}

/** Failures count, whatever they are; what succeeds does not. */
function countedBy(failures: WrongLimit) {
  return async <T>(address: string, work: () => Promise<T>): Promise<T> => {
    const seconds = await failures.enter(address);
    if (seconds !== undefined) throw tooMany(seconds);
    let isWrong = true;
    try {
      const result = await work();
      isWrong = false;
      return result;
    } finally {
      failures.leave(address, isWrong);
    }
  };
}

function flowRoutes(deps: Deps, session: SessionSettings) {
  const { accounts } = createEntryLimits(session.limits);
  const failures = session.limits.wrongPerAddress("provider", PER_ADDRESS);
  const counted = countedBy(failures);

  return (
    new Elysia()
      .use(policy(session))
      .post(
        "/api/oauth/start",
        async ({ body, request, address, set, visitor, session: current }) =>
          counted(address, async () => {
            const intent: FlowIntent = body.intent ?? "signin";
            const own =
              intent === "signin"
                ? undefined
                : ownSession(deps, { visitor, session: current, request }, intent);
            if (own && intent === "bind") await requireFreshProof(deps, own, "with_factor");
            const provider = await enabledProvider(deps, body.provider);
            if (own && intent === "verify")
              await requireProofMethod(deps, own.actor, `provider:${provider.id}`);
            const isTelegram = provider.kind === "telegram" && intent !== "verify";
            if (!isRedirecting(provider) && !isTelegram) throw refuse("invalid_params");
            const browser = keptFlow(request);
            const flow = await startFlow(deps, {
              provider: provider.id,
              intent,
              next: body.next ?? "",
              aff: body.aff ?? "",
              acceptsTerms: body.accept_terms === true,
              browser: browser.id,
              session: own && { id: own.session.id, userId: own.actor.id },
            });
            const url = isRedirecting(provider)
              ? await provider.authorize(flow)
              : telegramPage(deps, flow.redirectUri);
            set.headers["set-cookie"] = browser.cookie;
            return ok({ url: url.href });
          }),
        { open: "public", body: startBody },
      )
      // Of older consoles, which build the provider's address by themselves and bind when somebody is signed in.
      .get(
        "/api/oauth/state",
        async ({ query, request, address, set, visitor, session: current }) =>
          counted(address, async () => {
            const isNamed = visitor && current && request.headers.get("new-api-user");
            const own = isNamed
              ? ownSession(deps, { visitor, session: current, request }, "bind")
              : undefined;
            if (own) await requireFreshProof(deps, own, "with_factor");
            const browser = keptFlow(request);
            const { state } = await startFlow(deps, {
              provider: undefined,
              intent: own ? "bind" : "signin",
              next: "",
              aff: query.aff ?? "",
              acceptsTerms: false,
              browser: browser.id,
              session: own && { id: own.session.id, userId: own.actor.id },
            });
            set.headers["set-cookie"] = browser.cookie;
            return ok(state);
          }),
        { open: "public", query: t.Object({ aff: t.Optional(plainText(64)) }) },
      )
      .get(
        "/api/oauth/:id",
        async ({ params, query, request, address, language, set, sessionJwt, visitor, session: current }) =>
          counted(address, () =>
            comeBack(deps, session, accounts, {
              id: params.id,
              params: query,
              request,
              address,
              language,
              set,
              sessionJwt,
              visitor,
              session: current,
            }),
          ),
        { open: "public", query: t.Object(returned) },
      )
      .post(
        "/api/oauth/:id",
        async ({ params, body, request, address, language, set, sessionJwt, visitor, session: current }) =>
          counted(address, () =>
            comeBack(deps, session, accounts, {
              id: params.id,
              params: body,
              request,
              address,
              language,
              set,
              sessionJwt,
              visitor,
              session: current,
            }),
          ),
        { open: "public", body: t.Object(returned) },
      )
  );
}

/** Which foreign accounts an account is bound to, for its owner and for administrators. */
function bindingRoutes(deps: Deps, session: SessionSettings) {
  return new Elysia()
    .use(policy(session))
    .get("/api/user/oauth/bindings", async ({ actor }) => ok(await bindingsOf(deps, actor.id)), {
      access: "user",
    })
    .delete(
      "/api/user/oauth/bindings/:provider",
      async ({ actor, session: current, params, request, address }) => {
        refuseForeign(request);
        await requireFreshProof(deps, { actor, session: current }, "with_factor");
        await unbindOwn(deps, params.provider, auditActorOf({ actor, session: current, request, address }));
        return done();
      },
      { access: "session" },
    )
    .get(
      "/api/user/:id/oauth/bindings",
      async ({ actor, params }) => ok(await bindingsFor(deps, actor, rowIdOf(params.id, "user_missing"))),
      { access: "admin" },
    )
    .delete(
      "/api/user/:id/oauth/bindings/:provider",
      async ({ actor, session: current, params, request, address }) => {
        const by = auditActorOf({ actor, session: current, request, address });
        await unbindFor(deps, actor, rowIdOf(params.id, "user_missing"), params.provider, by);
        return done();
      },
      { access: "admin" },
    );
}

export function oauth(deps: Deps, session: SessionSettings) {
  return new Elysia().use(flowRoutes(deps, session)).use(bindingRoutes(deps, session));
}
