// Controller of /api (catalog).
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import { policy } from "../http/session.ts";
import type { SessionSettings } from "../http/session.ts";

export function catalog(deps: Deps, session: SessionSettings) {
  void deps;
  return new Elysia({ prefix: "/api" }).use(policy(session));
}
