// API keys and redemption codes: secrets that people hold, found again by their hash and kept sealed.
// Refuses a key that is empty or somebody else's; what it may do stays as it was.
import ipaddr from "ipaddr.js";
import { sha256Hex } from "../../core/kit/seal.ts";
import type { Sealer } from "../../core/kit/seal.ts";
import { AUTO_GROUP, MOST_AUTO_GROUPS } from "../../shared/auto-group.ts";
import { RedemptionStatus, TokenStatus } from "../../shared/enums.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import type { Family } from "../family.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import type { Sum } from "../target.ts";
import { exactWhole, flagOf, isGiven, jsonOf, secondsOf, smallOf, textOf, wholeOf } from "../values.ts";

/** How much of both ends of a key is kept for searching. */
const END_CHARACTERS = 4;
const MAX_KEY_CHARACTERS = 128;

export interface KeyFacts {
  family: Family;
  notes: Notes;
  seal: Sealer;
  now: number;
  /** Hashes so far. */
  taken: Set<string>;
  sums: ReadonlyMap<number, Sum>;
  /** Whether the account is among those that came along. */
  hasUser: (id: number) => boolean;
}

export interface MappedToken {
  token: NewRow<"tokens">;
  opening: NewRow<"openings"> | undefined;
}

/** Lines, commas or blanks between addresses; what is none of them is told, and never a silent "from anywhere". */
function addressesOf(text: string): { entries: string[]; wrong: string[] } {
  const entries = text.split(/[\s,;]+/).filter((entry) => entry !== "");
  const isNetwork = (entry: string): boolean =>
    entry.includes("/")
      ? ipaddr.isValidCIDR(entry)
      : ipaddr.IPv4.isValidFourPartDecimal(entry) || ipaddr.IPv6.isValid(entry);
  return { entries: entries.filter(isNetwork), wrong: entries.filter((entry) => !isNetwork(entry)) };
}

function autoGroupsText(row: SourceRow, id: number, notes: Notes): string {
  const found = jsonOf(row, "auto_groups");
  if (!Array.isArray(found)) {
    if (found === undefined && textOf(row, "auto_groups") !== "") notes.add("tokens", "broken_json", id);
    return "";
  }
  const groups = [
    ...new Set(
      found.filter((each): each is string => typeof each === "string" && each !== "" && each !== AUTO_GROUP),
    ),
  ];
  if (groups.length > MOST_AUTO_GROUPS) notes.add("tokens", "auto_groups_cut", id);
  return groups.slice(0, MOST_AUTO_GROUPS).join(",");
}

/** Which models a key may call: one-api has a list alone, later ones a switch beside it. */
function limitsOf(row: SourceRow): Pick<NewRow<"tokens">, "modelLimits" | "modelLimitsEnabled"> {
  if (row["model_limits_enabled"] !== undefined || row["model_limits"] !== undefined)
    return {
      modelLimits: textOf(row, "model_limits"),
      modelLimitsEnabled: flagOf(row, "model_limits_enabled"),
    };
  const models = textOf(row, "models");
  return { modelLimits: models, modelLimitsEnabled: models !== "" };
}

