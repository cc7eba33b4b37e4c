// What a sign-in provider is to the rest of the house, and whom it vouches for. Types only.

/** Whom a provider vouches for. */
export interface Profile {
  subject: string;
  login?: string;
  name?: string;
  /** As the provider tells it; it counts only where it is verified. */
  email?: string;
  emailVerified: boolean;
  /** Unix seconds at which the foreign account was made. */
  createdAt?: number;
  claims: Record<string, unknown>;
}

/** What somebody who leaves for a provider wants: in, to bind it to their account, or to prove that it is still they. */
export type FlowIntent = "signin" | "bind" | "verify";

/** What of a flow a provider needs: the same at the start and at the return. */
export interface ProviderFlow {
  state: string;
  /** PKCE verifier and nonce; empty in flows of older consoles, which build the address by themselves. */
  verifier: string;
  nonce: string;
  redirectUri: string;
  intent: FlowIntent;
  /** Unix seconds. */
  startedAt: number;
}

interface ProviderRow {
  id: string;
  label: string;
  icon: string;
  /** Switched on, and its keys set. */
  enabled: boolean;
  /** False: only accounts that are bound already come in by it. */
  allowsRegister: boolean;
  /** That server asks for a second factor itself. */
  skipsSecondFactor: boolean;
  /** A verified address links to the account that has it; never to an administrator's. */
  linksVerifiedMail: boolean;
}

/** Sends the browser there and back. */
export interface RedirectingProvider extends ProviderRow {
  kind: "oidc" | "oauth2";
  authorize(flow: ProviderFlow): Promise<URL>;
  /** `callback`: the parameters of the return. Throws Failures `oauth_…`. */
  identify(callback: URLSearchParams, flow: ProviderFlow): Promise<Profile>;
}

/** Has a route of its own (api/): what it is told there is checked there. */
export interface DirectProvider extends ProviderRow {
  kind: "telegram" | "wechat";
}

export type IdentityProvider = RedirectingProvider | DirectProvider;
