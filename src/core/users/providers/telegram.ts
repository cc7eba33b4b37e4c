// Telegram's older sign-in: a signed query instead of a code. Who it vouches for, how long, and once only.
// Refuses line feeds in values: with one inside a name, one signature fits other fields as well.
import { createHmac, timingSafeEqual } from "node:crypto";
import { refuse } from "../../../shared/failures.ts";
import type { Deps } from "../../deps.ts";
import { sha256Hex } from "../../kit/seal.ts";
import type { Profile } from "./types.ts";

type TelegramDeps = Pick<Deps, "db" | "clock" | "options">;

const MAX_PARAMETERS = 12;
const MAX_VALUE = 1024;
const MAX_AGE_SECONDS = 300;
const MAX_AHEAD_SECONDS = 120;
/** Older than any signature that is still taken. */
const KEPT_SECONDS = 900;

/** The parameters of a query, each once, in the form that Telegram sends; undefined for anything else. */
function parametersOf(query: URLSearchParams): ReadonlyMap<string, string> | undefined {
  const entries = [...query];
  const found = new Map(entries);
  if (entries.length > MAX_PARAMETERS || found.size !== entries.length) return undefined;
  const isFine = entries.every(
    // oxlint-disable-next-line no-control-regex
    ([key, value]) => /^[a-z_]{1,32}$/.test(key) && value.length <= MAX_VALUE && !/\p{Cc}/u.test(value),
  );
  return isFine ? found : undefined;
}

function isSigned(parameters: ReadonlyMap<string, string>, hash: string, botToken: string): boolean {
  const text = [...parameters]
    .filter(([key]) => key !== "hash")
    .map(([key, value]) => `${key}=${value}`)
    .toSorted((a, b) => (a < b ? -1 : 1))
    .join("\n");
  const key = Bun.SHA256.hash(botToken) as Uint8Array;
  const right = createHmac("sha256", key).update(text).digest();
  const given = Buffer.from(hash, "hex");
  return given.length === right.length && timingSafeEqual(given, right);
}

/** Whom a signed query vouches for; undefined for one that is forged, malformed, old or ahead of its time. Pure. */
export function telegramProfile(
  query: URLSearchParams,
  botToken: string,
  nowSeconds: number,
): { profile: Profile; hash: string } | undefined {
  const parameters = parametersOf(query);
  if (!parameters || botToken === "") return undefined;
  const of = (name: string): string => parameters.get(name) ?? "";
  const [id, hash, date] = [of("id"), of("hash").toLowerCase(), of("auth_date")];
  if (!/^\d{1,20}$/.test(id) || !/^[0-9a-f]{64}$/.test(hash) || !/^\d{1,12}$/.test(date)) return undefined;
  const age = nowSeconds - Number(date);
  if (age > MAX_AGE_SECONDS || age < -MAX_AHEAD_SECONDS) return undefined;
  if (!isSigned(parameters, hash, botToken)) return undefined;
  const name = [of("first_name"), of("last_name")].filter((each) => each !== "").join(" ");
  const profile: Profile = {
    subject: id,
    emailVerified: false,
    claims: Object.fromEntries([...parameters].filter(([key]) => key !== "hash")),
    ...(of("username") === "" ? {} : { login: of("username") }),
    ...(name === "" ? {} : { name }),
  };
  return { profile, hash };
}

const PAGE = "https://oauth.telegram.org/auth";

/**
 * Telegram's page, which sends the browser back to `returnTo` with the signed result: no script of theirs runs on ours.
 * Throws a Failure where the site has no address of its own to come back to.
 */
export function telegramPage({ options }: Pick<Deps, "options">, returnTo: string): URL {
  const address = URL.parse(options.get("ServerAddress"));
  if (!address) throw refuse("option_needs_site_address");
  const [bot = ""] = options.get("TelegramBotToken").split(":");
  return new URL(
    `${PAGE}?${new URLSearchParams({ bot_id: bot, origin: address.origin, return_to: returnTo })}`,
  );
}

/** Takes a signature for this use; false where it was used before, on whichever node. */
async function claimSignature({ db, clock }: Pick<Deps, "db" | "clock">, hash: string): Promise<boolean> {
  const { authFlows } = db.t;
  const now = Math.floor(clock.nowMs() / 1000);
  const claimed = await db.orm
    .insert(authFlows)
    .values({
      kind: "telegram_seen",
      provider: "telegram",
      secretHash: sha256Hex(`telegram|${hash}`),
      createdAt: now,
      expiresAt: now + KEPT_SECONDS,
      usedAt: now,
    })
    .onConflictDoNothing()
    .returning({ id: authFlows.id });
  return claimed.length > 0;
}

/**
 * Whom a query vouches for. Throws Failures `telegram_off` and `telegram_refused`; the latter without saying which of its
 * rules was broken.
 */
export async function telegramIdentity(deps: TelegramDeps, query: URLSearchParams): Promise<Profile> {
  if (!deps.options.get("TelegramOAuthEnabled")) throw refuse("telegram_off");
  const found = telegramProfile(
    query,
    deps.options.get("TelegramBotToken"),
    Math.floor(deps.clock.nowMs() / 1000),
  );
  if (!found || !(await claimSignature(deps, found.hash))) throw refuse("telegram_refused");
  return found.profile;
}
