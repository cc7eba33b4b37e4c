// The link of `weir rescue`: root's way in when no other is left. No second factor, no human check.
// Refuses to act by being looked at: only the press on its page sends this call, and no page of another site can.
import { Elysia, t } from "elysia";
import type { Deps } from "../core/deps.ts";
import { rescue } from "../core/users/rescue.ts";
import { tooMany } from "../core/kit/site-limits.ts";
import { enter } from "../http/entry.ts";
import { ok } from "../http/envelope.ts";
import { plainText } from "../http/plain-text.ts";
import { isForeignSite, policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";
import { Failure } from "../shared/failures.ts";

const TRIES = { count: 20, windowMs: 600_000 };

export function rescueRoutes(deps: Deps, session: SessionSettings) {
  const tries = session.limits.perAddress("rescue", TRIES);
  return new Elysia({ prefix: "/api/user" }).use(policy(session)).post(
    "/rescue",
    async ({ body, request, address, set, sessionJwt }) => {
      if (isForeignSite(request)) throw new Failure("forbidden", "foreign_site", { status: 403 });
      const seconds = await tries.take(address);
      if (seconds !== undefined) throw tooMany(seconds);
      const userAgent = request.headers.get("user-agent") ?? "";
      const root = await rescue(deps, body.token, { address, userAgent });
      tries.giveBack(address);
      const entrance = { request, address, set, sessionJwt };
      return ok(await enter(deps, session, entrance, root, { method: "rescue" }));
    },
    { open: "public", body: t.Object({ token: plainText(128) }) },
  );
}
