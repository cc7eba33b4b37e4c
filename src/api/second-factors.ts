// One-time codes and passkeys of the own account, the second step of a sign-in, proving oneself afresh, and resets by a higher rank.
// Refuses changes of factors without fresh proof, and guesses beyond a few per address.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import {
  changeOwnFactor,
  removeOwnPasskey,
  removeOwnTotp,
  resetFactors,
} from "../core/users/factors/change.ts";
import {
  beginAssertion,
  beginRegistration,
  finishAssertion,
  finishRegistration,
  listPasskeys,
  renamePasskey,
} from "../core/users/factors/passkeys.ts";
import { beginTotp, enableTotp, renewBackupCodes, totpState } from "../core/users/factors/totp.ts";
import { finishByCode, finishByPasskey } from "../core/users/second-factor.ts";
import { PROOF_SECONDS } from "../core/users/session-rows.ts";
import type { Session } from "../core/users/sessions.ts";
import { proveByCode, proveByPassword, requireFreshProof } from "../core/users/step-up.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { enter } from "../http/entry.ts";
import { done, ok } from "../http/envelope.ts";
import { guessing, proofLimit } from "../http/guessing.ts";
import { rowIdOf } from "../http/paging.ts";
import { given, plainText } from "../http/plain-text.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

const MINUTE_MS = 60_000;
const CODES_PER_ADDRESS = { count: 30, windowMs: 10 * MINUTE_MS };
const PASSKEYS_PER_ADDRESS = { count: 60, windowMs: 10 * MINUTE_MS };

const code = plainText(64);
const flowToken = plainText(64);
/** What a browser answers for a passkey; the library reads it. */
const response = t.Record(t.String(), t.Any());

const finishBody = t.Object({ flow_token: flowToken, response, name: given(plainText(255)) });
const verifyBody = t.Object({
  method: t.Union([t.Literal("password"), t.Literal("2fa"), t.Literal("passkey")]),
  password: given(plainText(255)),
  code: given(code),
  flow_token: given(flowToken),
  response: t.Optional(response),
});

function sessionOf(session: Session | undefined): Session {
  if (!session) throw new Failure("auth", "access_token_not_supported");
  return session;
}

/** A chain of its own: the types of one longer than some thirty are too deep for the compiler. */
function totpRoutes(deps: Deps, settings: SessionSettings) {
  return new Elysia({ prefix: "/api/user/2fa" })
    .use(policy(settings))
    .get("/status", async ({ actor }) => ok(await totpState(deps, actor.id)), { access: "session" })
    .post(
      "/setup",
      async ({ actor, session }) => {
        await requireFreshProof(deps, { actor, session }, "everybody");
        return ok(await beginTotp(deps, actor));
      },
      { access: "session" },
    )
    .post(
      "/enable",
      async ({ actor, session, address, request, body }) => {
        await requireFreshProof(deps, { actor, session }, "everybody");
        const by = auditActorOf({ actor, session, address, request });
        const change = { change: "totp_added" as const, by, sessionId: sessionOf(session).id };
        const codes = await changeOwnFactor(deps, actor, change, (told) =>
          enableTotp(deps, actor, { code: body.code, flowToken: body.flow_token, told }),
        );
        return ok({ backup_codes: codes });
      },
      { access: "session", body: t.Object({ code, flow_token: flowToken }) },
    )
    .post(
      "/disable",
      async ({ actor, session, address, request }) => {
        await requireFreshProof(deps, { actor, session }, "everybody");
        const by = auditActorOf({ actor, session, address, request });
        const change = { change: "totp_removed" as const, by, sessionId: sessionOf(session).id };
        await changeOwnFactor(deps, actor, change, (told) => removeOwnTotp(deps, actor, told));
        return done();
      },
      { access: "session" },
    )
    .post(
      "/backup_codes",
      async ({ actor, session, address, request }) => {
        await requireFreshProof(deps, { actor, session }, "everybody");
        const by = auditActorOf({ actor, session, address, request });
        const change = { change: "backup_renewed" as const, by, sessionId: sessionOf(session).id };
        const codes = await changeOwnFactor(deps, actor, change, (told) =>
          renewBackupCodes(deps, actor, told),
        );
        return ok({ backup_codes: codes });
      },
      { access: "session" },
    );
}

