// How requests leave for addresses that people typed: webhooks, media in requests, pictures of drawings. By the operator's
// worker where one is set, else through the guard; a payment or a price never goes this way, for a worker could forge it.
import { Failure } from "../../shared/failures.ts";
import { askWorker } from "../../net/worker.ts";
import type { Outbound, Worker } from "../../net/worker.ts";
import type { Deps } from "../deps.ts";

type OutboundDeps = Pick<Deps, "guard" | "reach" | "options">;

/** The worker as the options describe it; undefined where none is set. Its key never crosses foreign networks in clear. */
async function workerOf({ reach, options }: OutboundDeps): Promise<Worker | undefined> {
  const url = options.get("WorkerUrl");
  if (url === "") return undefined;
  if (!url.startsWith("https://") && !(await reach.opens(url)))
    throw new Failure("client", "worker_insecure", {
      internal: "WorkerUrl must be https outside UPSTREAM_NETWORKS",
    });
  return {
    url,
    key: options.get("WorkerValidKey"),
    allow: reach.networks(url, { baseUrl: url, setting: {} }),
    takesHttp: options.get("WorkerAllowHttpImageRequestEnabled"),
  };
}

/**
 * The way out of these services. What lies in networks that were opened to the caller goes directly, because a worker
 * elsewhere cannot reach it; so does what a channel's own proxy carries.
 */
export function outboundOf(deps: OutboundDeps): Outbound {
  return async (address, options) => {
    const { allow = [], proxy = "" } = options;
    const isDirect =
      deps.options.get("WorkerUrl") === "" ||
      proxy !== "" ||
      (allow.length > 0 && (await deps.reach.opens(address, allow)));
    const worker = isDirect ? undefined : await workerOf(deps);
    return worker ? askWorker(deps.guard, worker, address, options) : deps.guard(address, options);
  };
}
