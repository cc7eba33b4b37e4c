// Who is calling: the session cookie or a system access token, and the access policy that every route must declare.
// Refuses a missing or foreign New-Api-User header, ended sessions, banned users and roles that are too low.
import { jwt } from "@elysiajs/jwt";
import { Elysia } from "elysia";
import type { Accounts, UserAccount } from "../core/deps.ts";
import { Role, UserStatus } from "../shared/enums.ts";
import type { Language } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import { clientAddress } from "./address.ts";
import type { Range } from "./address.ts";
import { readConsoleBody } from "./body.ts";
import { hasUsableHost } from "./host.ts";
import { languageOf } from "./messages.ts";
import { newRequestId, REQUEST_ID_HEADER } from "./request-id.ts";

export const SESSION_COOKIE = "session";
export const SESSION_SECONDS = 30 * 24 * 3600;

/** Roles a route may ask for; `session` means any signed-in user but by cookie only, never by access token. */
export type AccessLevel = "user" | "admin" | "root" | "session";

const LEVEL_ROLE: Record<AccessLevel, number> = {
  user: Role.user,
  session: Role.user,
  admin: Role.admin,
  root: Role.root,
};

export interface SessionSettings {
  accounts: Accounts;
  secret: string;
  trustedProxies: readonly Range[];
}

interface Claims {
  sub?: string | undefined;
  /** Session version of the user row when the session began. */
  sv?: unknown;
}

/** Signs and reads session tokens; the same plugin serves routes and page loads. */
export function sessionTokens(secret: string) {
  return new Elysia({ name: "session-tokens" }).use(jwt({ name: "sessionJwt", secret, exp: "30d" }));
}

/** The user a session token belongs to, or undefined for anything that is not a live session. */
export async function userOfClaims(
  claims: Claims | false | undefined,
  accounts: Accounts,
): Promise<UserAccount | undefined> {
  if (!claims || typeof claims.sub !== "string" || typeof claims.sv !== "number") return undefined;
  const id = Number(claims.sub);
  if (!Number.isSafeInteger(id) || id <= 0) return undefined;
  const user = await accounts.user(id);
  if (!user || user.deleted || user.sessionVersion !== claims.sv) return undefined;
  return user;
}

/**
 * A cookie of a request, or the empty text. Read by hand: as soon as one hook names Elysia's `cookie`, every route of
 * the application parses cookies, the relay's too (measured: a fifth of its time).
 */
export function cookieOf(request: Request, name: string): string {
  const found = new RegExp(`(?:^|;\\s*)${name}=([^;]*)`).exec(request.headers.get("cookie") ?? "");
  try {
    return decodeURIComponent(found?.[1] ?? "");
  } catch {
    return "";
  }
}