function passkeyRoutes(deps: Deps, settings: SessionSettings) {
  const perAddress = settings.limits.wrongPerAddress("passkeys", PASSKEYS_PER_ADDRESS);
  return new Elysia({ prefix: "/api/user/passkey" })
    .use(policy(settings))
    .get("/", async ({ actor }) => ok(await listPasskeys(deps, actor.id)), { access: "session" })
    .post(
      "/register/begin",
      async ({ actor, session }) => {
        await requireFreshProof(deps, { actor, session }, "everybody");
        return ok(await beginRegistration(deps, actor, sessionOf(session).id));
      },
      { access: "session" },
    )
    .post(
      "/register/finish",
      async ({ actor, session, address, request, body }) => {
        await requireFreshProof(deps, { actor, session }, "everybody");
        const sessionId = sessionOf(session).id;
        const { flow_token: token, response: answer, name = "" } = body;
        const by = auditActorOf({ actor, session, address, request });
        const shown = { flowToken: token, response: answer, name: name ?? "", sessionId };
        await changeOwnFactor(deps, actor, { change: "passkey_added", by, sessionId }, (told) =>
          finishRegistration(deps, actor, { ...shown, told }),
        );
        return done();
      },
      { access: "session", body: finishBody },
    )
    .post("/login/begin", async () => ok(await beginAssertion(deps)), { open: "public" })
    .post(
      "/login/finish",
      async ({ body, set, request, sessionJwt, address }) => {
        const answer = { flowToken: body.flow_token, response: body.response };
        const entered = await guessing(perAddress, address, async () => {
          const user = await finishAssertion(deps, answer);
          const second = body.flow_token_2fa ?? "";
          return second === ""
            ? { user, method: "passkey" as const, provider: "" }
            : finishByPasskey(deps, second, user);
        });
        const { user, method, provider } = entered;
        return ok(
          await enter(deps, settings, { request, address, set, sessionJwt }, user, { method, provider }),
        );
      },
      {
        open: "public",
        body: t.Object({ flow_token: flowToken, response, flow_token_2fa: given(flowToken) }),
      },
    )
    .post(
      "/verify/begin",
      async ({ actor, session }) =>
        ok(await beginAssertion(deps, { userId: actor.id, sessionId: sessionOf(session).id })),
      { access: "session" },
    )
    .put(
      "/:id",
      async ({ actor, session, address, request, params, body }) => {
        const by = auditActorOf({ actor, session, address, request });
        await renamePasskey(deps, by, rowIdOf(params.id), body.name);
        return done();
      },
      { access: "session", body: t.Object({ name: plainText(255) }) },
    )
    .delete(
      "/:id",
      async ({ actor, session, address, request, params }) => {
        await requireFreshProof(deps, { actor, session }, "everybody");
        const id = rowIdOf(params.id);
        const by = auditActorOf({ actor, session, address, request });
        const change = { change: "passkey_removed" as const, by, sessionId: sessionOf(session).id };
        await changeOwnFactor(deps, actor, change, (told) => removeOwnPasskey(deps, actor, id, told));
        return done();
      },
      { access: "session" },
    );
}

function proofRoutes(deps: Deps, settings: SessionSettings) {
  const codesPerAddress = settings.limits.wrongPerAddress("codes", CODES_PER_ADDRESS);
  const perAccount = proofLimit(settings.limits);
  return (
    new Elysia({ prefix: "/api" })
      .use(policy(settings))
      .post(
        "/user/login/2fa",
        async ({ body, set, request, sessionJwt, address }) => {
          const { user, method, provider } = await guessing(codesPerAddress, address, () =>
            finishByCode(deps, body.flow_token, body.code),
          );
          return ok(
            await enter(deps, settings, { request, address, set, sessionJwt }, user, { method, provider }),
          );
        },
        { open: "public", body: t.Object({ flow_token: flowToken, code }) },
      )
      .post(
        "/verify",
        async ({ actor, session, body }) => {
          const { id } = sessionOf(session);
          await guessing(perAccount, String(actor.id), async () => {
            if (body.method === "password") await proveByPassword(deps, actor, body.password ?? "");
            else if (body.method === "2fa") await proveByCode(deps, actor, body.code ?? "");
            else {
              const answer = { flowToken: body.flow_token ?? "", response: body.response };
              await finishAssertion(deps, answer, { userId: actor.id, sessionId: id });
            }
          });
          const until = Math.floor(deps.clock.nowMs() / 1000) + PROOF_SECONDS;
          await deps.sessions.prove(id, until);
          return ok({ until });
        },
        { access: "session", body: verifyBody },
      )
      // By a higher rank: for whoever lost the telephone.
      .delete(
        "/user/:id/2fa",
        async ({ actor, session, address, request, params }) => {
          await requireFreshProof(deps, { actor, session }, "with_factor");
          const by = auditActorOf({ actor, session, address, request });
          const userId = rowIdOf(params.id, "user_missing");
          await resetFactors(deps, actor, userId, { totp: true, passkeys: false }, by);
          return done();
        },
        { access: "admin" },
      )
      .delete(
        "/user/:id/reset_passkey",
        async ({ actor, session, address, request, params }) => {
          await requireFreshProof(deps, { actor, session }, "with_factor");
          const by = auditActorOf({ actor, session, address, request });
          const userId = rowIdOf(params.id, "user_missing");
          await resetFactors(deps, actor, userId, { totp: false, passkeys: true }, by);
          return done();
        },
        { access: "admin" },
      )
  );
}

export function secondFactors(deps: Deps, settings: SessionSettings) {
  return new Elysia()
    .use(totpRoutes(deps, settings))
    .use(passkeyRoutes(deps, settings))
    .use(proofRoutes(deps, settings));
}
