// The sign-in providers that ship with the product, as rows: what each is called, where it is asked, and how its profile is read.
// Refuses to be on without its keys, and without the address that people come back to.
import { Failure } from "../../../shared/failures.ts";
import { PROVIDER_SWITCHES } from "../../../shared/ways-in.ts";
import type { Deps } from "../../deps.ts";
import { profileFailed, subjectOf, textOf } from "./ask.ts";
import { oauth2Acts } from "./oauth2.ts";
import type { OAuth2Settings, ProfileCalls, ReadProfile } from "./oauth2.ts";
import { issuerOfDocument, oidcActs } from "./oidc.ts";
import type { OidcDeps } from "./oidc.ts";
import type { DirectProvider, IdentityProvider, Profile, RedirectingProvider } from "./types.ts";

export type BuiltInDeps = OidcDeps & Pick<Deps, "options">;

const GITHUB = "https://github.com";
const GOOGLE_ISSUER = "https://accounts.google.com";
const OIDC_SCOPE = "openid profile email";

export const BUILT_IN_IDS: ReadonlySet<string> = new Set(Object.values(PROVIDER_SWITCHES));

const PLAIN = { allowsRegister: true, skipsSecondFactor: false, linksVerifiedMail: false } as const;

function profile(
  subject: unknown,
  fields: { login?: unknown; name?: unknown; email?: unknown; emailVerified?: boolean; createdAt?: number },
  claims: Record<string, unknown>,
): Profile {
  const id = subjectOf(subject);
  if (id === undefined) throw new Failure("client", "oauth_profile_empty");
  const [login, name, email] = [textOf(fields.login), textOf(fields.name), textOf(fields.email)];
  return {
    subject: id,
    emailVerified: fields.emailVerified === true,
    claims,
    ...(login === undefined ? {} : { login }),
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...(fields.createdAt === undefined ? {} : { createdAt: fields.createdAt }),
  };
}

function isReady({ options }: Pick<Deps, "options">, isOn: boolean, ...keys: string[]): boolean {
  return isOn && options.get("ServerAddress") !== "" && keys.every((key) => key !== "");
}

/** The address that is primary and verified; GitHub's own forwarding addresses are nobody's mailbox. */
async function githubMail(calls: ProfileCalls, url: string): Promise<string | undefined> {
  const { status, text } = await calls.raw(url);
  if (status !== 200) return undefined;
  let rows: unknown;
  try {
    rows = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(rows)) return undefined;
  const found = (rows as { email?: unknown; primary?: unknown; verified?: unknown }[]).find(
    (row) => row?.primary === true && row.verified === true,
  );
  const mail = textOf(found?.email);
  return mail === undefined || /@users\.noreply\./i.test(mail) ? undefined : mail;
}

function github(deps: BuiltInDeps): RedirectingProvider {
  const { options } = deps;
  const base = options.get("GitHubBaseUrl") || GITHUB;
  const api = base === GITHUB ? "https://api.github.com" : `${base}/api/v3`;
  const [clientId, clientSecret] = [options.get("GitHubClientId"), options.get("GitHubClientSecret")];
  const label = "GitHub";
  const settings: OAuth2Settings = {
    authorizeUrl: `${base}/login/oauth/authorize`,
    tokenUrl: `${base}/login/oauth/access_token`,
    clientId,
    clientSecret,
    scope: "user:email",
    authStyle: "body",
    usesPkce: true,
  };
  const read: ReadProfile = async (calls) => {
    const user = await calls.json(`${api}/user`);
    if (typeof user["id"] !== "number") throw new Failure("client", "oauth_profile_empty");
    const email = await githubMail(calls, `${api}/user/emails`);
    const made = Date.parse(String(user["created_at"]));
    return profile(
      user["id"],
      {
        login: user["login"],
        name: user["name"],
        ...(email === undefined ? {} : { email, emailVerified: true }),
        ...(Number.isFinite(made) ? { createdAt: Math.floor(made / 1000) } : {}),
      },
      user,
    );
  };
  return {
    id: "github",
    label,
    icon: "github",
    kind: "oauth2",
    enabled: isReady(deps, options.get("GitHubOAuthEnabled"), clientId, clientSecret),
    ...PLAIN,
    ...oauth2Acts(deps, label, settings, read),
  };
}

/** What the server's own rules of trust allow. */
function checkTrust(user: Record<string, unknown>, least: number): void {
  const level = typeof user["trust_level"] === "number" ? user["trust_level"] : 0;
  if (user["active"] === false || user["silenced"] === true || level < least)
    throw new Failure("forbidden", "oauth_access_denied", {
      status: 200,
      params: { provider: "Linux DO", least, level },
    });
}

function linuxdo(deps: BuiltInDeps): RedirectingProvider {
  const { options } = deps;
  const base = options.get("LinuxDOBaseUrl");
  const [clientId, clientSecret] = [options.get("LinuxDOClientId"), options.get("LinuxDOClientSecret")];
  const label = "Linux DO";
  const settings: OAuth2Settings = {
    authorizeUrl: `${base}/oauth2/authorize`,
    tokenUrl: `${base}/oauth2/token`,
    clientId,
    clientSecret,
    scope: "",
    authStyle: "basic",
    usesPkce: false,
  };
  const read: ReadProfile = async (calls) => {
    // A key of theirs comes along; nothing here needs it.
    const { api_key: _dropped, ...user } = await calls.json(`${base}/api/user`);
    checkTrust(user, options.get("LinuxDOMinimumTrustLevel"));
    return profile(user["id"], { login: user["username"], name: user["name"] }, user);
  };
  return {
    id: "linuxdo",
    label,
    icon: "linuxdo",
    kind: "oauth2",
    enabled: isReady(deps, options.get("LinuxDOOAuthEnabled"), clientId, clientSecret),
    ...PLAIN,
    ...oauth2Acts(deps, label, settings, read),
  };
}

