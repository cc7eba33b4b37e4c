// Controller of /api/token (tokens).
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

export function tokens(deps: Deps, session: SessionSettings) {
  void deps;
  return new Elysia({ prefix: "/api/token" }).use(policy(session));
}
