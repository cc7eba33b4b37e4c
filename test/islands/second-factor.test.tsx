// The second step at the door, and the authenticator's life on the profile: set up, codes kept, switched off.
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import type { FactorStatus } from "../../islands/lib/account-security.ts";
import { authenticator } from "../../islands/lib/passkeys.ts";
import Login from "../../islands/screens/login.tsx";
import { FactorsCard } from "../../islands/screens/personal/factors.tsx";
import { renderPart, renderScreen, settle } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

const ACCOUNT = { id: 3, username: "ada", display_name: "Ada", role: 1, status: 1, group: "default" };
const visited: string[] = [];

afterEach(() => jest.restoreAllMocks());
beforeEach(() => {
  localStorage.clear();
  visited.length = 0;
  spyOn(window.location, "assign").mockImplementation((to) => void visited.push(String(to)));
});

async function atTheSecondStep(methods: string[], options: IslandOptions = {}) {
  const island = renderScreen(Login, { user: null, url: "/login?next=%2Flog", ...options });
  island.answer("POST /api/user/login", {
    success: true,
    message: "",
    data: { require_2fa: true, flow_token: "flow-1", methods },
    default_credentials: false,
  });
  await island.user.type(screen.getByLabelText("Username or email"), "ada");
  await island.user.type(screen.getByLabelText("Password"), "secret-1{Enter}");
  await screen.findByRole("heading", { name: "Second step" });
  return island;
}

describe("at the door", () => {
  test("nobody counts as signed in before the second step", async () => {
    await atTheSecondStep(["totp", "backup"]);
    expect(visited).toEqual([]);
    expect(localStorage.getItem("user")).toBeNull();
  });

  test("the code's field has the cursor, takes digits only, and is known to phones", async () => {
    const { user, answer, requests } = await atTheSecondStep(["totp", "backup"]);
    const field = (await screen.findByLabelText("Six-digit code")) as HTMLInputElement;
    expect(document.activeElement).toBe(field);
    expect(field.autocomplete).toBe("one-time-code");
    expect(field.inputMode).toBe("numeric");
    await user.keyboard("12 34{Enter}");
    expect(screen.getByText("Enter the whole code")).toBeTruthy();
    expect(requests).toHaveLength(1);
    answer("POST /api/user/login/2fa", { success: true, data: ACCOUNT });
    await user.keyboard("x5 67{Enter}");
    await settle();
    expect(requests.at(-1)?.body).toEqual({ flow_token: "flow-1", code: "123456" });
    expect(visited).toEqual(["/log"]);
    expect(JSON.parse(localStorage.getItem("user") ?? "{}")).toEqual(ACCOUNT);
  });

  test("a wrong code is read out and leaves the field empty, with the cursor in it", async () => {
    const { user, answer } = await atTheSecondStep(["totp", "backup"]);
    const field = (await screen.findByLabelText("Six-digit code")) as HTMLInputElement;
    answer("POST /api/user/login/2fa", { success: false, message: "Wrong code", code: "factor_wrong" });
    await user.keyboard("000000{Enter}");
    expect((await screen.findByRole("alert")).textContent).toContain("Wrong code");
    expect(field.value).toBe("");
    expect(document.activeElement).toBe(field);
  });

  test("a backup code stands in for the phone", async () => {
    const { user, answer, requests } = await atTheSecondStep(["totp", "backup"]);
    await user.click(await screen.findByRole("button", { name: "Use a backup code" }));
    answer("POST /api/user/login/2fa", { success: true, data: ACCOUNT });
    await user.type(screen.getByLabelText("Backup code"), "abcde-fghjk{Enter}");
    await settle();
    expect(requests.at(-1)?.body).toEqual({ flow_token: "flow-1", code: "abcde-fghjk" });
    expect(visited).toEqual(["/log"]);
  });

  test("a passkey does, too; the password's flow goes along", async () => {
    const { user, answer, requests } = await atTheSecondStep(["totp", "passkey"]);
    spyOn(authenticator, "isThere").mockResolvedValue(true);
    spyOn(authenticator, "get").mockResolvedValue({ id: "credential" });
    answer("POST /api/user/passkey/login/begin", {
      success: true,
      data: { options: {}, flow_token: "key-1" },
    });
    answer("POST /api/user/passkey/login/finish", { success: true, data: ACCOUNT });
    await user.click(await screen.findByRole("button", { name: "Use a passkey" }));
    await settle();
    expect(requests.at(-1)?.body).toEqual({
      flow_token: "key-1",
      response: { id: "credential" },
      flow_token_2fa: "flow-1",
    });
    expect(visited).toEqual(["/log"]);
  });

  test("one can start over", async () => {
    const { user } = await atTheSecondStep(["totp"]);
    await user.click(await screen.findByRole("button", { name: "Start over" }));
    expect(screen.getByLabelText("Password")).toBeTruthy();
  });

  test("in Chinese as well", async () => {
    const island = renderScreen(Login, { user: null, url: "/login", language: "zh" });
    island.answer("POST /api/user/login", {
      success: true,
      data: { require_2fa: true, flow_token: "f", methods: ["totp"] },
    });
    await island.user.type(screen.getByLabelText("用户名或邮箱"), "ada");
    await island.user.type(screen.getByLabelText("密码"), "secret-1{Enter}");
    expect(await screen.findByRole("heading", { name: "两步验证" })).toBeTruthy();
    expect(await screen.findByLabelText("六位验证码")).toBeTruthy();
  });
});

