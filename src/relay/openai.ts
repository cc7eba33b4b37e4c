// The OpenAI-dialect relay routes and the playground.
import { Elysia } from "elysia";
import type { Deps } from "../core/deps.ts";
import type { SessionSettings } from "../http/session.ts";

export function openaiRelay(deps: Deps, session: SessionSettings) {
  void deps;
  void session;
  return new Elysia();
}
