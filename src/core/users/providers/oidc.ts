// Sign-in by OpenID Connect: discovery, the exchange of a code, and an ID token whose signature is really checked.
// Refuses a document that speaks for another issuer, tokens without a signature of its keys, and another nonce than ours.
import type { Configuration, CustomFetch, ServerMetadata } from "openid-client";
import { Failure } from "../../../shared/failures.ts";
import { jsonObject } from "../../../shared/json-object.ts";
import type { Deps } from "../../deps.ts";
import { askProvider, exchangeFailed, subjectOf, textOf, unreachable } from "./ask.ts";
import type { AskDeps } from "./ask.ts";
import { challengeOf } from "./oauth2.ts";
import type { Profile, RedirectingProvider } from "./types.ts";

export type OidcDeps = AskDeps & Pick<Deps, "clock">;

export interface OidcSettings {
  /** Without the document's path. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  scope: string;
  /** PKCE is harmless where a server does not know it; off for those that choke on it. */
  usesPkce: boolean;
  /** Throws where the claims do not let anybody in. */
  check?: (claims: Record<string, unknown>) => void;
}

const WELL_KNOWN = "/.well-known/openid-configuration";
const KEPT_MS = 3_600_000;
/** Clocks of two servers, in seconds. */
const TOLERANCE = 30;
const MAX_KEPT = 200;

interface Kept {
  config: Configuration;
  untilMs: number;
}

/** By issuer and client; one map for each site, tests have several. */
const kept = new WeakMap<object, Map<string, Kept>>();

const bare = (address: string): string => address.replace(/\/+$/, "");

/** The address of the document without its path: what everything of that server is compared with. */
export function issuerOfDocument(address: string): string {
  return address.endsWith(WELL_KNOWN) ? address.slice(0, -WELL_KNOWN.length) : address;
}

/** What the server says of itself. Throws a Failure `oidc_discovery_failed` that names what is wrong. */
export async function readDiscovery(
  deps: Pick<Deps, "guard" | "reach">,
  issuer: string,
): Promise<Record<string, unknown> & { issuer: string }> {
  const failed = (reason: string) => new Failure("client", "oidc_discovery_failed", { params: { reason } });
  let answer: Awaited<ReturnType<typeof askProvider>>;
  try {
    answer = await askProvider(deps, bare(issuer) + WELL_KNOWN, { headers: { accept: "application/json" } });
  } catch (error) {
    throw failed(error instanceof Failure ? error.code : "address_unreachable");
  }
  if (answer.status !== 200) throw failed(`HTTP ${answer.status}`);
  const document = jsonObject(new TextDecoder().decode(answer.bytes)) ?? {};
  const named = document["issuer"];
  // A document that speaks for another issuer would let that one sign for this one.
  if (typeof named !== "string" || bare(named) !== bare(issuer)) throw failed("issuer");
  for (const name of ["authorization_endpoint", "token_endpoint", "jwks_uri"]) {
    const value = document[name];
    if (typeof value !== "string" || !/^https?:$/.test(URL.parse(value)?.protocol ?? "")) throw failed(name);
  }
  return { ...document, issuer: named };
}

/** Loaded when somebody signs in: most starts never need it. */
const library = () => import("openid-client");

async function configOf(deps: OidcDeps, settings: OidcSettings): Promise<Configuration> {
  const { issuer, clientId, clientSecret } = settings;
  const key = JSON.stringify([issuer, clientId, clientSecret]);
  const map = kept.get(deps.guard) ?? new Map<string, Kept>();
  kept.set(deps.guard, map);
  const known = map.get(key);
  const nowMs = deps.clock.monotonicMs();
  if (known && known.untilMs > nowMs) return known.config;
  const document = await readDiscovery(deps, issuer);
  const client = await library();
  const styles = document["token_endpoint_auth_methods_supported"];
  const takesBasic = !Array.isArray(styles) || styles.includes("client_secret_basic");
  const config = new client.Configuration(
    document as ServerMetadata,
    clientId,
    { client_secret: clientSecret, [client.clockTolerance]: TOLERANCE },
    takesBasic ? client.ClientSecretBasic(clientSecret) : client.ClientSecretPost(clientSecret),
  );
  // The library trusts the connection unless it is told otherwise, and takes a token with any signature.
  client.enableNonRepudiationChecks(config);
  // What may be http at all is for askProvider to say.
  client.allowInsecureRequests(config);
  config[client.customFetch] = guardedFetch(deps, issuer);
  if (map.size >= MAX_KEPT) map.clear();
  map.set(key, { config, untilMs: nowMs + KEPT_MS });
  return config;
}

