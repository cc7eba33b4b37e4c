// An account of the old site as a row of ours, with what it is known by elsewhere and what the books begin with.
// Refuses to let two accounts have one name or one address: the lowest living number keeps it, and whoever loses is named.
import { sha256Hex } from "../../core/kit/seal.ts";
import type { Sealer } from "../../core/kit/seal.ts";
import { foldMail, nameKey } from "../../core/users/folding.ts";
import { Role, UserStatus } from "../../shared/enums.ts";
import { MAX_QUOTA } from "../../shared/money.ts";
import type { Family } from "../family.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import type { Sum } from "../target.ts";
import { exactWhole, isGiven, objectOf, secondsOf, smallOf, textOf, wholeOf } from "../values.ts";

/** What the plans that run make of their owner. */
export interface PlanEffect {
  /** Units that they have left, and that they have used of what they gave. */
  left: number;
  used: number;
  /** Earliest end of a period; 0: none runs. */
  until: number;
  isStrict: boolean;
  /** Overlay of the newest plan that has one. */
  planGroup: string;
  /** The account's own, which the old product wrote over; "": as it stands. */
  ownGroup: string;
}

/** Names that are taken so far; what is met first keeps its own. */
export interface TakenNames {
  names: Set<string>;
  nameKeys: Set<string>;
  mailKeys: Set<string>;
  accessTokens: Set<string>;
  affCodes: Set<string>;
  /** `provider:subject`. */
  subjects: Set<string>;
}

export const createTakenNames = (): TakenNames => ({
  names: new Set(),
  nameKeys: new Set(),
  mailKeys: new Set(),
  accessTokens: new Set(),
  affCodes: new Set(),
  subjects: new Set(),
});

export interface UserFacts {
  family: Family;
  notes: Notes;
  seal: Sealer;
  now: number;
  taken: TakenNames;
  /** By account: the figures of imported sums. */
  sums: ReadonlyMap<number, Sum>;
  plans: ReadonlyMap<number, PlanEffect>;
  /** Accounts with a one-time code or a passkey that comes along. */
  factors: ReadonlySet<number>;
  passkeys: ReadonlySet<number>;
  /** Logins and numbers of GitHub are told apart by what came with the latter. */
  hasNumericGithub: boolean;
  /** Accounts whom a rule denies an administrator's rights. */
  denied: ReadonlySet<number>;
  /** Unix seconds by account. */
  createdAt: (id: number) => number;
  randomHandle: () => string;
}

export interface MappedUser {
  user: NewRow<"users">;
  identities: Omit<NewRow<"identities">, "id">[];
  credits: Omit<NewRow<"credits">, "id">[];
  opening: NewRow<"openings"> | undefined;
}

const ONE_API_DELETED = 3;

export function isDeletedUser(row: SourceRow, family: Family): boolean {
  return (
    isGiven(row, "deleted_at") || (family === "one-api" && wholeOf(row, "status", 1) === ONE_API_DELETED)
  );
}

/** The first of the candidates that nobody has, which from now on is taken. */
function claim(taken: Set<string>, wanted: string, id: number): string {
  let value = wanted;
  // Somebody may be called as the candidate is.
  for (let turn = 1; taken.has(value); turn++)
    value = turn === 1 ? `${wanted}#${id}` : `${wanted}#${id}.${turn}`;
  taken.add(value);
  return value;
}

function namesOf(row: SourceRow, id: number, { taken, notes }: UserFacts) {
  const found = textOf(row, "username");
  const wanted = found === "" ? `user_${id}` : found;
  const username = claim(taken.names, wanted, id);
  if (username !== found) notes.add("users", "name_taken", `${id} (${wanted})`);
  const key = nameKey(username);
  const usernameKey = claim(taken.nameKeys, key, id);
  if (usernameKey !== key) notes.add("users", "name_key_taken", `${id} (${username})`);
  return { username, usernameKey };
}

