// The program as people start it, in one journey: one-time codes and a passkey are set up, and each opens the account again.
// The libraries behind both are loaded when they are needed: only the binary shows that they came along.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Secret, TOTP } from "otpauth";
import { createAuthenticator } from "../support/authenticator.ts";
import { startServerProcess } from "../support/server.ts";
import type { ServerProcess } from "../support/server.ts";

const SITE = { origin: "https://gate.example", rpId: "gate.example" };
const ACCOUNT = { username: "root", password: "correct horse battery" };

interface Told {
  success: boolean;
  code?: string;
  data: Record<string, unknown>;
}

let server: ServerProcess;
beforeAll(async () => {
  server = await startServerProcess();
});
afterAll(async () => {
  await server.stop();
  await server.remove();
});

async function call(method: string, path: string, body?: unknown, as: Record<string, string> = {}) {
  const answer = await fetch(server.url + path, {
    method,
    headers: { "content-type": "application/json", ...as },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const told = (await answer.json()) as Told;
  expect([path, answer.status, told]).toMatchObject([path, 200, { success: true }]);
  const cookies = answer.headers.getSetCookie().map((line) => line.split(";", 1)[0] ?? "");
  return { data: told.data, cookies };
}

const signedIn = ({ data, cookies }: Awaited<ReturnType<typeof call>>) => ({
  cookie: cookies.join("; "),
  "new-api-user": String(data["id"]),
});

test("a password with a one-time code opens the account, and a passkey alone", async () => {
  await call("POST", "/api/setup", { ...ACCOUNT, confirmPassword: ACCOUNT.password });
  const root = signedIn(await call("POST", "/api/user/login", ACCOUNT));
  for (const [key, value] of [
    ["ServerAddress", SITE.origin],
    ["passkey.enabled", "true"],
  ])
    await call("PUT", "/api/option/", { key, value }, root);

  const begun = await call("POST", "/api/user/passkey/register/begin", {}, root);
  const { challenge, user } = begun.data["options"] as { challenge: string; user: { id: string } };
  const authenticator = createAuthenticator();
  const response = authenticator.register({ challenge, ...SITE });
  const registered = { flow_token: begun.data["flow_token"], response, name: "Laptop" };
  await call("POST", "/api/user/passkey/register/finish", registered, root);

  const { data: setup } = await call("POST", "/api/user/2fa/setup", {}, root);
  const totp = new TOTP({ secret: Secret.fromBase32(String(setup["secret"])) });
  const enabled = { flow_token: setup["flow_token"], code: totp.generate() };
  const { data: codes } = await call("POST", "/api/user/2fa/enable", enabled, root);
  const first = await call("POST", "/api/user/login", ACCOUNT);
  expect(first.data).toMatchObject({ require_2fa: true, methods: ["totp", "backup", "passkey"] });
  // The step of the code that switched it on is used up: a backup code opens it within the same half minute.
  const [code] = codes["backup_codes"] as string[];
  const second = await call("POST", "/api/user/login/2fa", { flow_token: first.data["flow_token"], code });
  expect((await call("GET", "/api/user/self", undefined, signedIn(second))).data["username"]).toBe("root");

  const { data: asked } = await call("POST", "/api/user/passkey/login/begin", {});
  const options = asked["options"] as { challenge: string };
  const shown = authenticator.assert({ challenge: options.challenge, ...SITE, userHandle: user.id });
  const body = { flow_token: asked["flow_token"], response: shown };
  const opened = signedIn(await call("POST", "/api/user/passkey/login/finish", body));
  const { data: devices } = await call("GET", "/api/user/sessions", undefined, opened);
  expect(devices).toMatchObject({ 0: { current: true, method: "passkey" }, 1: { method: "password" } });
});
