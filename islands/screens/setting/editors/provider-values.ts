// A sign-in provider of the operator's in its form: presets of usual servers, what is wrong with what was typed, what is sent.
import { parsePolicyText, refusalText, refusedBy } from "../../../../src/shared/access-policy.ts";
import { jsonObject } from "../../../../src/shared/json-object.ts";
import { parsePath, subjectAt, textAt, valueAt } from "../../../../src/shared/field-paths.ts";
import type { api, ResponseData } from "../../../lib/api.ts";

type Providers = (typeof api)["custom-oauth-provider"];
export type CustomProvider = ResponseData<Providers["get"]>[number];

const PATHS = [
  "user_id_field",
  "username_field",
  "display_name_field",
  "email_field",
  "email_verified_field",
] as const;
export const PATH_FIELDS: readonly (typeof PATHS)[number][] = PATHS;

export type ProviderValues = Omit<
  CustomProvider,
  "client_secret_set" | "access_policy" | "created_at" | "updated_at" | "identities"
> & {
  preset: string;
  client_secret: string;
  /** JSON text. */
  access_policy: string;
} & Record<string, unknown>;

const BLANK: ProviderValues = {
  preset: "",
  slug: "",
  name: "",
  icon: "",
  enabled: false,
  kind: "oidc",
  client_id: "",
  client_secret: "",
  issuer: "",
  authorization_endpoint: "",
  token_endpoint: "",
  user_info_endpoint: "",
  scopes: "openid profile email",
  auth_style: 0,
  user_id_field: "sub",
  username_field: "preferred_username",
  display_name_field: "name",
  email_field: "email",
  email_verified_field: "email_verified",
  access_policy: "",
  access_denied_message: "",
  pkce: "auto",
  allow_register: true,
  skip_second_factor: false,
  link_verified_email: false,
};

interface Preset {
  id: string;
  label: string;
  values: Partial<ProviderValues>;
}

/** Servers that many operators run or use. What differs by installation stands in capitals. */
export const PRESETS: readonly Preset[] = [
  { id: "keycloak", label: "Keycloak", values: { issuer: "https://KEYCLOAK/realms/REALM", pkce: "on" } },
  { id: "authentik", label: "authentik", values: { issuer: "https://AUTHENTIK/application/o/APP/" } },
  {
    id: "entra",
    label: "Microsoft Entra ID",
    values: { issuer: "https://login.microsoftonline.com/TENANT/v2.0", pkce: "on" },
  },
  { id: "gitlab", label: "GitLab", values: { issuer: "https://gitlab.com", username_field: "nickname" } },
  {
    id: "gitea",
    label: "Gitea, Forgejo",
    values: {
      kind: "oauth2",
      authorization_endpoint: "https://GITEA/login/oauth/authorize",
      token_endpoint: "https://GITEA/login/oauth/access_token",
      user_info_endpoint: "https://GITEA/api/v1/user",
      scopes: "read:user",
      user_id_field: "id",
      username_field: "login",
      display_name_field: "full_name",
      email_verified_field: "",
    },
  },
  {
    id: "nextcloud",
    label: "Nextcloud",
    values: {
      kind: "oauth2",
      authorization_endpoint: "https://NEXTCLOUD/apps/oauth2/authorize",
      token_endpoint: "https://NEXTCLOUD/apps/oauth2/api/v1/token",
      user_info_endpoint: "https://NEXTCLOUD/ocs/v2.php/cloud/user?format=json",
      scopes: "",
      user_id_field: "ocs.data.id",
      username_field: "ocs.data.id",
      display_name_field: "ocs.data.display-name",
      email_field: "ocs.data.email",
      email_verified_field: "",
      pkce: "off",
    },
  },
  {
    id: "telegram",
    label: "Telegram (OIDC)",
    values: {
      name: "Telegram",
      slug: "telegram-oidc",
      issuer: "https://oauth.telegram.org",
      scopes: "openid profile",
      user_id_field: "id",
      email_field: "",
      email_verified_field: "",
      pkce: "on",
    },
  },
];

/** What was typed of name and secret stays. */
export function withPreset(values: ProviderValues, id: string): ProviderValues {
  const preset = PRESETS.find((each) => each.id === id);
  const { client_id, client_secret, name, slug, enabled } = values;
  return {
    ...BLANK,
    client_id,
    client_secret,
    enabled,
    name: name || (preset?.label ?? ""),
    slug: slug || (preset?.id ?? ""),
    ...preset?.values,
    preset: id,
  };
}

export function providerValues(row: CustomProvider | undefined): ProviderValues {
  if (!row) return BLANK;
  const { client_secret_set: _set, access_policy: policy, created_at: _made, updated_at: _at, ...rest } = row;
  const { identities: _bound, ...fields } = rest;
  return {
    ...fields,
    preset: "",
    client_secret: "",
    access_policy: policy === null ? "" : JSON.stringify(policy, null, 2),
  };
}

const SLUG = /^(?!.*--)[a-z0-9][a-z0-9-]{0,30}[a-z0-9]$/;

/** Keys of texts, by field. */
export function providerProblems(values: ProviderValues, isNew: boolean): Partial<Record<string, string>> {
  const found: Record<string, string> = {};
  if (values.name.trim() === "") found.name = "editor.providers.problem.name";
  if (isNew && !SLUG.test(values.slug.trim())) found.slug = "failure.provider_slug_invalid";
  for (const field of PATHS) {
    const path = values[field].trim();
    if (path === "" ? field === "user_id_field" : !parsePath(path))
      found[field] = "failure.provider_path_invalid";
  }
  return found;
}

/** What a save sends; secrets only where one was typed. */
export function providerBody(changed: Partial<ProviderValues>) {
  const { preset: _preset, access_policy: policy, client_secret: secret, identities: _, ...rest } = changed;
  return {
    ...rest,
    ...(secret ? { client_secret: secret } : {}),
    ...(policy === undefined
      ? {}
      : { access_policy: policy.trim() === "" ? null : (JSON.parse(policy) as unknown) }),
  };
}

export type Verdict =
  | { kind: "none" }
  | { kind: "policy"; at: string; code: string }
  | { kind: "claims" }
  | {
      kind: "known";
      subject: string | undefined;
      login: string | undefined;
      name: string | undefined;
      email: string | undefined;
      isVerified: boolean;
      /** Undefined: may come in. */
      refusal: { field: string; op: string; required: string; current: string } | undefined;
      text: string;
    };

/** What a sign-in with these claims would come to. */
export function verdictOf(values: ProviderValues, claimsText: string): Verdict {
  const policy = parsePolicyText(values.access_policy);
  if ("problem" in policy) return { kind: "policy", ...policy.problem };
  if (claimsText.trim() === "") return { kind: "none" };
  const claims = jsonObject(claimsText);
  if (!claims) return { kind: "claims" };
  const at = (path: string) => (path.trim() === "" ? undefined : textAt(claims, path.trim()));
  const refusal = refusedBy(policy.policy, claims);
  return {
    kind: "known",
    subject: subjectAt(claims, values.user_id_field.trim()),
    login: at(values.username_field),
    name: at(values.display_name_field),
    email: at(values.email_field),
    isVerified: valueAt(claims, values.email_verified_field.trim()) === true,
    refusal,
    text: refusal
      ? refusalText(values.access_denied_message, { provider: values.name, refusal, claims })
      : "",
  };
}
