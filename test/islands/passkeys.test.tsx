// Passkeys as people meet them: at the door by a button or below the name's field, and as a list on the profile.
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import type { PasskeyRow } from "../../islands/lib/account-security.ts";
import { authenticator } from "../../islands/lib/passkeys.ts";
import Login from "../../islands/screens/login.tsx";
import { FactorsCard } from "../../islands/screens/personal/factors.tsx";
import { renderPart, renderScreen, settle } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

const ACCOUNT = { id: 3, username: "ada", display_name: "Ada", role: 1, status: 1, group: "default" };
const BEGUN = { success: true, data: { options: { challenge: "c" }, flow_token: "key-1" } };
const visited: string[] = [];
let get: ReturnType<typeof spyOn<typeof authenticator, "get">>;

/** What browsers throw when their dialog is cancelled or runs out. */
const refused = (name: string) => Object.assign(new Error("by the browser"), { name });

beforeEach(() => {
  visited.length = 0;
  spyOn(window.location, "assign").mockImplementation((to) => void visited.push(String(to)));
  spyOn(authenticator, "isThere").mockResolvedValue(true);
  spyOn(authenticator, "fillsFields").mockResolvedValue(false);
  spyOn(authenticator, "stop").mockResolvedValue(undefined);
  get = spyOn(authenticator, "get").mockResolvedValue({ id: "credential" });
});
afterEach(() => jest.restoreAllMocks());

const ON = { passkey_login: true } as IslandOptions["status"] & object;
const atTheDoor = (options: IslandOptions = {}) =>
  renderScreen(Login, { user: null, url: "/login", status: ON, ...options });
const button = () => screen.getByRole("button", { name: "Sign in with a passkey" });

describe("at the door", () => {
  test("a press signs in without a name", async () => {
    const { user, answer, requests } = atTheDoor();
    answer("POST /api/user/passkey/login/begin", BEGUN);
    answer("POST /api/user/passkey/login/finish", { success: true, data: ACCOUNT });
    await user.click(button());
    await settle();
    expect(get.mock.calls[0]).toEqual([{ challenge: "c" } as never, false]);
    expect(requests.at(-1)?.body).toEqual({ flow_token: "key-1", response: { id: "credential" } });
    expect(visited).toEqual(["/token"]);
  });

  test("below the name's field it signs in by being chosen there", async () => {
    spyOn(authenticator, "fillsFields").mockResolvedValue(true);
    let choose: (answer: unknown) => void = () => undefined;
    get.mockImplementation(async () => new Promise((resolve) => (choose = resolve)));
    const { answer } = atTheDoor();
    answer("POST /api/user/passkey/login/begin", BEGUN);
    answer("POST /api/user/passkey/login/finish", { success: true, data: ACCOUNT });
    expect((screen.getByLabelText("Username or email") as HTMLInputElement).autocomplete).toBe(
      "username webauthn",
    );
    while (get.mock.calls.length === 0) await settle();
    expect(get.mock.calls[0]?.[1]).toBe(true);
    expect(visited).toEqual([]);
    choose({ id: "credential" });
    while (visited.length === 0) await settle();
    expect(visited).toEqual(["/token"]);
  });

  test.each([
    ["NotAllowedError", "No passkey was used. Try again, or choose another way."],
    ["SecurityError", "Passkeys do not work at this address of the site."],
  ])("%p of the browser is said in words", async (name, text) => {
    get.mockRejectedValue(refused(name));
    const { user, answer } = atTheDoor();
    answer("POST /api/user/passkey/login/begin", BEGUN);
    await user.click(button());
    expect((await screen.findByRole("alert")).textContent).toContain(text);
    expect(visited).toEqual([]);
  });

  test("a browser without passkeys says so", async () => {
    spyOn(authenticator, "isThere").mockResolvedValue(false);
    const { user, answer } = atTheDoor();
    answer("POST /api/user/passkey/login/begin", BEGUN);
    await user.click(button());
    expect((await screen.findByRole("alert")).textContent).toContain("This browser has no passkeys.");
  });

  test("without the site's switch there is none, and the field is a plain one", () => {
    atTheDoor({ status: {} });
    expect(screen.queryByRole("button", { name: "Sign in with a passkey" })).toBeNull();
    expect((screen.getByLabelText("Username or email") as HTMLInputElement).autocomplete).toBe("username");
  });
});

