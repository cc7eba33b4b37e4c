// The ways in that send no browser anywhere: WeChat by a code that people type, Telegram by a signed result.
// Refuses whatever a link or a page of another site asks for, by Telegram also what this browser has not begun; to bind without
// the session's own header; and to register by Telegram.
import { Elysia, t } from "elysia";
import type { Deps, UserAccount } from "../core/deps.ts";
import { createEntryLimits } from "../core/users/entry-limits.ts";
import { returnWithoutState } from "../core/users/providers/flow.ts";
import { bindBy, signInBy } from "../core/users/providers/outcome.ts";
import { enabledProvider } from "../core/users/providers/registry.ts";
import { telegramIdentity } from "../core/users/providers/telegram.ts";
import type { Profile } from "../core/users/providers/types.ts";
import { createWeChat } from "../core/users/providers/wechat.ts";
import { beginSecondFactor } from "../core/users/second-factor.ts";
import type { Session } from "../core/users/sessions.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import { enter } from "../http/entry.ts";
import type { Entrance } from "../http/entry.ts";
import { ok } from "../http/envelope.ts";
import { flowOf } from "../http/flow-cookie.ts";
import { requireHuman } from "../http/human.ts";
import { plainText } from "../http/plain-text.ts";
import { isForeignSite, policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import type { Language } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";

const codeQuery = t.Object({
  code: t.Optional(plainText(255)),
  aff: t.Optional(plainText(64)),
  accept_terms: t.Optional(plainText(8)),
  turnstile: t.Optional(plainText(4096)),
});

interface Coming extends Entrance {
  language: Language;
  aff?: string | undefined;
  acceptsTerms: boolean;
}

/** These are calls of our own pages: followed as a link, one would put its reader into the account of whoever made it. */
function refuseElsewhere(request: Request): void {
  if (isForeignSite(request) || request.headers.get("sec-fetch-mode") === "navigate")
    throw new Failure("forbidden", "foreign_site", { status: 403 });
}

export function oauthWidgets(deps: Deps, session: SessionSettings) {
  const { accounts } = createEntryLimits(session.limits);
  const wechat = createWeChat(deps, session.limits);
  const failures = session.limits.wrongPerAddress("telegram", { count: 60, windowMs: 600_000 });

  async function comeIn(id: string, profile: Profile, coming: Coming, cookies: readonly string[] = []) {
    const { request, address, language, aff = "", acceptsTerms } = coming;
    const provider = await enabledProvider(deps, id);
    const { user, isNew } = await signInBy(deps, provider, profile, {
      address,
      userAgent: request.headers.get("user-agent") ?? "",
      language,
      aff,
      acceptsTerms,
      countAccount: () => accounts.take(address),
    });
    const proof = { method: "provider" as const, provider: id };
    const asked = await beginSecondFactor(deps, user, proof);
    if (asked) return ok({ ...asked, next: "" });
    return ok({
      ...(await enter(deps, session, coming, user, { ...proof, cookies })),
      next: "",
      is_new: isNew,
    });
  }

  async function bind(
    id: string,
    profile: () => Promise<Profile>,
    caller: { actor: UserAccount; session: Session | undefined; request: Request; address: string },
  ) {
    const { actor, request, address } = caller;
    refuseElsewhere(request);
    await requireFreshProof(deps, { actor, session: caller.session }, "with_factor");
    const provider = await enabledProvider(deps, id);
    const userAgent = request.headers.get("user-agent") ?? "";
    await bindBy(deps, provider, await profile(), { userId: actor.id, address, userAgent });
    return ok({ next: "" }, "bind");
  }

  const telegramOf = async (request: Request, address: string): Promise<Profile> => {
    const seconds = await failures.enter(address);
    if (seconds !== undefined)
      throw new Failure("limit", "too_many_attempts", { params: { seconds }, retryAfterSeconds: seconds });
    let isWrong = true;
    try {
      const profile = await telegramIdentity(deps, new URL(request.url).searchParams);
      isWrong = false;
      return profile;
    } finally {
      failures.leave(address, isWrong);
    }
  };

  return new Elysia({ prefix: "/api/oauth" })
    .use(policy(session))
    .get(
      "/wechat",
      async ({ query, request, address, set, sessionJwt, language }) => {
        refuseElsewhere(request);
        await enabledProvider(deps, "wechat");
        const visit = { request, address, token: query.turnstile, action: "wechat" as const };
        const human = await requireHuman(deps, session.secret, visit);
        if (human !== undefined) set.headers["set-cookie"] = human;
        const profile = await wechat.identify(query.code ?? "", address);
        const coming = { request, address, set, sessionJwt, language };
        const acceptsTerms = query.accept_terms === "true";
        return comeIn(
          "wechat",
          profile,
          { ...coming, aff: query.aff, acceptsTerms },
          human === undefined ? [] : [human],
        );
      },
      { open: "public", query: codeQuery },
    )
    .get(
      "/wechat/bind",
      ({ query, actor, session: current, request, address }) =>
        bind("wechat", () => wechat.identify(query.code ?? "", address), {
          actor,
          session: current,
          request,
          address,
        }),
      { access: "session", query: t.Object({ code: t.Optional(plainText(255)) }) },
    )
    .get(
      "/telegram/login",
      async ({ request, address, set, sessionJwt, language }) => {
        refuseElsewhere(request);
        await enabledProvider(deps, "telegram");
        // Our own page sends whatever result it is opened with: that this browser began tells a visit from a foreign link.
        await returnWithoutState(deps, {
          provider: "telegram",
          browser: flowOf(request),
          sessionId: undefined,
        });
        const coming = { request, address, set, sessionJwt, language, acceptsTerms: false };
        return comeIn("telegram", await telegramOf(request, address), coming);
      },
      { open: "public" },
    )
    .get(
      "/telegram/bind",
      ({ actor, session: current, request, address }) =>
        bind(
          "telegram",
          async () => {
            const begun = { browser: flowOf(request), sessionId: current?.id ?? "" };
            await returnWithoutState(deps, { provider: "telegram", ...begun });
            return telegramOf(request, address);
          },
          { actor, session: current, request, address },
        ),
      { access: "session" },
    );
}
