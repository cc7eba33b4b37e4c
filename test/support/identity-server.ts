// Identity servers for tests: a real one (oidc-provider) that lets everybody in as whom the test says, and a forging one
// that signs, or does not sign, what the test wants. Both on loopback.
import { createHash, createHmac, createSign, generateKeyPairSync } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const CLIENT = { id: "weir", secret: "a secret of some length, as servers ask for" };
export const OIDC_CLIENT = CLIENT;

export interface IdentityServer {
  issuer: string;
  /** Who signs in next. */
  account: { sub: string; [claim: string]: unknown };
  /** Walks the address as a browser does and answers what it comes back with. */
  signIn(authorizeUrl: string): Promise<URLSearchParams>;
  close(): Promise<void>;
}

interface Interaction {
  prompt: { name: string; details: { missingOIDCScope?: string[] } };
  params: { client_id: string };
  session?: { accountId: string };
}

/** oidc-provider in this process; PKCE is asked for, e-mail is in userinfo only. */
export async function startIdentityServer(redirectUri: string): Promise<IdentityServer> {
  const { Provider } = await import("oidc-provider");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stand: Pick<IdentityServer, "account"> = { account: { sub: "somebody" } };
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        redirect_uris: [redirectUri],
        response_types: ["code"],
        grant_types: ["authorization_code"],
      },
    ],
    pkce: { required: () => true },
    cookies: { keys: ["a key for cookies"] },
    claims: { openid: ["sub"], profile: ["name", "preferred_username"], email: ["email", "email_verified"] },
    features: { devInteractions: { enabled: false } },
    ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 60, Interaction: 60, Session: 60, Grant: 60 },
    findAccount: (_context: unknown, sub: string) => ({
      accountId: sub,
      claims: () => ({ ...stand.account, sub }),
    }),
  } as never);
  provider.use(async (context: { path: string; req: never; res: never }, next: () => Promise<void>) => {
    if (!context.path.startsWith("/interaction/")) return next();
    const { prompt, params, session } = (await provider.interactionDetails(
      context.req,
      context.res,
    )) as unknown as Interaction;
    if (prompt.name === "login") {
      const login = { accountId: stand.account.sub };
      return provider.interactionFinished(
        context.req,
        context.res,
        { login },
        { mergeWithLastSubmission: false },
      );
    }
    const grant = new provider.Grant({ accountId: session?.accountId ?? "", clientId: params.client_id });
    grant.addOIDCScope("openid profile email");
    const consent = { grantId: await grant.save() };
    return provider.interactionFinished(
      context.req,
      context.res,
      { consent },
      { mergeWithLastSubmission: true },
    );
  });
  const answer = provider.callback();
  server.on("request", (request, response) => void answer(request, response));
  return {
    issuer,
    get account() {
      return stand.account;
    },
    set account(account) {
      stand.account = account;
    },
    async signIn(authorizeUrl) {
      const jar = new Map<string, string>();
      let url = authorizeUrl;
      for (let hop = 0; hop < 10; hop++) {
        const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
        const step = await fetch(url, { redirect: "manual", headers: { cookie } });
        for (const line of step.headers.getSetCookie()) {
          const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
          jar.set(name, value);
        }
        const location = step.headers.get("location");
        if (location === null)
          throw new Error(`the identity server answered ${step.status}: ${await step.text()}`);
        url = new URL(location, url).href;
        if (url.startsWith(redirectUri)) return new URL(url).searchParams;
      }
      throw new Error("the identity server sent around in circles");
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export interface Forgery {
  header?: Record<string, unknown>;
  claims?: Record<string, unknown>;
  /** By default the server's own key. */
  sign?: (signed: string, publicPem: string) => string;
  userinfo?: Record<string, unknown>;
}

export interface ForgingServer {
  issuer: string;
  forgery: Forgery;
  /** Claims of another issuer in the discovery document. */
  documentIssuer: string;
  /** In place of its own, where its document says that the rest is. */
  elsewhere: string;
  close(): Promise<void>;
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

export const signedBy = (key: KeyObject) => (text: string) =>
  createSign("RSA-SHA256").update(text).sign(key).toString("base64url");

/** HS256 with the public key as the secret: a verifier that takes any key for any algorithm believes it. */
export const signedByPublicKey = (text: string, publicPem: string): string =>
  createHmac("sha256", publicPem).update(text).digest("base64url");

/** Answers every code with an ID token after the test's wishes; the nonce is the one that was asked for. */
export function startForgingServer(nonce: () => string): ForgingServer {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const publicPem = publicKey.export({ type: "spki", format: "pem" }).toString();
  const { key_ops: _ops, ext: _ext, ...jwk } = publicKey.export({ format: "jwk" }) as Record<string, unknown>;
  const kid = createHash("sha256").update(publicPem).digest("hex").slice(0, 8);
  const stand: Omit<ForgingServer, "issuer" | "close"> = { forgery: {}, documentIssuer: "", elsewhere: "" };
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request): Response {
      const { pathname, origin: issuer } = new URL(request.url);
      if (pathname.startsWith("/.well-known/"))
        return Response.json({
          issuer: stand.documentIssuer || issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${stand.elsewhere || issuer}/token`,
          jwks_uri: `${stand.elsewhere || issuer}/jwks`,
          userinfo_endpoint: `${stand.elsewhere || issuer}/me`,
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["RS256", "HS256", "none"],
        });
      if (pathname === "/jwks") return Response.json({ keys: [{ ...jwk, kid, alg: "RS256", use: "sig" }] });
      if (pathname === "/me") return Response.json({ sub: "victim", ...stand.forgery.userinfo });
      const now = Math.floor(Date.now() / 1000);
      const { header, claims, sign = signedBy(privateKey) } = stand.forgery;
      const signed = `${encoded({ alg: "RS256", kid, ...header })}.${encoded({
        iss: issuer,
        aud: OIDC_CLIENT.id,
        sub: "victim",
        iat: now,
        exp: now + 60,
        nonce: nonce(),
        ...claims,
      })}`;
      return Response.json({
        access_token: "a",
        token_type: "Bearer",
        id_token: `${signed}.${sign(signed, publicPem)}`,
      });
    },
  });
  return Object.assign(stand, {
    issuer: `http://127.0.0.1:${server.port}`,
    close: () => server.stop(true),
  });
}