function mailOf(row: SourceRow, id: number, { taken, notes }: UserFacts) {
  const found = textOf(row, "email").trim();
  if (found === "") return { email: "", emailKey: "" };
  const mail = foldMail(found);
  if (!mail) {
    notes.add("users", "mail_unusable", id);
    return { email: "", emailKey: "" };
  }
  const { address: email, key } = mail;
  if (taken.mailKeys.has(key)) {
    notes.add("users", "mail_key_taken", id);
    return { email, emailKey: "" };
  }
  taken.mailKeys.add(key);
  return { email, emailKey: key };
}

/** What of the person's own settings has a meaning here, as JSON; "" where nothing has. */
function settingOf(row: SourceRow, id: number, { notes, seal }: UserFacts): string {
  const found = objectOf(row, "setting");
  const text = (name: string): string => (typeof found[name] === "string" ? found[name].trim() : "");
  const setting: Record<string, unknown> = {};
  const kind = text("notify_type");
  const url = text("webhook_url");
  if (kind === "email" || kind === "webhook") setting["notify_type"] = kind;
  else if (kind !== "") {
    setting["notify_type"] = "email";
    notes.add("users", "notify_kind", `${id} (${kind})`);
  }
  if (kind === "webhook" && url.startsWith("https://")) {
    setting["webhook_url"] = url;
    const secret = text("webhook_secret");
    if (secret !== "") setting["webhook_secret_sealed"] = seal.seal("user", secret);
  } else if (kind === "webhook") {
    setting["notify_type"] = "email";
    notes.add("users", "webhook_http", id);
  }
  const threshold = Number(found["quota_warning_threshold"]);
  if (Number.isFinite(threshold) && threshold > 0) setting["quota_warning_threshold"] = threshold;
  if (text("notification_email") !== "") setting["notification_email"] = text("notification_email");
  if (found["accept_unset_model_ratio_model"] === true) setting["accept_unset_model_ratio_model"] = true;
  const language = text("language").slice(0, 2);
  if (language === "zh" || language === "en") setting["language"] = language;
  return Object.keys(setting).length === 0 ? "" : JSON.stringify(setting);
}

function roleOf(row: SourceRow, id: number, { notes, denied, family }: UserFacts): number {
  const found = wholeOf(row, "role", Role.user);
  const role = found >= Role.root ? Role.root : found >= Role.admin ? Role.admin : Role.user;
  if (role !== Role.admin) return role;
  if (denied.has(id)) {
    notes.add("users", "admin_denied", id);
    return Role.user;
  }
  if (family === "new-api-v1") notes.add("users", "admin_rights", id);
  return role;
}

/** Column of the account, and the provider that it is of here. */
const IDENTITY_COLUMNS = [
  ["github_id", "github"],
  ["discord_id", "discord"],
  ["oidc_id", "oidc"],
  ["wechat_id", "wechat"],
  ["telegram_id", "telegram"],
  ["linux_do_id", "linuxdo"],
] as const;

function identitiesOf(
  row: SourceRow,
  id: number,
  createdAt: number,
  facts: UserFacts,
): MappedUser["identities"] {
  const { notes, taken, hasNumericGithub } = facts;
  if (textOf(row, "lark_id") !== "") notes.add("users", "lark", id);
  return IDENTITY_COLUMNS.flatMap(([column, provider]) => {
    const found = textOf(row, column).trim();
    if (found === "") return [];
    const legacy = provider === "github" && !(hasNumericGithub && /^\d+$/.test(found));
    const subject = legacy ? found.toLowerCase() : found;
    const name = `${provider}:${subject}`;
    if (taken.subjects.has(name)) {
      notes.add("users", "identity_taken", `${id} (${provider})`);
      return [];
    }
    taken.subjects.add(name);
    return [{ userId: id, provider, subject, label: legacy ? found : "", legacy, createdAt }];
  });
}

/** Null where the value is empty or somebody else's. */
function uniqueOf(taken: Set<string>, value: string, tell: () => void): string | null {
  if (value === "") return null;
  if (taken.has(value)) {
    tell();
    return null;
  }
  taken.add(value);
  return value;
}