const OFF: FactorStatus = { enabled: false, locked_until: 0, backup_codes_left: 0, created_at: 0 };
const ON: FactorStatus = { ...OFF, enabled: true, backup_codes_left: 2, created_at: 1_790_000_000 };
const CODES = Array.from({ length: 10 }, (_, index) => `abcde-0000${index}`);

function profile(factor: FactorStatus, options: IslandOptions = {}) {
  return renderPart(<FactorsCard initial={{ factor, passkeys: [] }} />, { url: "/personal", ...options });
}

describe("on the profile", () => {
  test("an authenticator is set up by a picture or its secret; the codes are shown once", async () => {
    const { user, answer, requests } = profile(OFF);
    const uri = "otpauth://totp/Weir:ada?secret=JBSWY3DPEHPK3PXP&issuer=Weir";
    answer("POST /api/user/2fa/setup", {
      success: true,
      data: { secret: "JBSWY3DPEHPK3PXP", uri, flow_token: "flow-2" },
    });
    await user.click(screen.getByRole("button", { name: "Set up" }));
    const dialog = within(await screen.findByRole("dialog", { name: "Set up an authenticator" }));
    expect(dialog.getByText("JBSWY3DPEHPK3PXP")).toBeTruthy();
    const path = dialog.getByRole("img", { name: "QR code of the secret" }).querySelector("path");
    // Finder pattern: behind a quiet zone of two modules the first line begins with seven dark ones.
    expect(path?.getAttribute("d")).toStartWith("M2 2h7v1H2z");
    answer("POST /api/user/2fa/enable", { success: true, data: { backup_codes: CODES } });
    await user.type(dialog.getByLabelText("Six-digit code"), "123456{Enter}");
    const codes = within(await screen.findByRole("dialog", { name: "Backup codes" }));
    expect(requests.at(-1)?.body).toEqual({ code: "123456", flow_token: "flow-2" });
    expect(codes.getAllByRole("listitem").map((item) => item.textContent)).toEqual(CODES);
    await user.click(codes.getByRole("button", { name: "Copy all" }));
    expect(await navigator.clipboard.readText()).toBe(CODES.join("\n"));
    await user.click(codes.getByRole("button", { name: "I have kept them" }));
    expect(screen.queryByText(CODES[0] ?? "")).toBeNull();
    expect(screen.getByText("10 backup codes left")).toBeTruthy();
    expect(screen.getByRole("button", { name: "Switch off" })).toBeTruthy();
  });

  test("new codes and switching off ask first", async () => {
    const { user, answer, requests } = profile(ON);
    expect(screen.getByText("2 backup codes left")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "New backup codes" }));
    await user.click(
      within(await screen.findByRole("dialog", { name: "Make new backup codes?" })).getByRole("button", {
        name: "Cancel",
      }),
    );
    expect(requests).toEqual([]);
    await user.click(screen.getByRole("button", { name: "Switch off" }));
    answer("POST /api/user/2fa/disable", { success: true });
    await user.click(
      within(await screen.findByRole("dialog", { name: "Switch off the authenticator?" })).getByRole(
        "button",
        {
          name: "Switch off",
        },
      ),
    );
    await settle();
    expect(screen.getByRole("button", { name: "Set up" })).toBeTruthy();
  });

  test("an administrator who was led here to enrol is told so, nobody else", () => {
    const text = "This site asks administrators for a second factor. Set one up to go on.";
    const { unmount } = profile(OFF, { url: "/personal?tab=security", user: { role: 10 } });
    expect(screen.getByText(text)).toBeTruthy();
    unmount();
    profile(OFF, { url: "/personal?tab=security" });
    expect(screen.queryByText(text)).toBeNull();
  });
});