const ROW: PasskeyRow = {
  id: 5,
  name: "Laptop",
  created_at: 1_790_000_000,
  last_used_at: 0,
  device_type: "multiDevice",
  backed_up: true,
};
const OFF = { enabled: false, locked_until: 0, backup_codes_left: 0, created_at: 0 };
const profile = (passkeys: PasskeyRow[], options: IslandOptions = {}) =>
  renderPart(<FactorsCard initial={{ factor: OFF, passkeys }} />, {
    url: "/personal",
    status: ON,
    ...options,
  });

describe("on the profile", () => {
  test("one is added under a name, and stands in the list", async () => {
    const create = spyOn(authenticator, "create").mockResolvedValue({ id: "made" });
    const { user, answer, requests } = profile([]);
    answer("POST /api/user/passkey/register/begin", BEGUN);
    answer("POST /api/user/passkey/register/finish", { success: true });
    answer("GET /api/user/passkey", { success: true, data: [ROW] });
    await user.click(screen.getByRole("button", { name: "Add a passkey" }));
    const field = within(await screen.findByRole("dialog")).getByLabelText(/^Name/) as HTMLInputElement;
    expect(field.value).toBe("Passkey 1");
    await user.clear(field);
    await user.type(field, "Laptop{Enter}");
    expect(await screen.findByText("Laptop")).toBeTruthy();
    expect(create).toHaveBeenCalledTimes(1);
    expect(requests.find(({ path }) => path.endsWith("/register/finish"))?.body).toEqual({
      flow_token: "key-1",
      response: { id: "made" },
      name: "Laptop",
    });
  });

  test("a device that has one already says so, and nothing is kept", async () => {
    spyOn(authenticator, "create").mockRejectedValue(refused("InvalidStateError"));
    const { user, answer, requests } = profile([ROW]);
    answer("POST /api/user/passkey/register/begin", BEGUN);
    await user.click(screen.getByRole("button", { name: "Add a passkey" }));
    const dialog = within(await screen.findByRole("dialog"));
    await user.click(dialog.getByRole("button", { name: "Continue" }));
    expect((await dialog.findByRole("alert")).textContent).toContain(
      "This device has a passkey of yours already.",
    );
    expect(requests.map(({ path }) => path)).toEqual(["/api/user/passkey/register/begin"]);
  });

  test("it is renamed, and removed after a question", async () => {
    const { user, answer, requests } = profile([ROW]);
    answer("PUT /api/user/passkey/5", { success: true });
    answer("GET /api/user/passkey", { success: true, data: [{ ...ROW, name: "Old laptop" }] });
    answer("DELETE /api/user/passkey/5", { success: true });
    await user.click(screen.getByRole("button", { name: "Rename Laptop" }));
    const field = within(await screen.findByRole("dialog")).getByLabelText(/^Name/);
    await user.clear(field);
    await user.type(field, "Old laptop{Enter}");
    expect(await screen.findByText("Old laptop")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Remove Old laptop" }));
    const dialog = await screen.findByRole("dialog", { name: "Remove the passkey “Old laptop”?" });
    expect(requests.some(({ method }) => method === "DELETE")).toBe(false);
    await user.click(within(dialog).getByRole("button", { name: "Remove" }));
    await settle();
    expect(screen.queryByRole("button", { name: "Rename Old laptop" })).toBeNull();
  });

  test("switched off by the site, what is there can still be removed, and none is added", () => {
    profile([ROW], { status: {} });
    expect(screen.queryByRole("button", { name: "Add a passkey" })).toBeNull();
    expect(screen.getByRole("button", { name: "Remove Laptop" })).toBeTruthy();
  });
});
