// Who is calling: the session cookie or a system access token, and the access policy that every route must declare.
// Refuses a missing or foreign New-Api-User header, ended sessions, banned users and roles that are too low.
import { jwt } from "@elysiajs/jwt";
import { Elysia } from "elysia";
import type { Accounts, Deps, UserAccount } from "../core/deps.ts";
import { READ_WAIT_MS } from "../core/kit/database-failure.ts";
import { within } from "../core/kit/deadline.ts";
import { SESSION_SECONDS } from "../core/users/session-rows.ts";
import type { Session, Sessions } from "../core/users/sessions.ts";
import type { SiteLimits } from "../core/kit/site-limits.ts";
import { refuseInDemo } from "../core/site/demo.ts";
import { refuseInMaintenance } from "../core/site/maintenance.ts";
import type { Maintenance } from "../core/site/maintenance.ts";
import { Role, UserStatus } from "../shared/enums.ts";
import type { Language } from "../shared/enums.ts";
import { Failure } from "../shared/failures.ts";
import { isPaymentCallback } from "../shared/payment-callbacks.ts";
import { BodyLimit, readConsoleBody } from "./body.ts";
import { compressed } from "./encodings.ts";
import { hasUsableHost } from "./host.ts";
import type { OptionStore } from "../core/options/store.ts";
import { languageOf } from "./messages.ts";
import { newRequestId, REQUEST_ID_HEADER } from "./request-id.ts";
import { secretsOf } from "./signing.ts";
import type { Visitors } from "./visitors.ts";

export const SESSION_COOKIE = "session";

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
  sessions: Sessions;
  databaseKind: Deps["db"]["kind"];
  limits: SiteLimits;
  /** As secretsOf (signing.ts) reads it. */
  secret: string;
  /** Whose language is the site's. */
  options: Pick<OptionStore, "get">;
  /** While it is on, only root gets beyond the public calls. */
  maintenance: Maintenance;
  /** Knows every visitor's address; nothing here asks the framework for it. */
  visitors: Visitors;
}

interface Claims {
  sub?: string | undefined;
  /** Session version of the user row when the session began. */
  sv?: unknown;
  /** Id of the session's row. */
  sid?: unknown;
}

/** Who is signed in, and by which session. */
export interface SignedIn {
  user: UserAccount;
  session: Session;
}

/** Signs by the newest secret and reads those of older ones; the same plugin serves routes and page loads. */
export function sessionTokens(setting: string) {
  const [secret, ...before] = secretsOf(setting);
  const under = (each: string) => new Elysia().use(jwt({ name: "sessionJwt", secret: each, exp: "30d" }));
  const newest = under(secret).decorator.sessionJwt;
  const older = before.map((each) => under(each).decorator.sessionJwt);
  const verify: typeof newest.verify = async (token) => {
    let claims = await newest.verify(token);
    for (const each of older) claims ||= await each.verify(token);
    return claims;
  };
  return new Elysia({ name: "session-tokens", seed: setting }).decorate("sessionJwt", {
    ...newest,
    verify,
  });
}

/** What a new session's token says. */
export function claimsOf(user: { id: number; sessionVersion: number }, sid: string) {
  return { sub: String(user.id), sv: user.sessionVersion, sid };
}

/** A PostgreSQL that has gone silent is known to be after some six seconds; then memory answers for whoever it has. */
const KEPT_WAIT_MS = 8000;

/**
 * Calls of keys wait longer for a PostgreSQL that is away than people before a screen, for whoever no memory has. The embedded database
 * bounds its waits itself, and says then that it is busy.
 */
function inTime<T>(
  { databaseKind }: Pick<SessionSettings, "databaseKind">,
  found: T | Promise<T>,
  waitMs = READ_WAIT_MS,
): T | Promise<T> {
  return found instanceof Promise && databaseKind === "postgres" ? within(waitMs, found) : found;
}

