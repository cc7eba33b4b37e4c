// Sign-in, sign-out and the own account.
// Refuses to sign anybody out for a foreign site, and guesses of the own password; of others' by core/users/sign-in.ts.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { ownLimits } from "../core/users/own-limits.ts";
import { beginSecondFactor } from "../core/users/second-factor.ts";
import { createSignIn } from "../core/users/sign-in.ts";
import { ownDataText } from "../core/users/own-data.ts";
import { requireFreshProof, requirePerson } from "../core/users/step-up.ts";
import { deleteSelf, getUser, ownSecrets, renewAccessToken, updateSelf } from "../core/users/users.ts";
import { auditActorOf } from "../http/audit-actor.ts";
import { deviceOf } from "../http/device.ts";
import { enter } from "../http/entry.ts";
import { done, ok } from "../http/envelope.ts";
import { fileStream } from "../http/file-stream.ts";
import { guessing, proofLimit } from "../http/guessing.ts";
import { requireHuman } from "../http/human.ts";
import { plainText } from "../http/plain-text.ts";
import { claimsOf, isForeignSite, policy, sessionCookie } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

const text = plainText(255);

const loginBody = t.Object({
  username: text,
  password: text,
});

const selfBody = t.Object({
  username: t.Optional(text),
  display_name: t.Optional(text),
  password: t.Optional(text),
  original_password: t.Optional(text),
});

export function account(deps: Deps, session: SessionSettings) {
  const signIn = createSignIn(deps, session.limits);
  const proofs = proofLimit(session.limits);

  return (
    new Elysia({ prefix: "/api/user" })
      .use(policy(session))
      .post(
        "/login",
        async ({ body, query, set, request, sessionJwt, address }) => {
          const visit = { request, address, token: query.turnstile, action: "login" as const };
          const humanCookie = await requireHuman(deps, session.secret, visit);
          // Also where the password turns out to be wrong: a typing error must not need a new check.
          if (humanCookie !== undefined) set.headers["set-cookie"] = humanCookie;
          const user = await signIn({
            login: body.username,
            password: body.password,
            address,
            deviceId: deviceOf(request, session.secret),
            userAgent: request.headers.get("user-agent") ?? "",
          });
          const second = await beginSecondFactor(deps, user, { method: "password" });
          if (second) {
            if (humanCookie !== undefined) set.headers["set-cookie"] = humanCookie;
            return { ...ok(second), default_credentials: false };
          }
          const entrance = { request, address, set, sessionJwt };
          const cookies = humanCookie === undefined ? [] : [humanCookie];
          return {
            ...ok(await enter(deps, session, entrance, user, { method: "password", cookies })),
            // The credentials that old installations shipped with; the console asks to change them at once.
            default_credentials: user.username === "root" && body.password === "123456",
          };
        },
        { open: "public", body: loginBody, query: t.Object({ turnstile: t.Optional(plainText(4096)) }) },
      )
      .get(
        "/logout",
        async ({ set, request, session: current }) => {
          if (isForeignSite(request)) throw new Failure("forbidden", "foreign_site", { status: 403 });
          if (current) await deps.sessions.end(current.id, "signed_out");
          set.headers["set-cookie"] = sessionCookie("", request);
          return done();
        },
        { open: "public" },
      )
      .get("/self", async ({ actor }) => ok(await getUser(deps, actor.id)), { access: "user" })
      // † Budget and limits in force, with what is spent; null where there are none.
      .get("/self/limits", async ({ actor }) => ok(await ownLimits(deps, actor)), { access: "user" })
      .put(
        "/self",
        async ({ actor, address, body, set, request, sessionJwt, session: current }) => {
          const sessionId = current?.id;
          if (body.password && !(await ownSecrets(deps, actor)).hasPassword)
            await requireFreshProof(deps, { actor, session: current }, "everybody");
          const deviceId = deviceOf(request, session.secret);
          const by = auditActorOf({ actor, session: current, request, address });
          const save = () => updateSelf(deps, by, body, { sessionId, deviceId });
          // Says whether the old password is right, by an access token too: whoever has either guesses no faster here.
          const row = body.password
            ? await guessing(proofs, String(actor.id), save, "password_old_wrong")
            : await save();
          if (body.password && sessionId !== undefined) {
            // Every other session ended with the old password; this one goes on with a new token.
            const value = await sessionJwt.sign(claimsOf(row, sessionId));
            set.headers["set-cookie"] = sessionCookie(value, request);
          }
          return done();
        },
        { access: "user", body: selfBody },
      )
      .delete(
        "/self",
        async ({ actor, address, body, set, request, session: current }) => {
          const erase = body?.erase === true;
          // Without a password an open browser would be all the proof there is.
          const isEasy = !erase && (await ownSecrets(deps, actor)).hasPassword;
          await requireFreshProof(deps, { actor, session: current }, isEasy ? "with_factor" : "everybody");
          const by = auditActorOf({ actor, session: current, request, address });
          await deleteSelf(deps, by, { erase });
          set.headers["set-cookie"] = sessionCookie("", request);
          return done();
        },
        { access: "user", body: t.Optional(t.Object({ erase: t.Optional(t.Boolean()) })) },
      )
      // † All that the site has of the caller, as one file.
      .get(
        "/self/export",
        async ({ actor, request, session: current }) => {
          await requireFreshProof(deps, { actor, session: current }, "everybody");
          const day = new Date(deps.clock.nowMs()).toISOString().slice(0, 10);
          const file = {
            name: `my-data-${day}.json`,
            type: "application/json",
            parts: ownDataText(deps, actor),
          };
          return fileStream(deps, { visitors: session.visitors, request }, file);
        },
        { access: "user" },
      )
      .get(
        "/token",
        async ({ actor, address, request, session: current }) => {
          await requirePerson(deps, { actor, session: current });
          return ok(
            await renewAccessToken(deps, auditActorOf({ actor, session: current, request, address })),
          );
        },
        { access: "user" },
      )
  );
}
