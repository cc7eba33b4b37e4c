// Whether a newer release is out, asked of the code host that the site's options name, and kept for hours.
// Refuses to hold anything up or to believe much: short, small, and a link only to the host that was asked.
import type { Deps } from "../deps.ts";
import { isQuiet } from "../options/quiet.ts";
import { Failure } from "../../shared/failures.ts";

/** Why nothing is known: switched off or without an address, no answer, no release, refused for now, not understood. */
type VersionProblem = "off" | "no_address" | "unreachable" | "none" | "limited" | "unreadable";

export interface VersionState {
  current: string;
  /** Without a leading v; "" while none is known. */
  newest: string;
  isNewer: boolean;
  /** Page of the newest release; "" where there is none that can be trusted. */
  url: string;
  /** Unix seconds of the last answer or failure; 0: never asked. */
  checkedAt: number;
  problem?: VersionProblem;
}

export interface VersionCheck {
  /** What is known at this moment; where that is old, a look begins and nobody waits for it. */
  state(): VersionState;
  /** Looks now, or waits for the look under way; never rejects. Within a minute of the last one nothing is asked. */
  look(): Promise<VersionState>;
}

const FRESH_MS = 12 * 3_600_000;
/** After a failure, and after a refusal for asking too often. */
const RETRY_MS = 3_600_000;
const LEAST_MS = 60_000;
/** A release with its notes and the files that belong to it. */
const MAX_BYTES = 512 * 1024;
const TIMEOUT_MS = 5_000;

const VERSION = /^v?(\d{1,6})\.(\d{1,6})\.(\d{1,6})(-[0-9A-Za-z.-]{1,64})?(?:\+[0-9A-Za-z.-]{1,64})?$/;

/** Whether the first is a later release than the second; a release is later than what was tried out before it. */
export function isLater(one: string, other: string): boolean {
  const [a, b] = [VERSION.exec(one), VERSION.exec(other)];
  if (!a || !b) return false;
  for (const part of [1, 2, 3]) {
    const difference = Number(a[part]) - Number(b[part]);
    if (difference !== 0) return difference > 0;
  }
  return a[4] === undefined && b[4] !== undefined;
}

/** The release's page, where it stands on the host that was asked (`api.` before its name or not), by TLS. */
function trustedPage(page: unknown, address: string): string {
  if (typeof page !== "string" || !URL.canParse(page)) return "";
  const url = new URL(page);
  const asked = new URL(address);
  const isSameHost = url.host === asked.host || `api.${url.host}` === asked.host;
  return isSameHost && (url.protocol === "https:" || url.protocol === asked.protocol) ? url.href : "";
}

type Found = Pick<VersionState, "newest" | "url"> | { problem: VersionProblem };

/** Reads the answer of a code host's "latest release": `tag_name` and `html_url`, as GitHub, Gitea and Forgejo say it. */
function readRelease(bytes: Uint8Array, address: string): Found {
  let release: unknown;
  try {
    release = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return { problem: "unreadable" };
  }
  if (typeof release !== "object" || release === null) return { problem: "unreadable" };
  const { tag_name: tag, html_url: page } = release as Record<string, unknown>;
  if (typeof tag !== "string" || !VERSION.test(tag)) return { problem: "unreadable" };
  return { newest: tag.replace(/^v/, ""), url: trustedPage(page, address) };
}

async function ask(deps: Pick<Deps, "guard">, address: string): Promise<Found> {
  try {
    const { status, bytes } = await deps.guard(address, {
      // Nothing of this site: neither its version nor its name.
      headers: { accept: "application/json", "user-agent": "weir" },
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
    });
    if (status === 404) return { problem: "none" };
    if (status === 403 || status === 429) return { problem: "limited" };
    return status === 200 ? readRelease(bytes, address) : { problem: "unreadable" };
  } catch (error) {
    const isLarge = error instanceof Failure && error.code === "address_answer_too_large";
    return { problem: isLarge ? "unreadable" : "unreachable" };
  }
}

export function createVersionCheck(
  deps: Pick<Deps, "guard" | "options" | "clock" | "version">,
): VersionCheck {
  const { options, clock } = deps;
  /** What was found last, and where: another address makes it worthless. */
  let found: { address: string; atMs: number; checkedAt: number; what: Found } | undefined;
  let running: { address: string; done: Promise<void> } | undefined;

  const address = () => options.get("site.version_check_url");
  const known = () => (found?.address === address() ? found : undefined);
  const ageMs = () => {
    const last = known();
    return last ? clock.monotonicMs() - last.atMs : Infinity;
  };

  function stateNow(): VersionState {
    const nothing = { current: deps.version, newest: "", isNewer: false, url: "", checkedAt: 0 };
    if (!options.get("site.version_check_enabled")) return { ...nothing, problem: "off" };
    if (address() === "") return { ...nothing, problem: "no_address" };
    const last = known();
    if (!last) return nothing;
    const { checkedAt, what } = last;
    if ("problem" in what) return { ...nothing, checkedAt, problem: what.problem };
    return { ...nothing, ...what, checkedAt, isNewer: isLater(what.newest, deps.version) };
  }

  const isOn = () => options.get("site.version_check_enabled") && address() !== "";

  function begin(): Promise<void> {
    const at = address();
    if (running?.address === at) return running.done;
    const done = ask(deps, at).then((what) => {
      found = {
        address: at,
        atMs: clock.monotonicMs(),
        checkedAt: Math.floor(clock.nowMs() / 1000),
        what,
      };
      if (running?.done === done) running = undefined;
    });
    running = { address: at, done };
    return done;
  }

  return {
    state() {
      const what = known()?.what;
      const wait = what && "problem" in what ? RETRY_MS : FRESH_MS;
      if (isOn() && !isQuiet(options) && ageMs() >= wait) void begin();
      return stateNow();
    },
    async look() {
      if (isOn() && ageMs() >= LEAST_MS) await begin();
      return stateNow();
    },
  };
}
