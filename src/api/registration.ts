// Ways in for people without a session: codes by letter, registration, and a forgotten password.
// Refuses what is asked too often, then what no person asks, before it looks at what was sent.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { rememberDevice } from "../core/users/devices.ts";
import { createEntryLimits } from "../core/users/entry-limits.ts";
import { canReset, requestReset, resetPassword } from "../core/users/password-reset.ts";
import { refuseClosed, register, sendCode } from "../core/users/registration.ts";
import { originOf } from "../http/audit-actor.ts";
import { deviceCookie, deviceOf, newDeviceId } from "../http/device.ts";
import { done, ok } from "../http/envelope.ts";
import { requireHuman } from "../http/human.ts";
import { preferredLanguage } from "../http/messages.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { refuse } from "../shared/failures.ts";

/** What the widget of the human check gave. */
const turnstile = t.Optional(plainText(4096));
const mailQuery = t.Object({ email: t.Optional(plainText(320)), turnstile });
const text = given(plainText(255));

const registerBody = t.Object({
  username: text,
  password: text,
  /** Compared by the form alone. */
  password2: text,
  email: given(plainText(320)),
  verification_code: text,
  aff_code: text,
  accept_terms: given(t.Boolean()),
});

const resetBody = t.Object({
  email: given(plainText(320)),
  token: text,
  /** † Absent: one is made and answered. */
  password: text,
});

type Headers = Record<string, string | number | string[] | undefined>;

export function registration(deps: Deps, session: SessionSettings) {
  const limits = createEntryLimits(session.limits);
  const human = async (visit: Parameters<typeof requireHuman>[2], headers: Headers): Promise<void> => {
    const cookie = await requireHuman(deps, session.secret, visit);
    if (cookie !== undefined) headers["set-cookie"] = cookie;
  };

  return new Elysia({ prefix: "/api" })
    .use(policy(session))
    .get(
      "/verification",
      async ({ query, request, address, language, set }) => {
        limits.letters.take(address);
        await human({ request, address, token: query.turnstile, action: "verification" }, set.headers);
        if (!query.email) throw refuse("invalid_params");
        await sendCode(deps, limits, query.email, { address, language });
        return done();
      },
      { open: "public", query: mailQuery },
    )
    .get(
      "/reset_password",
      async ({ query, request, address, set }) => {
        // For all alike, before anything counts.
        if (!canReset(deps)) throw refuse("reset_unavailable");
        limits.letters.take(address);
        await human({ request, address, token: query.turnstile, action: "reset" }, set.headers);
        if (!query.email) throw refuse("invalid_params");
        await requestReset(deps, query.email, preferredLanguage(request));
        return done();
      },
      { open: "public", query: mailQuery },
    )
    .post(
      "/user/register",
      async ({ body, query, request, address, language, set }) => {
        refuseClosed(deps);
        limits.registering.take(address);
        await human({ request, address, token: query.turnstile, action: "register" }, set.headers);
        const input = {
          username: body.username ?? "",
          password: body.password ?? "",
          email: body.email ?? "",
          code: body.verification_code ?? "",
          affCode: body.aff_code ?? "",
          acceptsTerms: body.accept_terms === true,
        };
        const { userAgent } = originOf({ request, address });
        await register(deps, limits, input, { address, userAgent, language });
        return done();
      },
      { open: "public", body: registerBody, query: t.Object({ turnstile }) },
    )
    .post(
      "/user/reset",
      async ({ body, request, address, set }) => {
        limits.proofs.take(address);
        const input = { email: body.email ?? "", token: body.token ?? "", password: body.password ?? "" };
        const { userId, made } = await resetPassword(
          deps,
          { ...input, origin: originOf({ request, address }) },
          preferredLanguage(request),
        );
        limits.proofs.giveBack(address);
        // The browser that holds the link is the owner's: strangers' wrong passwords do not lock it out.
        const deviceId = deviceOf(request, session.secret) || newDeviceId();
        await rememberDevice(deps, userId, deviceId);
        set.headers["set-cookie"] = deviceCookie(deviceId, session.secret, request);
        return ok(made);
      },
      { open: "public", body: resetBody },
    );
}
