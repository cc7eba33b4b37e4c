// The sign-in providers that the operator defines, as rows: what may stand in each field, and what happens to a row.
// Refuses half a provider, addresses that nobody may be sent to, and ever to show a secret again.
import { asc, count, eq } from "drizzle-orm";
import { parsePolicy, parsePolicyText } from "../../../shared/access-policy.ts";
import { Failure } from "../../../shared/failures.ts";
import type { FailureCode } from "../../../shared/failure-codes.ts";
import type { FailureParams } from "../../../shared/failures.ts";
import { parsePath } from "../../../shared/field-paths.ts";
import { q } from "../../../db/database.ts";
import { auditSteps } from "../../logs/audit.ts";
import type { AuditActor } from "../../logs/audit.ts";
import type { Deps } from "../../deps.ts";
import { issuerOf } from "./discovery.ts";
import { refuseProviderLossSteps } from "./methods.ts";

type RowDeps = Pick<Deps, "db" | "clock" | "seal" | "options" | "guard" | "reach" | "ledger" | "logger">;

export type CustomProviderRow = Deps["db"]["t"]["customProviders"]["$inferSelect"];

/** What is written of a provider; what is absent keeps its value, or has its default. */
export interface CustomProviderInput {
  name?: string | undefined;
  slug?: string | undefined;
  icon?: string | undefined;
  enabled?: boolean | undefined;
  kind?: "oauth2" | "oidc" | undefined;
  client_id?: string | undefined;
  /** Write-only: empty keeps what is set. */
  client_secret?: string | undefined;
  issuer?: string | undefined;
  authorization_endpoint?: string | undefined;
  token_endpoint?: string | undefined;
  user_info_endpoint?: string | undefined;
  scopes?: string | undefined;
  auth_style?: number | undefined;
  user_id_field?: string | undefined;
  username_field?: string | undefined;
  display_name_field?: string | undefined;
  email_field?: string | undefined;
  email_verified_field?: string | undefined;
  access_policy?: unknown;
  access_denied_message?: string | undefined;
  pkce?: "auto" | "on" | "off" | undefined;
  allow_register?: boolean | undefined;
  skip_second_factor?: boolean | undefined;
  link_verified_email?: boolean | undefined;
}

/** Ids of built-in rows, and words that addresses below /oauth and /api/oauth have. */
export const TAKEN_SLUGS: ReadonlySet<string> = new Set(
  "github linuxdo linux-do linux_do oidc google discord wechat telegram email state start bind login callback password passkey".split(
    " ",
  ),
);
const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,30})[a-z0-9]$/;
const MOST_PROVIDERS = 50;

const fail = (code: FailureCode, param: string, params: FailureParams = {}): Failure =>
  new Failure("client", code, { param, params: { field: param, ...params } });

/** The field in the row, its name on the wire, and what may stand in it. */
const TEXTS = [
  ["name", "name", 60],
  ["icon", "icon", 500],
  ["clientId", "client_id", 500],
  ["issuer", "issuer", 500],
  ["authorizationEndpoint", "authorization_endpoint", 500],
  ["tokenEndpoint", "token_endpoint", 500],
  ["userInfoEndpoint", "user_info_endpoint", 500],
  ["scopes", "scopes", 500],
  ["accessDeniedMessage", "access_denied_message", 500],
] as const;

const PATHS = [
  ["userIdField", "user_id_field"],
  ["usernameField", "username_field"],
  ["displayNameField", "display_name_field"],
  ["emailField", "email_field"],
  ["emailVerifiedField", "email_verified_field"],
] as const;

const ENDPOINTS = [
  ["authorizationEndpoint", "authorization_endpoint"],
  ["tokenEndpoint", "token_endpoint"],
  ["userInfoEndpoint", "user_info_endpoint"],
] as const;

// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f]/;

