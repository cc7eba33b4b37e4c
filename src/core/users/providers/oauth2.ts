// Sign-in by plain OAuth 2.0: the address to send people to, the exchange of a code, and a profile that each row reads its way.
// Refuses a token answer that carries an error, whatever its status; the token is dropped after the profile calls.
import { createHash } from "node:crypto";
import { jsonObject } from "../../../shared/json-object.ts";
import { askJson, asked, exchangeFailed } from "./ask.ts";
import type { AskDeps } from "./ask.ts";
import type { Profile, ProviderFlow, RedirectingProvider } from "./types.ts";

export interface OAuth2Settings {
  authorizeUrl: string;
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  scope: string;
  /** How the client says who it is; auto: Basic, then the body where the server did not take that. */
  authStyle: "auto" | "body" | "basic";
  usesPkce: boolean;
}

/** A question with the token of this sign-in. */
export interface ProfileCalls {
  /** A JSON object, or a Failure `oauth_profile_failed`. */
  json(url: string): Promise<Record<string, unknown>>;
  /** Whatever comes. */
  raw(url: string): Promise<{ status: number; text: string }>;
}

export type ReadProfile = (calls: ProfileCalls) => Promise<Profile>;

/** RFC 7636, method S256. */
export function challengeOf(verifier: string): string {
  return createHash("sha256").update(verifier).digest("base64url");
}

/** The address that a browser is sent to. Throws nothing: the endpoints were checked when they were saved. */
function authorizeUrl(settings: OAuth2Settings, flow: ProviderFlow): URL {
  const url = new URL(settings.authorizeUrl);
  const { searchParams } = url;
  searchParams.set("response_type", "code");
  searchParams.set("client_id", settings.clientId);
  searchParams.set("redirect_uri", flow.redirectUri);
  if (settings.scope !== "") searchParams.set("scope", settings.scope);
  searchParams.set("state", flow.state);
  if (settings.usesPkce) {
    searchParams.set("code_challenge", challengeOf(flow.verifier));
    searchParams.set("code_challenge_method", "S256");
  }
  return url;
}

/** JSON, or the form encoding that some servers answer whatever they are asked for. */
function tokenAnswer(text: string): Record<string, unknown> {
  const found = text.trim().startsWith("{") ? jsonObject(text) : undefined;
  return found ?? (/^[\w.%~+-]+=/.test(text) ? Object.fromEntries(new URLSearchParams(text)) : {});
}

/** RFC 6749, 2.3.1: both parts form-encoded first. */
function basic(clientId: string, clientSecret: string): string {
  const encoded = [clientId, clientSecret].map((part) =>
    new URLSearchParams({ "": part }).toString().slice(1),
  );
  return `Basic ${btoa(encoded.join(":"))}`;
}

/** The access token for a code. Throws Failures `oauth_unreachable` and `oauth_exchange_failed`. */
async function exchange(
  deps: AskDeps,
  label: string,
  settings: OAuth2Settings,
  code: string,
  flow: ProviderFlow,
): Promise<string> {
  const { clientId, clientSecret, authStyle } = settings;
  const styles = authStyle === "auto" ? (["basic", "body"] as const) : [authStyle];
  let reason = "";
  for (const style of styles) {
    const form = new URLSearchParams({
      grant_type: "authorization_code",
      code,
      redirect_uri: flow.redirectUri,
    });
    if (settings.usesPkce && flow.verifier !== "") form.set("code_verifier", flow.verifier);
    if (style === "body") {
      form.set("client_id", clientId);
      form.set("client_secret", clientSecret);
    }
    const { status, text } = await asked(deps, label, settings.tokenUrl, {
      method: "POST",
      headers: {
        accept: "application/json",
        "content-type": "application/x-www-form-urlencoded",
        ...(style === "basic" ? { authorization: basic(clientId, clientSecret) } : {}),
      },
      body: form.toString(),
    });
    const { error, access_token: token } = tokenAnswer(text);
    if (status < 300 && error === undefined && typeof token === "string" && token !== "") return token;
    const said = typeof error === "string" && /^[\w.-]{1,60}$/.test(error) ? error : "";
    reason = `status ${status} ${said}`.trim();
    // Another way of saying who we are helps against nothing else.
    if (status !== 401 && said !== "invalid_client") break;
  }
  throw exchangeFailed(deps, label, reason);
}

/** The two acts of a redirecting provider, from its settings and from how its profile is read. */
export function oauth2Acts(
  deps: AskDeps,
  label: string,
  settings: OAuth2Settings,
  read: ReadProfile,
): Pick<RedirectingProvider, "authorize" | "identify"> {
  return {
    authorize: (flow) => Promise.resolve(authorizeUrl(settings, flow)),
    async identify(callback, flow) {
      const code = callback.get("code") ?? "";
      if (code === "") throw exchangeFailed(deps, label, "no code");
      const token = await exchange(deps, label, settings, code, flow);
      const headers = { accept: "application/json", authorization: `Bearer ${token}` };
      return read({
        json: (url) => askJson(deps, label, url, headers),
        raw: (url) => asked(deps, label, url, { headers }),
      });
    },
  };
}