/** Call in the order in which accounts keep what two of them have: the living by number, then the deleted. */
export function mapUser(row: SourceRow, facts: UserFacts): MappedUser {
  const { family, notes, taken, now, sums, plans } = facts;
  const id = wholeOf(row, "id");
  const isDeleted = isDeletedUser(row, family);
  const createdAt = facts.createdAt(id);
  const figure = (column: string): number => {
    const { value, isCapped } = exactWhole(row, column);
    if (isCapped) notes.add("users", "capped", `${id} (${column})`);
    return value;
  };
  const written = figure("quota");
  const usedQuota = figure("used_quota");
  const requestCount = figure("request_count");
  const plan = plans.get(id);
  const left = plan?.left ?? 0;
  // What a person was given in all, and what the plan adds to the balance, must be exact as well.
  const quota = Math.max(
    -MAX_QUOTA - Math.min(0, usedQuota, left),
    Math.min(written, MAX_QUOTA - Math.max(0, usedQuota, left)),
  );
  if (quota !== written) notes.add("users", "quota_beyond", id);
  const accessToken = textOf(row, "access_token");
  const status = smallOf(row, "status", UserStatus.enabled);
  const group = textOf(row, "group") || "default";
  const inviterId = Math.max(0, wholeOf(row, "inviter_id"));
  const user: NewRow<"users"> = {
    id,
    ...namesOf(row, id, facts),
    ...mailOf(row, id, facts),
    passwordHash: textOf(row, "password"),
    displayName: textOf(row, "display_name"),
    role: roleOf(row, id, facts),
    status: status === UserStatus.enabled || isDeleted ? UserStatus.enabled : UserStatus.disabled,
    passkeyHandle: facts.passkeys.has(id)
      ? Buffer.from(String(id)).toString("base64url")
      : facts.randomHandle(),
    accessTokenHash: uniqueOf(taken.accessTokens, accessToken === "" ? "" : sha256Hex(accessToken), () =>
      notes.add("users", "access_token_taken", id),
    ),
    quota: quota + left,
    usedQuota,
    requestCount,
    // The plan wrote its group over the account's own; another one was given by somebody since.
    group: plan && plan.ownGroup !== "" && plan.planGroup === group ? plan.ownGroup : group,
    affCode: uniqueOf(taken.affCodes, textOf(row, "aff_code"), () =>
      notes.add("users", "aff_code_taken", id),
    ),
    affCount: smallOf(row, "aff_count"),
    affQuota: wholeOf(row, "aff_quota"),
    affHistoryQuota: wholeOf(row, "aff_history"),
    inviterId,
    planMark: usedQuota,
    planWallet: quota,
    planStrict: plan?.isStrict ?? false,
    planUntil: plan?.until ?? 0,
    planGroup: plan?.planGroup ?? "",
    setting: settingOf(row, id, facts),
    secondFactor: !isDeleted && facts.factors.has(id),
    remark: textOf(row, "remark"),
    createdAt,
    lastSeenAt: Math.max(0, wholeOf(row, "last_login_at")),
    deletedAt: isDeleted ? secondsOf(row, "deleted_at") || now : null,
  };
  const sum = sums.get(id);
  const over = usedQuota - (sum?.quota ?? 0);
  const requests = requestCount - (sum?.count ?? 0);
  return {
    user,
    identities: isDeleted ? [] : identitiesOf(row, id, createdAt, facts),
    credits: [
      {
        userId: id,
        amount: quota + usedQuota - (plan?.used ?? 0),
        kind: "import",
        ref: `user:${id}`,
        createdAt,
      },
      // Whoever invited them has had the reward: nothing is left to be given for it.
      ...(inviterId > 0 ? [{ userId: id, amount: 0, kind: "invite", ref: String(id), createdAt }] : []),
    ],
    opening:
      over === 0 && requests === 0
        ? undefined
        : { kind: "user", id, usedQuota: over, requestCount: requests },
  };
}