/** As a row, before anything is judged that needs the network. */
function merged(
  before: CustomProviderRow | undefined,
  input: CustomProviderInput,
): Omit<CustomProviderRow, "id"> {
  const pick = <T>(value: T | undefined, kept: T | undefined, byDefault: T): T => value ?? kept ?? byDefault;
  const text = (value: string | undefined, kept: string | undefined, byDefault = ""): string =>
    pick(value?.trim(), kept, byDefault);
  const kind = pick(input.kind, before?.kind, "oidc");
  return {
    name: text(input.name, before?.name),
    slug: before?.slug ?? text(input.slug, undefined),
    icon: text(input.icon, before?.icon),
    enabled: pick(input.enabled, before?.enabled, false),
    kind,
    clientId: text(input.client_id, before?.clientId),
    clientSecretSealed: before?.clientSecretSealed ?? "",
    issuer: text(input.issuer, before?.issuer),
    authorizationEndpoint: text(input.authorization_endpoint, before?.authorizationEndpoint),
    tokenEndpoint: text(input.token_endpoint, before?.tokenEndpoint),
    userInfoEndpoint: text(input.user_info_endpoint, before?.userInfoEndpoint),
    scopes: text(input.scopes, before?.scopes, kind === "oidc" ? "openid profile email" : ""),
    authStyle: pick(input.auth_style, before?.authStyle, 0),
    userIdField: text(input.user_id_field, before?.userIdField, "sub"),
    usernameField: text(input.username_field, before?.usernameField, "preferred_username"),
    displayNameField: text(input.display_name_field, before?.displayNameField, "name"),
    emailField: text(input.email_field, before?.emailField, "email"),
    emailVerifiedField: text(input.email_verified_field, before?.emailVerifiedField, "email_verified"),
    accessPolicy: before?.accessPolicy ?? "",
    accessDeniedMessage: text(input.access_denied_message, before?.accessDeniedMessage),
    pkce: pick(input.pkce, before?.pkce, "auto"),
    allowRegister: pick(input.allow_register, before?.allowRegister, true),
    skipSecondFactor: pick(input.skip_second_factor, before?.skipSecondFactor, false),
    linkVerifiedEmail: pick(input.link_verified_email, before?.linkVerifiedEmail, false),
    createdAt: before?.createdAt ?? 0,
    updatedAt: 0,
  };
}

/** An address that people are sent to, or this server asks; plain http only inside the operator's own networks. */
async function checkAddress({ reach }: Pick<Deps, "reach">, text: string, field: string): Promise<void> {
  const url = URL.parse(text);
  const isWeb = url?.protocol === "https:" || url?.protocol === "http:";
  if (!url || !isWeb || url.username !== "" || url.password !== "" || url.hash !== "")
    throw fail("provider_address_invalid", field);
  if (url.protocol === "http:" && !(await reach.opens(text))) throw fail("provider_address_insecure", field);
}

async function checkRow(deps: RowDeps, row: Omit<CustomProviderRow, "id">): Promise<void> {
  for (const [name, field, most] of TEXTS) {
    if (row[name].length > most) throw fail("provider_field_long", field, { most });
    if (CONTROL.test(row[name])) throw fail("provider_field_invalid", field);
  }
  if (row.name === "") throw fail("provider_field_empty", "name");
  if (!SLUG.test(row.slug) || row.slug.includes("--")) throw fail("provider_slug_invalid", "slug");
  if (row.scopes !== "" && !/^[\x21\x23-\x5b\x5d-\x7e ]*$/.test(row.scopes))
    throw fail("provider_field_invalid", "scopes");
  if (![0, 1, 2].includes(row.authStyle)) throw fail("provider_field_invalid", "auth_style");
  for (const [name, field] of PATHS) {
    const isOptional = name !== "userIdField" && row[name] === "";
    if (!isOptional && !parsePath(row[name])) throw fail("provider_path_invalid", field);
  }
  if (row.icon !== "" && !/^([a-z0-9-]{1,40}|https:\/\/\S+)$/.test(row.icon))
    throw fail("provider_field_invalid", "icon");
  for (const [name, field] of ENDPOINTS) if (row[name] !== "") await checkAddress(deps, row[name], field);
  if (row.issuer !== "") await checkAddress(deps, row.issuer, "issuer");
  if (!row.enabled) return;
  if (deps.options.get("ServerAddress") === "") throw fail("provider_needs_server_address", "enabled");
  if (row.clientId === "") throw fail("provider_field_empty", "client_id");
  if (row.clientSecretSealed === "") throw fail("provider_field_empty", "client_secret");
  if (row.kind === "oidc" && row.issuer === "") throw fail("provider_field_empty", "issuer");
  if (row.kind === "oauth2")
    for (const [name, field] of ENDPOINTS) if (row[name] === "") throw fail("provider_field_empty", field);
}

