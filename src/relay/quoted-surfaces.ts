// Which quotes are asked of whom: tasks and realtime sessions know their own prices.
import type { Deps } from "../core/deps.ts";
import type { SurfaceOf } from "./call/quote.ts";
import type { RelayParts } from "./call/services.ts";
import { sessionQuote } from "./realtime/quote.ts";
import { taskQuote } from "./tasks/quote.ts";

export function quotedSurfaces(deps: Deps, parts: Pick<RelayParts, "usual">): SurfaceOf {
  return (path, body) => taskQuote(deps, path, body) ?? sessionQuote(deps, parts, path, body);
}
