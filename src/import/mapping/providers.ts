// Sign-in providers that the operator had defined, and who is known by which of them.
// Refuses to switch one on whose fields are read otherwise here: it comes off, and is named.
import type { Sealer } from "../../core/kit/seal.ts";
import { parsePolicyText } from "../../shared/access-policy.ts";
import { parsePath } from "../../shared/field-paths.ts";
import type { NewRow } from "../insert.ts";
import type { Notes } from "../report.ts";
import type { SourceRow } from "../source.ts";
import { flagOf, secondsOf, smallOf, textOf, wholeOf } from "../values.ts";
import type { TakenNames } from "./users.ts";

export interface ProviderFacts {
  notes: Notes;
  seal: Sealer;
  now: number;
  /** Short names that are in use, `TAKEN_SLUGS` to begin with; each provider adds its own. */
  takenSlugs: Set<string>;
}

const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,30})[a-z0-9]$/;
/** A missing field passes these there, and fails them here. */
const STRICTER = /"op"\s*:\s*"(?:ne|not_in|not_contains)"/;

/** The same one, or what nobody has: built-in ways in, and others that differ by case alone, share one name space here. */
function freeSlug(wanted: string, id: number, taken: Set<string>): string {
  let slug = wanted;
  for (let turn = id; taken.has(slug); turn++) slug = `${wanted.slice(0, 20)}-${turn}`;
  taken.add(slug);
  return slug;
}

export function mapProvider(
  row: SourceRow,
  { notes, seal, now, takenSlugs }: ProviderFacts,
): NewRow<"customProviders"> & { id: number } {
  const id = wholeOf(row, "id");
  notes.read("custom_oauth_providers");
  const wanted = textOf(row, "slug").trim().toLowerCase();
  const slug = freeSlug(wanted, id, takenSlugs);
  // Whoever is known by it is known by the new one; but the provider still sends people back to the old address.
  if (slug !== wanted)
    notes.add("custom_oauth_providers", "provider_name_taken", `${id} (${wanted} → ${slug})`);
  const paths = {
    userIdField: textOf(row, "user_id_field") || "sub",
    usernameField: textOf(row, "username_field") || "preferred_username",
    displayNameField: textOf(row, "display_name_field") || "name",
    emailField: textOf(row, "email_field") || "email",
  };
  const endpoints = ["authorization_endpoint", "token_endpoint", "user_info_endpoint"].map((each) =>
    textOf(row, each).trim(),
  );
  const areOdd =
    Object.values(paths).some((path) => !parsePath(path)) ||
    endpoints.some((each) => !URL.canParse(each)) ||
    !["", "oauth_code", "oauth2"].includes(textOf(row, "kind"));
  if (areOdd) notes.add("custom_oauth_providers", "provider_fields", `${id} (${slug})`);
  const isSlug = SLUG.test(slug) && !slug.includes("--");
  if (!isSlug) notes.add("custom_oauth_providers", "provider_slug", `${id} (${slug})`);
  const written = textOf(row, "access_policy").trim();
  const policy = parsePolicyText(written);
  const isPolicy = "policy" in policy;
  if (!isPolicy || STRICTER.test(written))
    notes.add("custom_oauth_providers", "provider_policy", `${id} (${slug})`);
  notes.carried("custom_oauth_providers");
  const [authorizationEndpoint = "", tokenEndpoint = "", userInfoEndpoint = ""] = endpoints;
  const secret = textOf(row, "client_secret").trim();
  const createdAt = secondsOf(row, "created_at") || now;
  return {
    id,
    name: textOf(row, "name") || slug,
    slug,
    icon: /^([a-z0-9-]{1,40}|https:\/\/\S+)$/.test(textOf(row, "icon")) ? textOf(row, "icon") : "",
    // A rule that nobody can read must not let everybody in.
    enabled: flagOf(row, "enabled") && slug === wanted && !areOdd && isSlug && isPolicy && secret !== "",
    kind: "oauth2",
    clientId: textOf(row, "client_id").trim(),
    clientSecretSealed: seal.seal("user", secret),
    authorizationEndpoint,
    tokenEndpoint,
    userInfoEndpoint,
    scopes: textOf(row, "scopes"),
    authStyle: Math.min(2, Math.max(0, smallOf(row, "auth_style"))),
    ...paths,
    accessPolicy: isPolicy && policy.policy ? JSON.stringify(policy.policy) : "",
    accessDeniedMessage: textOf(row, "access_denied_message").slice(0, 500),
    createdAt,
    updatedAt: secondsOf(row, "updated_at") || createdAt,
  };
}

export interface BindingFacts {
  notes: Notes;
  taken: TakenNames;
  slugs: ReadonlyMap<number, string>;
  isLiving: (userId: number) => boolean;
  /** Providers that an account has an identity of: one each. */
  owned: Set<string>;
}

export function mapBinding(
  row: SourceRow,
  facts: BindingFacts,
): Omit<NewRow<"identities">, "id"> | undefined {
  const { notes, taken, slugs, isLiving, owned } = facts;
  const id = wholeOf(row, "id");
  const userId = wholeOf(row, "user_id");
  notes.read("user_oauth_bindings");
  const provider = slugs.get(wholeOf(row, "provider_id"));
  const subject = textOf(row, "provider_user_id").trim();
  const name = `${provider}:${subject}`;
  const problem = !isLiving(userId)
    ? "user_gone"
    : provider === undefined
      ? "provider_gone"
      : subject === "" || taken.subjects.has(name) || owned.has(`${provider}:${userId}`)
        ? "identity_taken"
        : undefined;
  if (problem || provider === undefined) {
    notes.rejected("user_oauth_bindings", problem ?? "provider_gone", id);
    return undefined;
  }
  taken.subjects.add(name);
  owned.add(`${provider}:${userId}`);
  notes.carried("user_oauth_bindings");
  return { userId, provider, subject, createdAt: secondsOf(row, "created_at") };
}