/** The policy as it is kept; absent keeps the one before. */
function policyText(value: unknown, before: string): string {
  if (value === undefined) return before;
  const parsed = typeof value === "string" ? parsePolicyText(value) : parsePolicy(value);
  if ("problem" in parsed)
    throw fail("provider_policy_invalid", "access_policy", {
      at: parsed.problem.at === "" ? "{}" : parsed.problem.at,
    });
  return parsed.policy ? JSON.stringify(parsed.policy) : "";
}

/** The row as it may be written; asks the issuer where that is new. */
async function rowOf(
  deps: RowDeps,
  before: CustomProviderRow | undefined,
  input: CustomProviderInput,
): Promise<Omit<CustomProviderRow, "id">> {
  if (before && input.slug !== undefined && input.slug.trim() !== before.slug)
    throw fail("provider_slug_fixed", "slug");
  const now = Math.floor(deps.clock.nowMs() / 1000);
  const row = merged(before, input);
  const secret = (input.client_secret ?? "").trim();
  if (secret.length > 2000 || CONTROL.test(secret)) throw fail("provider_field_invalid", "client_secret");
  if (secret !== "") row.clientSecretSealed = deps.seal.seal("user", secret);
  row.accessPolicy = policyText(input.access_policy, row.accessPolicy);
  row.createdAt = before?.createdAt ?? now;
  row.updatedAt = now;
  if (!before && TAKEN_SLUGS.has(row.slug)) throw fail("provider_slug_taken", "slug");
  await checkRow(deps, row);
  // A server that names itself otherwise than it is called would sign for somebody else.
  if (row.kind === "oidc" && row.issuer !== "" && row.issuer !== before?.issuer)
    row.issuer = await issuerOf(deps, row.issuer);
  return row;
}

const PKCE = ["auto", "on", "off"] as const;

/** What administrators see: everything but the secret, of which only whether there is one. */
function shownProvider(row: CustomProviderRow, identities: number) {
  const policy = parsePolicyText(row.accessPolicy);
  return {
    slug: row.slug,
    name: row.name,
    icon: row.icon,
    enabled: row.enabled,
    kind: row.kind === "oauth2" ? ("oauth2" as const) : ("oidc" as const),
    client_id: row.clientId,
    client_secret_set: row.clientSecretSealed !== "",
    issuer: row.issuer,
    authorization_endpoint: row.authorizationEndpoint,
    token_endpoint: row.tokenEndpoint,
    user_info_endpoint: row.userInfoEndpoint,
    scopes: row.scopes,
    auth_style: row.authStyle,
    user_id_field: row.userIdField,
    username_field: row.usernameField,
    display_name_field: row.displayNameField,
    email_field: row.emailField,
    email_verified_field: row.emailVerifiedField,
    access_policy: "policy" in policy && policy.policy ? policy.policy : null,
    access_denied_message: row.accessDeniedMessage,
    pkce: PKCE.find((each) => each === row.pkce) ?? "auto",
    allow_register: row.allowRegister,
    skip_second_factor: row.skipSecondFactor,
    link_verified_email: row.linkVerifiedEmail,
    created_at: row.createdAt,
    updated_at: row.updatedAt,
    /** Accounts that are bound to it. */
    identities,
  };
}

type ShownProvider = ReturnType<typeof shownProvider>;

export async function customProviderRows({ db }: Pick<Deps, "db">): Promise<CustomProviderRow[]> {
  const { customProviders } = db.t;
  return db.orm.select().from(customProviders).orderBy(asc(customProviders.id));
}

