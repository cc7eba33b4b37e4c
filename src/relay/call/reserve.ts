// Holds an amount back for a call, and says in the words of its endpoint when the balance cannot pay it.
// Refuses nothing by itself: the ledger does.
import type { Ledger, Reservation, ReserveRequest } from "../../core/deps.ts";
import { Failure } from "../../shared/failures.ts";
import type { Endpoint } from "../endpoints/endpoint.ts";

export async function holdBack(
  ledger: Pick<Ledger, "reserve">,
  { quotaCode }: Pick<Endpoint, "quotaCode">,
  request: ReserveRequest,
): Promise<Reservation> {
  try {
    return await ledger.reserve(request);
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "user_quota_short" || quotaCode === undefined)
      throw error;
    throw new Failure("quota", quotaCode, { params: error.params, wireCode: "insufficient_user_quota" });
  }
}

/** Of a call that nobody pays for. */
export const FREE: Reservation = {
  requestId: "",
  amount: 0,
  grow: (more) => more,
  settle: () => Promise.resolve(),
  release: () => Promise.resolve(),
};
