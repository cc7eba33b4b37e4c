// Controller of /api/user (users).
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

export function users(deps: Deps, session: SessionSettings) {
  void deps;
  return new Elysia({ prefix: "/api/user" }).use(policy(session));
}