/** The Set-Cookie line of a session, or of its end (empty value); Secure as soon as the request came over TLS. */
export function sessionCookie(value: string, request: Request): string {
  const isSecure =
    new URL(request.url).protocol === "https:" || request.headers.get("x-forwarded-proto") === "https";
  const age = value === "" ? 0 : SESSION_SECONDS;
  return `${SESSION_COOKIE}=${value}; Max-Age=${age}; Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

function checkUserHeader(request: Request, user: UserAccount): void {
  const sent = request.headers.get("new-api-user");
  if (sent === null || sent === "") throw new Failure("auth", "auth_user_header_missing");
  if (!/^\d+$/.test(sent)) throw new Failure("auth", "auth_user_header_malformed");
  if (Number(sent) !== user.id) throw new Failure("auth", "auth_user_header_mismatch");
}

/** A type, not an interface: the framework wants something that is assignable to a record. */
type Caller = {
  actor: UserAccount;
  language: Language;
  address: string;
};

type AnswerHeaders = Record<string, string | number | string[] | undefined>;

function assertHost(request: Request): void {
  if (!hasUsableHost(request)) throw new Failure("client", "host_invalid", { status: 400 });
}

/** What a hook of a route with a policy works with. */
interface PolicyContext {
  request: Request;
  set: { headers: AnswerHeaders };
  server: Parameters<typeof clientAddress>[1];
  sessionJwt: { verify(token: string): Promise<Claims | false> };
}

async function identify(
  settings: SessionSettings,
  level: AccessLevel,
  { request, set, server, sessionJwt }: PolicyContext,
): Promise<Caller> {
  assertHost(request);
  markAnswer(set);
  const raw = cookieOf(request, SESSION_COOKIE);
  let user = raw !== "" ? await userOfClaims(await sessionJwt.verify(raw), settings.accounts) : undefined;
  if (!user) {
    const header =
      request.headers
        .get("authorization")
        ?.replace(/^Bearer\s+/i, "")
        .trim() ?? "";
    if (header === "") throw new Failure("auth", "auth_not_signed_in");
    if (level === "session") throw new Failure("auth", "access_token_not_supported");
    user = await settings.accounts.userByAccessToken(header);
    if (!user) throw new Failure("auth", "auth_access_token_invalid");
  }
  checkUserHeader(request, user);
  if (user.status !== UserStatus.enabled) throw new Failure("forbidden", "auth_user_banned");
  if (user.role < LEVEL_ROLE[level]) throw new Failure("forbidden", "auth_role_too_low");
  const address = clientAddress(request, server, settings.trustedProxies);
  return { actor: user, language: languageOf(request), address };
}

/**
 * Macros: `access: "user" | "admin" | "root" | "session"` gives `actor`; `open: "public" | "visitor" | "relay"`.
 * The caller is known before a byte of the body is read, and before the body's form can be a reason to refuse.
 */
export function policy(settings: SessionSettings) {
  const callers = new WeakMap<Request, Promise<Caller>>();
  const callerOf = (level: AccessLevel, context: PolicyContext): Promise<Caller> => {
    let caller = callers.get(context.request);
    if (!caller) callers.set(context.request, (caller = identify(settings, level, context)));
    return caller;
  };
  return new Elysia({ name: "policy" })
    .use(sessionTokens(settings.secret))
    .macro("access", (level: AccessLevel) => ({
      detail: { security: signInsFor(level) },
      // The order of the hooks is: parse (calls with a body only), transform, the schemas, resolve.
      async parse({ request, set, server, sessionJwt }, contentType) {
        await callerOf(level, { request, set, server, sessionJwt });
        return readConsoleBody(request, contentType);
      },
      async transform({ request, set, server, sessionJwt }) {
        await callerOf(level, { request, set, server, sessionJwt });
      },
      resolve: ({ request, set, server, sessionJwt }) =>
        callerOf(level, { request, set, server, sessionJwt }),
    }))
    .macro("open", (kind: "public" | "visitor") => ({
      detail: { security: [] },
      // A visitor's route reads its body by itself.
      ...(kind === "public"
        ? {
            parse: ({ request }: { request: Request }, contentType: string) =>
              readConsoleBody(request, contentType),
          }
        : {}),
      async resolve({ request, sessionJwt, set, server }) {
        assertHost(request);
        markAnswer(set);
        const raw = cookieOf(request, SESSION_COOKIE);
        const visitor =
          kind === "visitor" && raw !== ""
            ? await userOfClaims(await sessionJwt.verify(raw), settings.accounts)
            : undefined;
        const language: Language = languageOf(request);
        return { visitor, language, address: clientAddress(request, server, settings.trustedProxies) };
      },
    }));
}

/** For the document: how a caller may show who they are, with the least role that is let in. */
function signInsFor(level: AccessLevel): Record<string, string[]>[] {
  const session = { session: [level as string], userId: [] };
  return level === "session" ? [session] : [session, { accessToken: [level as string], userId: [] }];
}

/** Marks a route whose own code checks the caller (relay, pages, assets): it declares so by naming who checks. */
export function checkedBy(
  who:
    | "relay key"
    | "session, by the relay"
    | "page table"
    | "nobody: public file"
    | "nobody: picture of a task"
    | "nobody: list of routes",
) {
  const security =
    who === "relay key"
      ? [{ apiKey: [] as string[] }]
      : who === "session, by the relay"
        ? signInsFor("session")
        : [];
  return { detail: { security, tags: [`checked by ${who}`] } };
}

function markAnswer(set: { headers: AnswerHeaders }): void {
  set.headers["cache-control"] = "no-store";
  set.headers[REQUEST_ID_HEADER] = newRequestId();
}

interface RegisteredRoute {
  method: string;
  path: string;
  hooks?: { detail?: { security?: unknown; tags?: string[] } };
}

/** Deny by default: throws for the first route that declares no permission. */
export function assertEveryRouteDeclaresAccess(routes: readonly RegisteredRoute[]): void {
  const naked = routes.filter((route) => !Array.isArray(route.hooks?.detail?.security));
  if (naked.length > 0) {
    const list = naked.map((route) => `${route.method} ${route.path}`).join(", ");
    throw new Error(`these routes declare no permission (access or open): ${list}`);
  }
}

/** What `bun run routes` prints for a route's permission. */
export function accessOf(route: RegisteredRoute): string {
  const tag = route.hooks?.detail?.tags?.find((each) => each.startsWith("checked by "));
  if (tag) return tag.replace("checked by ", "");
  const security = route.hooks?.detail?.security;
  if (!Array.isArray(security)) return "undeclared";
  const first = security[0] as { session?: string[] } | undefined;
  return first?.session?.[0] ?? "public";
}
