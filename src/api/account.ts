// Sign-in, sign-out and the own account.
// Refuses too many attempts per account and per address; a successful sign-in gives its attempt back.
import { Elysia, t } from "elysia";
import { createAttemptLimit } from "../core/attempt-limit.ts";
import type { Deps } from "../core/deps.ts";
import { deleteSelf, getUser, renewAccessToken, signIn, updateSelf } from "../core/users.ts";
import { done, ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { policy, sessionCookie } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

const MINUTE_MS = 60_000;

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
  const nowMs = () => deps.clock.nowMs();
  const perAccount = createAttemptLimit(10, 10 * MINUTE_MS, nowMs);
  const perAddress = createAttemptLimit(30, 10 * MINUTE_MS, nowMs);

  return new Elysia({ prefix: "/api/user" })
    .use(policy(session))
    .post(
      "/login",
      async ({ body, set, request, sessionJwt, address }) => {
        const accountKey = body.username.trim().toLowerCase();
        const waitSeconds = perAddress.take(address) ?? perAccount.take(accountKey);
        if (waitSeconds !== undefined) {
          throw new Failure("limit", "too_many_attempts", {
            params: { seconds: waitSeconds },
            retryAfterSeconds: waitSeconds,
          });
        }
        const user = await signIn(deps, body.username, body.password);
        perAddress.giveBack(address);
        perAccount.giveBack(accountKey);
        const value = await sessionJwt.sign({ sub: String(user.id), sv: user.sessionVersion });
        set.headers["set-cookie"] = sessionCookie(value, request);
        return {
          ...ok({
            id: user.id,
            username: user.username,
            display_name: user.displayName,
            role: user.role,
            status: user.status,
            group: user.group,
          }),
          // The credentials that old installations shipped with; the console asks to change them at once.
          default_credentials: user.username === "root" && body.password === "123456",
        };
      },
      { open: "public", body: loginBody },
    )
    .get(
      "/logout",
      ({ set, request }) => {
        set.headers["set-cookie"] = sessionCookie("", request);
        return done();
      },
      { open: "public" },
    )
    .get("/self", async ({ actor }) => ok(await getUser(deps, actor.id)), { access: "user" })
    .put(
      "/self",
      async ({ actor, body, set, request, sessionJwt }) => {
        const row = await updateSelf(deps, actor, body);
        if (body.password) {
          // Every session ended with the old password; this one goes on with a new token.
          const value = await sessionJwt.sign({ sub: String(row.id), sv: row.sessionVersion });
          set.headers["set-cookie"] = sessionCookie(value, request);
        }
        return done();
      },
      { access: "user", body: selfBody },
    )
    .delete(
      "/self",
      async ({ actor, set, request }) => {
        await deleteSelf(deps, actor);
        set.headers["set-cookie"] = sessionCookie("", request);
        return done();
      },
      { access: "user" },
    )
    .get("/token", async ({ actor }) => ok(await renewAccessToken(deps, actor)), { access: "user" });
}