/** The library's requests go the way of all others; what the document names is the server's word, not the operator's. */
function guardedFetch(deps: AskDeps, issuer: string): CustomFetch {
  return async (url, { method, headers, body }) => {
    const text = body instanceof URLSearchParams ? body.toString() : body;
    const {
      status,
      headers: answered,
      bytes,
    } = await askProvider(deps, url, {
      method: method === "POST" ? "POST" : "GET",
      headers,
      typed: issuer,
      ...(typeof text === "string" || text instanceof Uint8Array
        ? { body: text as string | Uint8Array<ArrayBuffer> }
        : {}),
    });
    return new Response(status === 204 || status === 304 ? null : bytes, { status, headers: answered });
  };
}

/** Codes of the library and the server, never their texts: those may quote tokens. */
function reasonOf(error: unknown): string {
  const { code, error: said } = (error ?? {}) as { code?: unknown; error?: unknown };
  return [code, said].filter((each) => typeof each === "string" && /^[\w.-]{1,60}$/.test(each)).join(" ");
}

/** The two acts of an OpenID provider. `label` stands in its failures; `read` makes a profile of the claims. */
export function oidcActs(
  deps: OidcDeps,
  label: string,
  settings: OidcSettings,
  read: (claims: Record<string, unknown>) => Profile = standardProfile,
): Pick<RedirectingProvider, "authorize" | "identify"> {
  const { clientId, scope, usesPkce } = settings;
  const configured = async (): Promise<Configuration> => {
    try {
      return await configOf(deps, settings);
    } catch (error) {
      throw unreachable(deps, label, error);
    }
  };
  return {
    async authorize(flow) {
      const url = new URL((await configured()).serverMetadata().authorization_endpoint ?? "");
      const { searchParams } = url;
      searchParams.set("response_type", "code");
      searchParams.set("client_id", clientId);
      searchParams.set("redirect_uri", flow.redirectUri);
      searchParams.set("scope", scope);
      searchParams.set("state", flow.state);
      searchParams.set("nonce", flow.nonce);
      if (usesPkce) {
        searchParams.set("code_challenge", challengeOf(flow.verifier));
        searchParams.set("code_challenge_method", "S256");
      }
      if (flow.intent === "verify") searchParams.set("max_age", "0");
      return url;
    },
    async identify(callback, flow) {
      const config = await configured();
      const client = await library();
      const current = new URL(flow.redirectUri);
      for (const name of ["code", "state", "iss"]) {
        const value = callback.get(name);
        if (value !== null) current.searchParams.set(name, value);
      }
      let claims: Record<string, unknown>;
      try {
        const tokens = await client.authorizationCodeGrant(config, current, {
          expectedState: flow.state,
          idTokenExpected: true,
          ...(flow.nonce === "" ? {} : { expectedNonce: flow.nonce }),
          ...(usesPkce && flow.verifier !== "" ? { pkceCodeVerifier: flow.verifier } : {}),
        });
        const signed = tokens.claims();
        if (!signed) throw exchangeFailed(deps, label, "no ID token");
        const more = config.serverMetadata().userinfo_endpoint
          ? await client.fetchUserInfo(config, tokens.access_token, signed.sub)
          : {};
        // What is signed wins.
        claims = { ...more, ...signed };
      } catch (error) {
        if (error instanceof Failure && error.code.startsWith("oauth_")) throw error;
        throw exchangeFailed(
          deps,
          label,
          reasonOf(error) || (error instanceof Failure ? error.code : "refused"),
        );
      }
      if (flow.intent === "verify" && !isFresh(claims["auth_time"], flow.startedAt))
        throw exchangeFailed(deps, label, "auth_time");
      settings.check?.(claims);
      return read(claims);
    },
  };
}

/** Whether they signed in there since this flow began. */
function isFresh(authTime: unknown, startedAt: number): boolean {
  return typeof authTime === "number" && authTime >= startedAt - TOLERANCE;
}

/** Claims by their standard names. */
function standardProfile(claims: Record<string, unknown>): Profile {
  const subject = subjectOf(claims["sub"]);
  if (subject === undefined) throw new Failure("client", "oauth_profile_empty");
  const login = textOf(claims["preferred_username"]);
  const name = textOf(claims["name"]);
  const email = textOf(claims["email"]);
  return {
    subject,
    emailVerified: claims["email_verified"] === true,
    claims,
    ...(login === undefined ? {} : { login }),
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
  };
}
