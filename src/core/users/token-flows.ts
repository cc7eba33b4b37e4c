// Flows that are known by a long secret: the second step of a sign-in, a factor being set up, a passkey's challenge. One row
// of auth_flows each, found by the hash of the secret, used once. Refuses what is over, used, or guessed at too often.
import { randomBytes } from "node:crypto";
import { and, eq, gt, isNull, lt, sql } from "drizzle-orm";
import { q } from "../../db/database.ts";
import type { Orm, Steps } from "../../db/database.ts";
import type { Deps } from "../deps.ts";
import { sha256Hex } from "../kit/seal.ts";
import type { FlowKind } from "./auth-flows.ts";

export type TokenFlowDeps = Pick<Deps, "db" | "clock" | "seal">;

const MAX_WRONG = 5;
const TOKEN = /^[0-9a-f]{32}$/;

export interface TokenFlow {
  kind: FlowKind;
  userId?: number;
  sessionId?: string;
  provider?: string;
  /** Kept sealed. */
  payload: unknown;
  seconds: number;
}

export interface OpenFlow<T> {
  id: number;
  userId: number;
  sessionId: string;
  provider: string;
  payload: T;
}

const nowSeconds = ({ clock }: Pick<Deps, "clock">): number => Math.floor(clock.nowMs() / 1000);

/** Writes the row and answers its secret. */
export async function openTokenFlow(deps: TokenFlowDeps, flow: TokenFlow): Promise<string> {
  const { authFlows } = deps.db.t;
  const token = randomBytes(16).toString("hex");
  const now = nowSeconds(deps);
  await deps.db.orm.insert(authFlows).values({
    kind: flow.kind,
    secretHash: sha256Hex(token),
    userId: flow.userId ?? 0,
    sessionId: flow.sessionId ?? "",
    provider: flow.provider ?? "",
    payload: deps.seal.seal("flow", JSON.stringify(flow.payload)),
    createdAt: now,
    expiresAt: now + flow.seconds,
  });
  return token;
}

function isOpen(deps: TokenFlowDeps, kind: FlowKind, token: string) {
  const { authFlows } = deps.db.t;
  return and(
    eq(authFlows.secretHash, TOKEN.test(token) ? sha256Hex(token) : ""),
    eq(authFlows.kind, kind),
    isNull(authFlows.usedAt),
    gt(authFlows.expiresAt, nowSeconds(deps)),
    lt(authFlows.attempts, MAX_WRONG),
  );
}

type FlowRow = TokenFlowDeps["db"]["t"]["authFlows"]["$inferSelect"];

function opened<T>(deps: TokenFlowDeps, row: FlowRow): OpenFlow<T> {
  const { id, userId, sessionId, provider } = row;
  return { id, userId, sessionId, provider, payload: JSON.parse(deps.seal.open("flow", row.payload)) as T };
}

/** The flow, still open; `T` is what the same kind was begun with. */
export async function findTokenFlow<T>(
  deps: TokenFlowDeps,
  kind: FlowKind,
  token: string,
): Promise<OpenFlow<T> | undefined> {
  const { authFlows } = deps.db.t;
  const [row] = await deps.db.orm
    .select()
    .from(authFlows)
    .where(isOpen(deps, kind, token));
  return row ? opened<T>(deps, row) : undefined;
}

/** Uses the flow up: of any number of simultaneous calls one gets it. */
export function* useTokenFlowSteps<T>(
  tx: Orm,
  deps: TokenFlowDeps,
  kind: FlowKind,
  token: string,
): Steps<OpenFlow<T> | undefined> {
  const { authFlows } = deps.db.t;
  const [row] = yield* q(
    tx
      .update(authFlows)
      .set({ usedAt: nowSeconds(deps) })
      .where(isOpen(deps, kind, token))
      .returning(),
  );
  return row ? opened<T>(deps, row) : undefined;
}

export async function useTokenFlow<T>(
  deps: TokenFlowDeps,
  kind: FlowKind,
  token: string,
): Promise<OpenFlow<T> | undefined> {
  return deps.db.atomic((tx) => useTokenFlowSteps<T>(tx, deps, kind, token));
}

/** Counts a wrong try; false: the flow was over already, or this try ended it. */
export async function countWrong(deps: TokenFlowDeps, kind: FlowKind, token: string): Promise<boolean> {
  const { authFlows } = deps.db.t;
  const [row] = await deps.db.orm
    .update(authFlows)
    .set({ attempts: sql`${authFlows.attempts} + 1` })
    .where(isOpen(deps, kind, token))
    .returning({ attempts: authFlows.attempts });
  return row !== undefined && row.attempts < MAX_WRONG;
}