/** Undefined: nobody could call with it. */
export function mapToken(row: SourceRow, facts: KeyFacts): MappedToken | undefined {
  const { notes, taken, seal, now, sums } = facts;
  const id = wholeOf(row, "id");
  const userId = wholeOf(row, "user_id");
  notes.read("tokens");
  const key = textOf(row, "key").trim().replace(/^sk-/, "");
  if (!facts.hasUser(userId)) {
    notes.rejected("tokens", "user_gone", id);
    return undefined;
  }
  const problem = key === "" ? "key_empty" : key.length > MAX_KEY_CHARACTERS ? "key_long" : undefined;
  const keyHash = sha256Hex(key);
  if (problem !== undefined || taken.has(keyHash)) {
    notes.rejected("tokens", problem ?? "key_taken", id);
    return undefined;
  }
  taken.add(keyHash);
  // There it cut the key at a hyphen, and found none.
  if (key.includes("-")) notes.add("tokens", "key_dash", id);
  const figure = (column: string): number => {
    const { value, isCapped } = exactWhole(row, column);
    if (isCapped) notes.add("tokens", "capped", `${id} (${column})`);
    return value;
  };
  const usedQuota = figure("used_quota");
  // The sum of both must be exact as well.
  const remainQuota = Math.max(
    -MAX_QUOTA,
    Math.min(figure("remain_quota"), MAX_QUOTA - Math.max(0, usedQuota)),
  );
  const { entries, wrong } = addressesOf(textOf(row, row["subnet"] === undefined ? "allow_ips" : "subnet"));
  if (wrong.length > 0) notes.add("tokens", "ips_unusable", `${id} (${wrong.slice(0, 3).join(", ")})`);
  const status = smallOf(row, "status", TokenStatus.enabled);
  const isOff =
    status < TokenStatus.enabled ||
    status > TokenStatus.exhausted ||
    (wrong.length > 0 && entries.length === 0);
  // Every automatic key goes on in its next group here; there it was the key's own switch, off by itself.
  if (
    textOf(row, "group") === AUTO_GROUP &&
    row["cross_group_retry"] !== undefined &&
    !flagOf(row, "cross_group_retry")
  )
    notes.add("tokens", "auto_next_group", id);
  const over = usedQuota - (sums.get(id)?.quota ?? 0);
  notes.carried("tokens");
  return {
    token: {
      id,
      userId,
      keyHash,
      keySealed: seal.seal("token", key),
      keyHead: key.slice(0, END_CHARACTERS),
      keyTail: key.slice(-END_CHARACTERS),
      status: isOff ? TokenStatus.disabled : status,
      name: textOf(row, "name"),
      createdTime: wholeOf(row, "created_time"),
      accessedTime: wholeOf(row, "accessed_time"),
      expiredTime: wholeOf(row, "expired_time", -1),
      remainQuota,
      usedQuota,
      quotaBase: remainQuota + usedQuota,
      unlimitedQuota: flagOf(row, "unlimited_quota"),
      ...limitsOf(row),
      allowIps: entries.join("\n"),
      group: textOf(row, "group"),
      autoGroups: autoGroupsText(row, id, notes),
      deletedAt: isGiven(row, "deleted_at") ? secondsOf(row, "deleted_at") || now : null,
    },
    opening: over === 0 ? undefined : { kind: "token", id, usedQuota: over, requestCount: 0 },
  };
}

/** Undefined: nobody could redeem it. */
export function mapRedemption(
  row: SourceRow,
  { notes, seal, taken, now }: KeyFacts,
): NewRow<"redemptions"> | undefined {
  const id = wholeOf(row, "id");
  notes.read("redemptions");
  const key = textOf(row, "key").trim();
  const keyHash = sha256Hex(key);
  if (key === "" || taken.has(keyHash)) {
    notes.rejected("redemptions", "code_taken", id);
    return undefined;
  }
  taken.add(keyHash);
  notes.carried("redemptions");
  const status = smallOf(row, "status", RedemptionStatus.unused);
  const isKnown = status >= RedemptionStatus.unused && status <= RedemptionStatus.used;
  return {
    id,
    userId: wholeOf(row, "user_id"),
    keyHash,
    keySealed: seal.seal("redemption", key),
    status: isKnown ? status : RedemptionStatus.disabled,
    name: textOf(row, "name"),
    quota: wholeOf(row, "quota", 100),
    createdTime: wholeOf(row, "created_time"),
    redeemedTime: wholeOf(row, "redeemed_time"),
    usedUserId: wholeOf(row, "used_user_id"),
    expiresAt: Math.max(0, wholeOf(row, "expired_time")),
    deletedAt: isGiven(row, "deleted_at") ? secondsOf(row, "deleted_at") || now : null,
  };
}