/** Whose live session a token with a right signature belongs to; undefined once row, age or version ended it. */
export async function signedInBy(
  claims: Claims | false | undefined,
  settings: Pick<SessionSettings, "accounts" | "sessions" | "databaseKind">,
): Promise<SignedIn | undefined> {
  if (!claims || typeof claims.sub !== "string" || typeof claims.sv !== "number") return undefined;
  if (typeof claims.sid !== "string" || claims.sid === "") return undefined;
  const id = Number(claims.sub);
  if (!Number.isSafeInteger(id) || id <= 0) return undefined;
  const { accounts, sessions } = settings;
  const isKept = accounts.cachedUser(id) !== undefined;
  const user = await inTime(settings, accounts.user(id), isKept ? KEPT_WAIT_MS : READ_WAIT_MS);
  if (!user || user.deleted || user.sessionVersion !== claims.sv) return undefined;
  const session = await sessions.find(claims.sid);
  if (!session || session.userId !== id || session.sessionVersion !== claims.sv) return undefined;
  return { user, session };
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

/** A Set-Cookie line; Secure as soon as the request came over TLS. */
export function cookieLine(
  name: string,
  value: string,
  ageSeconds: number,
  request: Request,
  path = "/",
): string {
  const isSecure =
    new URL(request.url).protocol === "https:" || request.headers.get("x-forwarded-proto") === "https";
  return `${name}=${value}; Max-Age=${ageSeconds}; Path=${path}; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
}

/** The Set-Cookie line of a session, or of its end (empty value). */
export function sessionCookie(value: string, request: Request): string {
  return cookieLine(SESSION_COOKIE, value, value === "" ? 0 : SESSION_SECONDS, request);
}

/** Whether a page of another site made the browser send this. Programs, which say nothing of the kind, are not foreign. */
export function isForeignSite(request: Request): boolean {
  const { headers } = request;
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site !== "same-origin" && site !== "none";
  // Browsers keep that header for secure origins: on plain HTTP the page's own address has to do.
  const from = headers.get("origin") ?? headers.get("referer");
  return from !== null && from !== "" && URL.parse(from)?.host !== headers.get("host");
}

/** Throws where the header New-Api-User does not name the one who is signed in. */
export function checkUserHeader(request: Request, user: UserAccount): void {
  const sent = request.headers.get("new-api-user");
  if (sent === null || sent === "") throw new Failure("auth", "auth_user_header_missing");
  if (!/^\d+$/.test(sent)) throw new Failure("auth", "auth_user_header_malformed");
  if (Number(sent) !== user.id) throw new Failure("auth", "auth_user_header_mismatch");
}

/** A type, not an interface: the framework wants something that is assignable to a record. */
type Caller = {
  actor: UserAccount;
  /** Undefined: an access token. */
  session: Session | undefined;
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
  sessionJwt: { verify(token: string): Promise<Claims | false> };
}

async function identify(
  settings: SessionSettings,
  level: AccessLevel,
  { request, set, sessionJwt }: PolicyContext,
): Promise<Caller> {
  assertHost(request);
  markAnswer(set);
  const address = settings.visitors.addressOf(request);
  const signedIn = await signedInFrom(settings, { request, sessionJwt }, address);
  let user = signedIn?.user;
  if (!user) {
    const header =
      request.headers
        .get("authorization")
        ?.replace(/^Bearer\s+/i, "")
        .trim() ?? "";
    const isShown = header !== "" && level !== "session";
    if (isShown) user = await byAccessToken(settings, request, header, address);
    if (user || !isShown) countCall(settings, request, user, address);
    if (header === "") throw new Failure("auth", "auth_not_signed_in");
    if (level === "session") throw new Failure("auth", "access_token_not_supported");
    if (!user) throw new Failure("auth", "auth_access_token_invalid");
  } else countCall(settings, request, user, address);
  checkUserHeader(request, user);
  if (user.status !== UserStatus.enabled) throw new Failure("forbidden", "auth_user_banned");
  refuseInMaintenance(settings.maintenance, user.role);
  refuseInDemo(settings.options, user.role, request);
  if (user.role < LEVEL_ROLE[level]) throw new Failure("forbidden", "auth_role_too_low");
  if (mustEnrol(settings.options, user) && !(signedIn && isEnrolment(request)))
    throw new Failure("forbidden", "second_factor_required");
  return {
    actor: user,
    session: signedIn?.session,
    language: languageOf(request, settings.options),
    address,
  };
}

/** Whose access token it is. Every one that is unknown costs a query: it counts before it is looked up. */
async function byAccessToken(
  settings: SessionSettings,
  request: Request,
  token: string,
  address: string,
): Promise<UserAccount | undefined> {
  const { accounts, limits } = settings;
  const isCounted = isCountedCall(request);
  if (isCounted) limits.unproven(address, token);
  const user = await inTime(settings, accounts.userByAccessToken(token));
  if (isCounted) limits.proven(address, token, user !== undefined);
  return user;
}

/** Whether the site asks this administrator for a second factor that is not there yet. */
export function mustEnrol(
  options: SessionSettings["options"],
  { role, secondFactor }: Pick<UserAccount, "role" | "secondFactor">,
): boolean {
  return role >= Role.admin && !secondFactor && options.get("AdminSecondFactorRequired");
}

/** What such an administrator reaches: who they are, and what it takes to set a factor up. */
function isEnrolment({ url, method }: Request): boolean {
  const path = new URL(url).pathname.replace(/\/$/, "");
  if (path === "/api/user/self") return method === "GET";
  return path === "/api/verify" || /^\/api\/user\/(2fa|passkey)(\/|$)/.test(path);
}

/** What a visitor shows to be known by; only ever compared. */
function shownBy({ headers }: Request): string {
  return `${headers.get("cookie") ?? ""} ${headers.get("authorization") ?? ""}`;
}

/** The session of the request's cookie; its use is noted. */
async function signedInFrom(
  settings: SessionSettings,
  { request, sessionJwt }: Pick<PolicyContext, "request" | "sessionJwt">,
  address: string,
): Promise<SignedIn | undefined> {
  const raw = cookieOf(request, SESSION_COOKIE);
  if (raw === "") return undefined;
  const signedIn = await signedInBy(await sessionJwt.verify(raw), settings);
  if (signedIn) settings.sessions.seen(signedIn.session, address);
  return signedIn;
}

/** Asked by every page and every probe, and by key: those have no general limit, or one of their own. */
const UNCOUNTED: ReadonlySet<string> = new Set([
  "/api/status",
  "/api/log/token",
  "/api/usage/token",
  "/api/usage/token/",
]);

function isCountedCall({ url }: Request): boolean {
  const { pathname } = new URL(url);
  return pathname.startsWith("/api/") && !UNCOUNTED.has(pathname) && !isPaymentCallback(pathname);
}

/** The general lines of the console's API: per account when somebody is signed in, else per address. */
function countCall(
  { limits }: SessionSettings,
  request: Request,
  user: UserAccount | undefined,
  address: string,
): void {
  if (!isCountedCall(request)) return;
  if (user) limits.account(user.id);
  else limits.stranger(address);
}

/** A visitor's call with its body and its work: sign-ins wait for each other, letters for a slow server. */
const MAX_VISITOR_MS = 120_000;

/**
 * Macros: `access: "user" | "admin" | "root" | "session"` gives `actor`; `open: "public" | "visitor" | "relay"`.
 * The caller is known before a byte of the body is read, and before the body's form can be a reason to refuse.
 *
 * The framework reads out of a hook's source whether it is to be waited for and which parts of its context it uses. So
 * that a minified hook says the same: each is an async arrow function that names what it takes in its parameter.
 */
export function policy(settings: SessionSettings) {
  const { visitors } = settings;
  const callers = new WeakMap<Request, Promise<Caller>>();
  const callerOf = (level: AccessLevel, context: PolicyContext): Promise<Caller> => {
    let caller = callers.get(context.request);
    if (!caller) callers.set(context.request, (caller = accepted(level, context)));
    return caller;
  };
  const visits = new WeakMap<Request, Promise<Visit>>();
  /** Who visits an open route: counted once, before the body is read. */
  const visitOf = (context: PolicyContext): Promise<Visit> => {
    let visit = visits.get(context.request);
    if (!visit) visits.set(context.request, (visit = visiting(settings, context)));
    return visit;
  };
  async function accepted(level: AccessLevel, context: PolicyContext): Promise<Caller> {
    const { request } = context;
    const caller = await visitors.lookUp(request, shownBy(request), () => identify(settings, level, context));
    visitors.hold(request);
    return caller;
  }
  return new Elysia({ name: "policy" })
    .use(sessionTokens(settings.secret))
    .macro("access", (level: AccessLevel) => ({
      detail: { security: signInsFor(level) },
      // The order of the hooks is: parse (calls with a body only), transform, the schemas, resolve.
      parse: async ({ request, set, sessionJwt }, contentType) => {
        await callerOf(level, { request, set, sessionJwt });
        return readConsoleBody(request, contentType, BodyLimit[level]);
      },
      transform: async ({ request, set, sessionJwt }) => {
        await callerOf(level, { request, set, sessionJwt });
      },
      resolve: async ({ request, set, sessionJwt }) => callerOf(level, { request, set, sessionJwt }),
      mapResponse: async ({ request, responseValue, set }) => inTheirEncoding(request, responseValue, set),
    }))
    .macro("open", (kind: "public" | "visitor") => ({
      detail: { security: [] },
      // A visitor's route reads its body by itself.
      ...(kind === "public"
        ? {
            parse: async ({ request, set, sessionJwt }: PolicyContext, contentType: string) => {
              await visitOf({ request, set, sessionJwt });
              return readConsoleBody(request, contentType, BodyLimit.public);
            },
          }
        : {}),
      resolve: async ({ request, set, sessionJwt }) => visitOf({ request, set, sessionJwt }),
      mapResponse: async ({ request, responseValue, set }) => inTheirEncoding(request, responseValue, set),
    }));
}

function inTheirEncoding(request: Request, value: unknown, { headers }: { headers: AnswerHeaders }) {
  return compressed({ request, value, headers, isForeign: isForeignSite(request) });
}

type Visit = {
  visitor: UserAccount | undefined;
  session: Session | undefined;
  language: Language;
  address: string;
};

async function visiting(settings: SessionSettings, context: PolicyContext): Promise<Visit> {
  const { request, set } = context;
  assertHost(request);
  markAnswer(set);
  const address = settings.visitors.addressOf(request);
  const { visitors } = settings;
  const signedIn =
    cookieOf(request, SESSION_COOKIE) === ""
      ? undefined
      : await visitors.lookUp(request, shownBy(request), () => signedInFrom(settings, context, address));
  if (!signedIn) visitors.stranger(request);
  visitors.hold(request, MAX_VISITOR_MS);
  countCall(settings, request, signedIn?.user, address);
  refuseVisitInMaintenance(settings, request, signedIn?.user);
  refuseInDemo(settings.options, signedIn?.user.role ?? Role.guest, request);
  return {
    visitor: signedIn?.user,
    session: signedIn?.session,
    language: languageOf(request, settings.options),
    address,
  };
}

/** Open calls that answer during maintenance: probes and the public pages' data, and root's way in. */
const OPEN_IN_MAINTENANCE: ReadonlySet<string> = new Set([
  "/api/status",
  "/api/setup",
  "/api/setup/import",
  "/api/user/login",
  "/api/user/login/2fa",
  "/api/user/passkey/login/begin",
  "/api/user/passkey/login/finish",
  "/api/user/logout",
  "/api/user/rescue",
  "/api/user/groups",
  "/api/pricing",
  "/api/notice",
  "/api/about",
  "/api/home_page_content",
]);

function refuseVisitInMaintenance(
  { maintenance }: SessionSettings,
  { url, method }: Request,
  visitor: UserAccount | undefined,
): void {
  if (!maintenance.isOn || method === "OPTIONS") return;
  const path = new URL(url).pathname.replace(/\/$/, "");
  // Outside of /api the route itself refuses, in the words of the API that it is.
  if (!path.startsWith("/api/") || OPEN_IN_MAINTENANCE.has(path) || isPaymentCallback(path)) return;
  refuseInMaintenance(maintenance, visitor?.role ?? Role.guest);
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
    | "nobody: list of routes"
    | "nobody: probe",
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
  set.headers["x-content-type-options"] = "nosniff";
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
