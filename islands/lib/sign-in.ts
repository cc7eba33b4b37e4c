// What the ways in have in common: what the server answers, where people go then, and how a provider's page is opened.
// Refuses to count somebody as signed in whose second factor is still asked for.
import { ENROLMENT, send } from "./api.ts";
import { status, user } from "./boot.ts";
import type { BootUser } from "./boot.ts";
import { leaveFor } from "./leave.ts";
import { nextAddress } from "./next-address.ts";
import { KEYS, writeItem } from "./storage.ts";

/** One provider of the status: what its button says. */
export interface SignInProvider {
  id: string;
  label: string;
  icon: string;
  kind: string;
}

interface SignInFlags {
  sign_in_providers?: readonly SignInProvider[];
  passkey_login?: boolean;
  wechat_qrcode?: string;
  terms_version?: string;
}

/** What the status says of ways in. */
export function signInFlags(): SignInFlags {
  return status.value as SignInFlags;
}

export interface SignedIn extends Omit<BootUser, "quota"> {
  status: number;
  /** The page that was asked for, as the server kept it. */
  next?: string;
  /** Made by this very sign-in. */
  is_new?: boolean;
  /** The site asks administrators for a second factor, and this one has none. */
  must_enrol?: boolean;
}

export interface FactorAsked {
  require_2fa: true;
  flow_token: string;
  /** totp, backup, passkey. */
  methods: readonly string[];
  next?: string;
}

export type SignInAnswer = SignedIn | FactorAsked;

export function isFactorAsked(answer: object): answer is FactorAsked {
  return "require_2fa" in answer && answer.require_2fa === true;
}

/** From now on the page knows who is here, as older consoles read it too. */
export function keepSignedIn(answer: SignedIn): void {
  const { id, username, display_name, role, group, status: state } = answer;
  const known = { id, username, display_name, role, status: state, group };
  writeItem(KEYS.user, JSON.stringify(known));
  user.value = { ...known, quota: 0 };
}

/** Where to go after signing in: to enrol, else to the page that was asked for. */
export function placeAfter(answer: SignedIn, next: string | undefined): string {
  return answer.must_enrol === true ? ENROLMENT : nextAddress(answer.next || next, location.origin);
}

export interface ProviderFlow {
  provider: string;
  intent: "signin" | "bind" | "verify";
  next?: string;
  aff?: string;
  accept_terms?: boolean;
}

const LAST_FLOW = "sign-in-flow";

/** What was begun in this tab: the callback's page tries it again by it. */
export function lastFlow(): ProviderFlow | undefined {
  try {
    const text = sessionStorage.getItem(LAST_FLOW);
    return text ? (JSON.parse(text) as ProviderFlow) : undefined;
  } catch {
    return undefined;
  }
}

/** Leaves for the provider's page; the server builds the address and keeps the state. */
export async function startProvider(flow: ProviderFlow): Promise<void> {
  const { url } = await send<{ url: string }>("POST", "/api/oauth/start", { body: flow });
  try {
    sessionStorage.setItem(LAST_FLOW, JSON.stringify(flow));
  } catch {
    // Without storage "try again" leads to the login page.
  }
  leaveFor(url);
}

/** Addresses of what has to be accepted; empty: there is none. */
export interface LegalPlaces {
  terms: string;
  privacy: string;
}
