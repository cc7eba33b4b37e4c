// Passkeys: the ceremony between server and authenticator. The library comes with the first use.
// Refuses to say more than "given up" of what the browser keeps to itself: a cancelled dialog and a missing key look alike.
import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/browser";
import { ApiFailure, send } from "./api.ts";
import { t } from "./i18n.ts";

const library = () => import("@simplewebauthn/browser");

/** Replaced in tests: no authenticator lives there. */
export const authenticator = {
  /** Whether the browser has passkeys at all. */
  isThere: async (): Promise<boolean> => (await library()).browserSupportsWebAuthn(),
  /** Whether it offers them in the list below a field. */
  fillsFields: async (): Promise<boolean> => (await library()).browserSupportsWebAuthnAutofill(),
  create: async (optionsJSON: PublicKeyCredentialCreationOptionsJSON): Promise<unknown> =>
    (await library()).startRegistration({ optionsJSON }),
  get: async (optionsJSON: PublicKeyCredentialRequestOptionsJSON, isAutofill: boolean): Promise<unknown> =>
    (await library()).startAuthentication({ optionsJSON, useBrowserAutofill: isAutofill }),
  /** Ends a ceremony that waits below a field. */
  stop: async (): Promise<void> => (await library()).WebAuthnAbortService.cancelCeremony(),
};

interface Begun<Options> {
  options: Options;
  flow_token: string;
}

export interface PasskeyProof {
  flow_token: string;
  response: unknown;
}

/** The browser's refusals, in words; a ceremony that another one ended is an AbortError and nothing to tell. */
function failureOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  // The library wraps what the browser says, and keeps its name.
  const names = [error.name, error.cause instanceof Error ? error.cause.name : ""];
  if (names.includes("AbortError")) return new DOMException("superseded", "AbortError");
  if (names.includes("InvalidStateError"))
    return new ApiFailure("passkey_known", 0, t("signin.passkey.known"));
  if (names.includes("NotAllowedError"))
    return new ApiFailure("passkey_given_up", 0, t("signin.passkey.givenUp"));
  if (names.includes("SecurityError"))
    return new ApiFailure("passkey_address", 0, t("signin.passkey.address"));
  return error;
}

async function ceremony<Answer>(run: () => Promise<Answer>): Promise<Answer> {
  if (!(await authenticator.isThere()))
    throw new ApiFailure("passkey_unsupported", 0, t("signin.passkey.unsupported"));
  try {
    return await run();
  } catch (error) {
    throw failureOf(error);
  }
}

/** What the authenticator answers to a challenge of the server, for its `finish` route. */
export async function provePasskey(
  purpose: "login" | "verify",
  { isAutofill = false, body = {} }: { isAutofill?: boolean; body?: object } = {},
): Promise<PasskeyProof> {
  const { options, flow_token } = await send<Begun<PublicKeyCredentialRequestOptionsJSON>>(
    "POST",
    `/api/user/passkey/${purpose}/begin`,
    { body },
  );
  return { flow_token, response: await ceremony(() => authenticator.get(options, isAutofill)) };
}

/** Makes a passkey on this device, or on one that the browser offers, and keeps it under a name. */
export async function addPasskey(name: string): Promise<void> {
  const { options, flow_token } = await send<Begun<PublicKeyCredentialCreationOptionsJSON>>(
    "POST",
    "/api/user/passkey/register/begin",
    { body: {} },
  );
  const response = await ceremony(() => authenticator.create(options));
  await send("POST", "/api/user/passkey/register/finish", { body: { flow_token, response, name } });
}
