// Any call that asks for fresh proof: one dialog asks for it, by the ways that the account has, and the call is made again.
import { afterEach, beforeEach, expect, jest, spyOn, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { api, ApiFailure, call, send } from "../../islands/lib/api.ts";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import { authenticator } from "../../islands/lib/passkeys.ts";
import { renderPart, settle } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

let left: string[] = [];
afterEach(() => jest.restoreAllMocks());
beforeEach(() => {
  left = [];
  interceptLeaving(
    (url) => left.push(url),
    () => undefined,
  );
});

const asksFor = (...methods: string[]) =>
  Response.json(
    { success: false, message: "Prove it", code: "verification_required", data: { methods } },
    { status: 403 },
  );

/** A page whose call of the system token is refused until the proof was given. */
function guarded(methods: string[], options: IslandOptions = {}) {
  const island = renderPart(<p>page</p>, options);
  let isProven = false;
  island.answer("GET /api/user/token", () =>
    isProven ? { success: true, data: "secret-token" } : asksFor(...methods),
  );
  island.answer("POST /api/verify", ({ body }: { body: { password?: string; code?: string } }) => {
    isProven = body.password !== "wrong";
    return isProven ? { success: true } : { success: false, message: "Wrong password", code: "x" };
  });
  return island;
}
const dialog = async () => within(await screen.findByRole("dialog", { name: "Is it still you?" }));
const verified = ({ requests }: ReturnType<typeof guarded>) =>
  requests.filter(({ path }) => path === "/api/verify").map(({ body }) => body);

test("a wrong password is asked for again, a right one repeats the call, which knows nothing of it", async () => {
  const island = guarded(["password"]);
  const token = call(api.user.token.get());
  const box = await dialog();
  await island.user.type(box.getByLabelText("Your password"), "wrong{Enter}");
  expect((await box.findByRole("alert")).textContent).toContain("Wrong password");
  await island.user.type(box.getByLabelText("Your password"), "right{Enter}");
  expect(await token).toBe("secret-token");
  await settle();
  expect(screen.queryByRole("dialog")).toBeNull();
  expect(verified(island)).toEqual([
    { method: "password", password: "wrong" },
    { method: "password", password: "right" },
  ]);
});

test("calls that go by their path are repeated as well", async () => {
  const island = guarded(["2fa", "password"]);
  const token = send<string>("GET", "/api/user/token");
  const box = await dialog();
  await island.user.type(box.getByLabelText("Six-digit code"), "123456{Enter}");
  expect(await token).toBe("secret-token");
  expect(verified(island)).toEqual([{ method: "2fa", code: "123456" }]);
});

test("given up, the refusal reaches who called, and nothing was done", async () => {
  const island = guarded(["password"]);
  const outcome = call(api.user.token.get()).catch((error: unknown) => error);
  await island.user.click((await dialog()).getByRole("button", { name: "Cancel" }));
  const refusal = await outcome;
  expect(refusal).toBeInstanceOf(ApiFailure);
  expect((refusal as ApiFailure).code).toBe("verification_required");
  expect(island.requests).toHaveLength(1);
});

test("two calls refused at once are asked for once", async () => {
  const island = guarded(["password"]);
  const both = Promise.all([call(api.user.token.get()), send<string>("GET", "/api/user/token")]);
  const box = await dialog();
  while (island.requests.length < 2) await settle();
  await island.user.type(box.getByLabelText("Your password"), "right{Enter}");
  expect(await both).toEqual(["secret-token", "secret-token"]);
  expect(verified(island)).toHaveLength(1);
});

test("a passkey comes first where there is one; another way is a press away", async () => {
  spyOn(authenticator, "isThere").mockResolvedValue(true);
  spyOn(authenticator, "get").mockResolvedValue({ id: "credential" });
  const island = guarded(["password", "2fa", "passkey"]);
  island.answer("POST /api/user/passkey/verify/begin", {
    success: true,
    data: { options: {}, flow_token: "k" },
  });
  const token = call(api.user.token.get());
  const box = await dialog();
  expect(box.getByRole("button", { name: "Password" })).toBeTruthy();
  await island.user.click(box.getByRole("button", { name: "Passkey" }));
  expect(await token).toBe("secret-token");
  expect(verified(island)).toEqual([{ method: "passkey", flow_token: "k", response: { id: "credential" } }]);
});

test("a provider leaves the page, and says so before", async () => {
  const island = guarded(["provider:github"], {
    url: "/personal",
    status: { sign_in_providers: [{ id: "github", label: "GitHub", icon: "", kind: "oauth2" }] } as object,
  });
  island.answer("POST /api/oauth/start", { success: true, data: { url: "https://github.example/a" } });
  void call(api.user.token.get()).catch(() => undefined);
  const box = await dialog();
  expect(box.getByText(/^You are sent to GitHub/)).toBeTruthy();
  await island.user.click(box.getByRole("button", { name: "Sign in with GitHub" }));
  await settle();
  expect(island.requests.at(-1)?.body).toEqual({ provider: "github", intent: "verify", next: "/personal" });
  expect(left).toEqual(["https://github.example/a"]);
  await island.user.click(box.getByRole("button", { name: "Cancel" }));
});

test("an account without any way is told to sign in again", async () => {
  const island = guarded([], { url: "/personal" });
  void call(api.user.token.get()).catch(() => undefined);
  const box = await dialog();
  expect(box.getByRole("link", { name: "Sign in again" }).getAttribute("href")).toBe(
    "/login?next=%2Fpersonal",
  );
  await island.user.click(box.getByRole("button", { name: "Cancel" }));
});

test("a refusal for want of a second factor leads to where one is set up", async () => {
  const island = renderPart(<p>page</p>, { url: "/token" });
  island.answer(
    "GET /api/user/token",
    Response.json({ success: false, message: "Enrol", code: "second_factor_required" }, { status: 403 }),
  );
  await call(api.user.token.get()).catch(() => undefined);
  expect(island.visited).toEqual(["/personal?tab=security"]);
});