async function boundTo({ db }: Pick<Deps, "db">, slug: string): Promise<number> {
  const { identities } = db.t;
  const [row] = await db.orm.select({ all: count() }).from(identities).where(eq(identities.provider, slug));
  return row?.all ?? 0;
}

export async function listCustomProviders(deps: Pick<Deps, "db">): Promise<ShownProvider[]> {
  const { identities } = deps.db.t;
  const [rows, counts] = await Promise.all([
    customProviderRows(deps),
    deps.db.orm
      .select({ provider: identities.provider, all: count() })
      .from(identities)
      .groupBy(identities.provider),
  ]);
  const bound = new Map(counts.map(({ provider, all }) => [provider, all]));
  return rows.map((row) => shownProvider(row, bound.get(row.slug) ?? 0));
}

async function rowBy({ db }: Pick<Deps, "db">, slug: string): Promise<CustomProviderRow> {
  const { customProviders } = db.t;
  const [row] = await db.orm.select().from(customProviders).where(eq(customProviders.slug, slug));
  if (!row) throw new Failure("client", "provider_missing");
  return row;
}

export async function showCustomProvider(deps: Pick<Deps, "db">, slug: string): Promise<ShownProvider> {
  return shownProvider(await rowBy(deps, slug), await boundTo(deps, slug));
}

function audit(
  action: "create" | "update" | "delete",
  slug: string,
  by: AuditActor,
  identities?: number,
): Parameters<typeof auditSteps>[2] {
  return {
    user: by,
    action: `provider.${action}`,
    params: { provider: slug, ...(identities === undefined ? {} : { identities }) },
    by,
  };
}

/** Adds a provider. Throws Failures that name the field. */
export async function addCustomProvider(
  deps: RowDeps,
  input: CustomProviderInput,
  by: AuditActor,
): Promise<ShownProvider> {
  const row = await rowOf(deps, undefined, input);
  const { customProviders } = deps.db.t;
  const made = await deps.db.atomic(function* (tx) {
    const [all] = yield* q(tx.select({ all: count() }).from(customProviders));
    if ((all?.all ?? 0) >= MOST_PROVIDERS) throw fail("provider_too_many", "name", { most: MOST_PROVIDERS });
    const [added] = yield* q(tx.insert(customProviders).values(row).onConflictDoNothing().returning());
    if (!added) throw fail("provider_slug_taken", "slug");
    yield* auditSteps(tx, deps, audit("create", row.slug, by));
    return added;
  });
  return shownProvider(made, 0);
}

/** Changes what is given; throws Failures that name the field. */
export async function changeCustomProvider(
  deps: RowDeps,
  slug: string,
  input: CustomProviderInput,
  by: AuditActor,
): Promise<ShownProvider> {
  const row = await rowOf(deps, await rowBy(deps, slug), input);
  const { customProviders } = deps.db.t;
  const changed = await deps.db.atomic(function* (tx) {
    if (!row.enabled) yield* refuseProviderLossSteps(tx, deps, by.id, slug);
    const [after] = yield* q(
      tx.update(customProviders).set(row).where(eq(customProviders.slug, slug)).returning(),
    );
    if (!after) throw new Failure("client", "provider_missing");
    yield* auditSteps(tx, deps, audit("update", slug, by));
    return after;
  });
  return shownProvider(changed, await boundTo(deps, slug));
}

/** Deletes a provider with what accounts are bound by it; answers how many those were. */
export async function removeCustomProvider(
  deps: RowDeps,
  slug: string,
  by: AuditActor,
): Promise<{ identities: number }> {
  const { customProviders, identities } = deps.db.t;
  return deps.db.atomic(function* (tx) {
    yield* refuseProviderLossSteps(tx, deps, by.id, slug);
    const [gone] = yield* q(
      tx.delete(customProviders).where(eq(customProviders.slug, slug)).returning({ id: customProviders.id }),
    );
    if (!gone) throw new Failure("client", "provider_missing");
    const bound = yield* q(
      tx.delete(identities).where(eq(identities.provider, slug)).returning({ id: identities.id }),
    );
    yield* auditSteps(tx, deps, audit("delete", slug, by, bound.length));
    return { identities: bound.length };
  });
}