function discord(deps: BuiltInDeps): RedirectingProvider {
  const { options } = deps;
  const base = options.get("DiscordBaseUrl");
  const [clientId, clientSecret] = [options.get("discord.client_id"), options.get("discord.client_secret")];
  const label = "Discord";
  const settings: OAuth2Settings = {
    authorizeUrl: `${base}/oauth2/authorize`,
    tokenUrl: `${base}/api/v10/oauth2/token`,
    clientId,
    clientSecret,
    scope: "identify email",
    authStyle: "body",
    usesPkce: false,
  };
  const read: ReadProfile = async (calls) => {
    const user = await calls.json(`${base}/api/v10/users/@me`);
    // A number would have lost its last digits already.
    if (typeof user["id"] !== "string") throw profileFailed(deps, label, "id");
    return profile(
      user["id"],
      {
        login: user["username"],
        name: user["global_name"],
        email: user["email"],
        emailVerified: user["verified"] === true,
      },
      user,
    );
  };
  return {
    id: "discord",
    label,
    icon: "discord",
    kind: "oauth2",
    enabled: isReady(deps, options.get("discord.enabled"), clientId, clientSecret),
    ...PLAIN,
    ...oauth2Acts(deps, label, settings, read),
  };
}

function google(deps: BuiltInDeps): RedirectingProvider {
  const { options } = deps;
  const [clientId, clientSecret] = [options.get("google.client_id"), options.get("google.client_secret")];
  const label = "Google";
  const domain = options.get("google.hosted_domain").trim().toLowerCase();
  return {
    id: "google",
    label,
    icon: "google",
    kind: "oidc",
    enabled: isReady(deps, options.get("google.enabled"), clientId, clientSecret),
    ...PLAIN,
    ...oidcActs(deps, label, {
      issuer: GOOGLE_ISSUER,
      clientId,
      clientSecret,
      scope: OIDC_SCOPE,
      usesPkce: true,
      // The parameter of that name is only a wish of the browser's.
      check: (claims) => checkDomain(claims, domain),
    }),
  };
}

/** The company rule: the claim of a Workspace account, for private accounts have none. */
export function checkDomain(claims: Record<string, unknown>, domain: string): void {
  if (domain === "" || claims["hd"] === domain) return;
  throw new Failure("forbidden", "oauth_access_denied", { status: 200, params: { provider: "Google" } });
}

function oidc(deps: BuiltInDeps): RedirectingProvider {
  const { options } = deps;
  const [clientId, clientSecret] = [options.get("oidc.client_id"), options.get("oidc.client_secret")];
  const document = options.get("oidc.well_known");
  const label = "OIDC";
  const row = {
    id: "oidc",
    label,
    icon: "oidc",
    enabled: isReady(deps, options.get("oidc.enabled"), clientId, clientSecret),
    ...PLAIN,
  };
  if (document !== "") {
    const issuer = issuerOfDocument(document);
    const settings = { issuer, clientId, clientSecret, scope: OIDC_SCOPE, usesPkce: true };
    return { ...row, kind: "oidc", ...oidcActs(deps, label, settings) };
  }
  // Endpoints alone name no issuer, and no keys: such a server is believed by its connection, as plain OAuth is.
  const [authorizeUrl, tokenUrl, userInfoUrl] = [
    options.get("oidc.authorization_endpoint"),
    options.get("oidc.token_endpoint"),
    options.get("oidc.user_info_endpoint"),
  ];
  const settings: OAuth2Settings = {
    authorizeUrl,
    tokenUrl,
    clientId,
    clientSecret,
    scope: OIDC_SCOPE,
    authStyle: "auto",
    usesPkce: true,
  };
  const read: ReadProfile = async (calls) => {
    const user = await calls.json(userInfoUrl);
    return profile(
      user["sub"],
      {
        login: user["preferred_username"],
        name: user["name"],
        email: user["email"],
        emailVerified: user["email_verified"] === true,
      },
      user,
    );
  };
  return {
    ...row,
    kind: "oauth2",
    enabled: row.enabled && [authorizeUrl, tokenUrl, userInfoUrl].every((url) => url !== ""),
    ...oauth2Acts(deps, label, settings, read),
  };
}

/** By a server of the operator's and a code that people type: nobody is sent anywhere, so no address of this site is needed. */
function wechat({ options }: Pick<Deps, "options">): DirectProvider {
  const keys = [options.get("WeChatServerAddress"), options.get("WeChatServerToken")];
  const enabled = options.get("WeChatAuthEnabled") && keys.every((key) => key !== "");
  return { id: "wechat", label: "WeChat", icon: "wechat", kind: "wechat", enabled, ...PLAIN };
}

/** The older sign-in by a signed result; it lets in who is bound, and registers nobody. */
function telegram({ options }: Pick<Deps, "options">): DirectProvider {
  const keys = [options.get("TelegramBotToken"), options.get("TelegramBotName")];
  const enabled = options.get("TelegramOAuthEnabled") && keys.every((key) => key !== "");
  return {
    id: "telegram",
    label: "Telegram",
    icon: "telegram",
    kind: "telegram",
    enabled,
    ...PLAIN,
    allowsRegister: false,
  };
}

/** In the order in which they are shown. */
export function builtInProviders(deps: BuiltInDeps): IdentityProvider[] {
  return [github, google, discord, linuxdo, oidc, wechat, telegram].map((row) => row(deps));
}
