// What an identity server says of itself in its discovery document, for the settings: its name and its addresses.
// Refuses a document that names another server than the one that was asked.
import { Failure } from "../../../shared/failures.ts";
import { jsonObject } from "../../../shared/json-object.ts";
import type { Deps } from "../../deps.ts";

type DiscoveryDeps = Pick<Deps, "guard" | "reach">;

const WELL_KNOWN = "/.well-known/openid-configuration";
const TIMEOUT_MS = 10_000;
const ANSWER_BYTES = 256 * 1024;

interface Discovered {
  issuer: string;
  authorization_endpoint: string;
  token_endpoint: string;
  user_info_endpoint: string;
  scopes_supported: string[];
  /** Whether the server says that it takes S256. */
  has_pkce: boolean;
}

const failed = (reason: string): Failure =>
  new Failure("client", "provider_discovery_failed", { param: "issuer", params: { reason } });

/** Asks a server what it is. Takes the issuer, or the document's own address. Throws `provider_discovery_failed`. */
export async function discover({ guard, reach }: DiscoveryDeps, typed: string): Promise<Discovered> {
  const trimmed = typed.trim();
  const base = trimmed.endsWith(WELL_KNOWN) ? trimmed.slice(0, -WELL_KNOWN.length) : trimmed;
  const url = URL.parse(base);
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "" || url.username !== "")
    throw new Failure("client", "provider_address_invalid", { param: "issuer", params: { field: "issuer" } });
  if (url.protocol === "http:" && !(await reach.opens(base)))
    throw new Failure("client", "provider_address_insecure", {
      param: "issuer",
      params: { field: "issuer" },
    });
  const address = base.replace(/\/$/, "") + WELL_KNOWN;
  let status: number;
  let text: string;
  try {
    const answer = await guard(address, {
      headers: { accept: "application/json" },
      maxBytes: ANSWER_BYTES,
      timeoutMs: TIMEOUT_MS,
      maxRedirects: 0,
      allow: reach.networks(address, { baseUrl: base, setting: {} }),
    });
    ({ status } = answer);
    text = new TextDecoder().decode(answer.bytes);
  } catch (error) {
    throw failed(error instanceof Failure ? error.code : "address_unreachable");
  }
  if (status !== 200) throw failed(`HTTP ${status}`);
  const document = jsonObject(text);
  if (!document || text.trim() === "") throw failed("JSON");
  const of = (name: string): string => {
    const value = document[name];
    return typeof value === "string" && value.length <= 500 ? value : "";
  };
  const issuer = of("issuer");
  if (issuer.replace(/\/$/, "") !== base.replace(/\/$/, "")) throw failed(`issuer ${issuer.slice(0, 100)}`);
  const list = (name: string): string[] => {
    const value = document[name];
    return Array.isArray(value)
      ? (value as unknown[]).filter((each) => typeof each === "string").slice(0, 50)
      : [];
  };
  if (of("authorization_endpoint") === "" || of("token_endpoint") === "") throw failed("endpoints");
  return {
    issuer,
    authorization_endpoint: of("authorization_endpoint"),
    token_endpoint: of("token_endpoint"),
    user_info_endpoint: of("userinfo_endpoint"),
    scopes_supported: list("scopes_supported"),
    has_pkce: list("code_challenge_methods_supported").includes("S256"),
  };
}

/** The issuer as the server itself writes it. */
export async function issuerOf(deps: DiscoveryDeps, typed: string): Promise<string> {
  return (await discover(deps, typed)).issuer;
}
