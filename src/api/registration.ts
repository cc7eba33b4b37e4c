// Codes by letter and what they are for: registration, a forgotten password, the address of one's own account.
// Refuses what is asked too often, then what no person asks, before it looks at what was sent.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { rememberDevice } from "../core/users/devices.ts";
import { createEntryLimits } from "../core/users/entry-limits.ts";
import { hasEmail, setOwnEmail } from "../core/users/own-email.ts";
import { canReset, requestReset, resetPassword } from "../core/users/password-reset.ts";
import { refuseClosed, register, sendCode } from "../core/users/registration.ts";
import { requireFreshProof } from "../core/users/step-up.ts";
import type { ProofCaller } from "../core/users/step-up.ts";
import { auditActorOf, originOf } from "../http/audit-actor.ts";
import { deviceCookie, deviceOf, newDeviceId } from "../http/device.ts";
import { done, ok } from "../http/envelope.ts";
import { requireHuman } from "../http/human.ts";
import { preferredLanguage } from "../http/messages.ts";
import { given, plainText } from "../http/plain-text.ts";
import { isForeignSite, policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure, refuse } from "../shared/failures.ts";

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

const bindFields = { email: t.Optional(plainText(320)), code: t.Optional(plainText(255)) };

interface Binding extends ProofCaller {
  request: Request;
  address: string;
  email: string | undefined;
  code: string | undefined;
}

type Headers = Record<string, string | number | string[] | undefined>;

export function registration(deps: Deps, session: SessionSettings) {
  const limits = createEntryLimits(session.limits);
  const human = async (visit: Parameters<typeof requireHuman>[2], headers: Headers): Promise<void> => {
    const cookie = await requireHuman(deps, session.secret, visit);
    if (cookie !== undefined) headers["set-cookie"] = cookie;
  };

  const bind = async ({ actor, session: current, request, address, email = "", code = "" }: Binding) => {
    if (isForeignSite(request)) throw new Failure("forbidden", "foreign_site", { status: 403 });
    // The first address is one more way in, like a bound account; a change takes one from whoever has it.
    const need = (await hasEmail(deps, actor.id)) ? "everybody" : "with_factor";
    await requireFreshProof(deps, { actor, session: current }, need);
    const by = auditActorOf({ actor, session: current, request, address });
    await setOwnEmail(deps, limits, by, { email, code, asked: preferredLanguage(request) });
    return done();
  };

  return (
    new Elysia({ prefix: "/api" })
      .use(policy(session))
      .get(
        "/verification",
        async ({ query, request, address, language, set, session: own }) => {
          await limits.letters.take(address);
          // Whoever is signed in has shown to be a person, and proves an address of theirs.
          if (!own)
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
          await limits.letters.take(address);
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
          await limits.registering.take(address);
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
          await limits.proofs.take(address);
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
      )
      .get(
        "/oauth/email/bind",
        async ({ query: { email, code }, actor, session: own, request, address }) =>
          bind({ actor, session: own, request, address, email, code }),
        { access: "session", query: t.Object(bindFields) },
      )
      // † Keeps codes out of addresses.
      .post(
        "/oauth/email/bind",
        async ({ body: { email, code }, actor, session: own, request, address }) =>
          bind({ actor, session: own, request, address, email, code }),
        { access: "session", body: t.Object(bindFields) },
      )
  );
}
