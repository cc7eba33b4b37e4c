// Controller of /api/channel (channels).
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

export function channels(deps: Deps, session: SessionSettings) {
  void deps;
  return new Elysia({ prefix: "/api/channel" }).use(policy(session));
}
