// The end of every way in: whoever has proven who they are gets a session, and the browser becomes a known device.
import type { Deps } from "../core/deps.ts";
import { auditSteps } from "../core/logs/audit.ts";
import { deviceName } from "../core/users/device-name.ts";
import { rememberDevice } from "../core/users/devices.ts";
import type { SignInMethod } from "../core/users/session-rows.ts";
import type { UserRow } from "../core/users/users.ts";
import { originOf } from "./audit-actor.ts";
import { deviceCookie, deviceOf, newDeviceId } from "./device.ts";
import { claimsOf, mustEnrol, sessionCookie } from "./session.ts";
import type { SessionSettings } from "./session.ts";

/** The request by which somebody comes in. */
export interface Entrance {
  request: Request;
  address: string;
  set: { headers: Record<string, string | number | string[] | undefined> };
  sessionJwt: { sign(claims: ReturnType<typeof claimsOf>): Promise<string> };
}

export interface Proof {
  method: SignInMethod;
  /** Id of the provider, where one vouches. */
  provider?: string;
  /** Set-Cookie lines that go along. */
  cookies?: readonly string[];
}

/** Opens the session, sets the cookies and answers what the console and older ones read of a sign-in. */
export async function enter(
  deps: Deps,
  { secret }: Pick<SessionSettings, "secret">,
  { request, address, set, sessionJwt }: Entrance,
  user: UserRow,
  { method, provider = "", cookies = [] }: Proof,
) {
  const known = deviceOf(request, secret);
  const deviceId = known === "" ? newDeviceId() : known;
  await rememberDevice(deps, user.id, deviceId);
  const origin = originOf({ request, address });
  const device = await deviceName(origin.userAgent);
  const opened = { userId: user.id, sessionVersion: user.sessionVersion, method, provider };
  const sid = await deps.sessions.open({ ...opened, ip: address, userAgent: origin.userAgent }, (tx) => {
    const by = { ...origin, id: user.id, username: user.username, role: user.role };
    return auditSteps(tx, deps, { user, action: "login.ok", params: { method, provider, device }, by });
  });
  set.headers["set-cookie"] = [
    sessionCookie(await sessionJwt.sign(claimsOf(user, sid)), request),
    deviceCookie(deviceId, secret, request),
    ...cookies,
  ];
  return {
    id: user.id,
    username: user.username,
    display_name: user.displayName,
    role: user.role,
    status: user.status,
    group: user.group,
    // An administrator whom the site asks for a second factor reaches nothing else before.
    ...(mustEnrol(deps.options, user) ? { must_enrol: true } : {}),
  };
}
