// What people can do at the door: sign in, be corrected, get back to where they were, change a default password.
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import Login from "../../islands/screens/login.tsx";
import { nextAddress } from "../../islands/lib/next-address.ts";
import { renderScreen, settle } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

const ACCOUNT = {
  id: 3,
  username: "root",
  display_name: "Root User",
  role: 100,
  status: 1,
  group: "default",
};

let visited: string[] = [];
let assign: ReturnType<typeof spyOn>;

beforeEach(() => {
  visited = [];
  sessionStorage.clear();
  interceptLeaving(
    (to) => visited.push(to),
    () => undefined,
  );
  assign = spyOn(window.location, "assign").mockImplementation((to) => void visited.push(String(to)));
});
afterEach(() => assign.mockRestore());

function open(options: IslandOptions = {}) {
  return renderScreen(Login, { user: null, url: "/login", ...options });
}
const name = () => screen.getByLabelText("Username or email") as HTMLInputElement;
const password = () => screen.getByLabelText("Password") as HTMLInputElement;

describe("signing in", () => {
  test("works by keyboard alone, stores the user and goes to the API keys", async () => {
    const { user, answer, requests } = open();
    answer("POST /api/user/login", { success: true, message: "", data: ACCOUNT, default_credentials: false });
    expect(document.activeElement).toBe(name());
    await user.keyboard("root{Tab}secret-1{Enter}");
    await settle();
    expect(requests[0]?.body).toEqual({ username: "root", password: "secret-1" });
    expect(JSON.parse(localStorage.getItem("user") ?? "{}")).toEqual(ACCOUNT);
    expect(visited).toEqual(["/token"]);
  });

  test("goes back to the page that asked", async () => {
    const { user, answer } = open({ url: "/login?next=%2Flog%3Ftype%3D2" });
    answer("POST /api/user/login", { success: true, message: "", data: ACCOUNT, default_credentials: false });
    await user.type(name(), "root");
    await user.type(password(), "secret-1{Enter}");
    await settle();
    expect(visited).toEqual(["/log?type=2"]);
  });

  test("a refusal is read out, keeps the name and puts the cursor into the password", async () => {
    const { user, answer } = open();
    answer("POST /api/user/login", { success: false, message: "Wrong, or banned", code: "login_failed" });
    await user.type(name(), "root");
    await user.type(password(), "nope{Enter}");
    expect((await screen.findByRole("alert")).textContent).toContain("Wrong, or banned");
    expect(name().value).toBe("root");
    expect(document.activeElement).toBe(password());
    expect(visited).toEqual([]);
  });

  test("an empty field is not sent and gets the cursor", async () => {
    const { user, requests } = open();
    await user.type(name(), "root{Enter}");
    expect((await screen.findByRole("alert")).textContent).toContain("Enter your username and password");
    expect(document.activeElement).toBe(password());
    expect(requests).toEqual([]);
  });

  test("password managers know the fields", () => {
    open();
    expect(name().autocomplete).toBe("username");
    expect(password().autocomplete).toBe("current-password");
  });
});

const PROVIDERS = [
  { id: "github", label: "GitHub", icon: "", kind: "oauth2" },
  { id: "our-sso", label: "Our own SSO", icon: "https://sso.example/logo.png", kind: "oidc" },
  { id: "wechat", label: "WeChat", icon: "", kind: "wechat" },
];
const withProviders = (more: object = {}) => ({
  status: { sign_in_providers: PROVIDERS, wechat_qrcode: "/qr.png", ...more } as IslandOptions["status"] &
    object,
});

describe("providers", () => {
  test("stand in the order of the status; one leads to the address that the server built", async () => {
    const { user, answer, requests } = open({ ...withProviders(), url: "/login?next=%2Flog" });
    const buttons = screen.getAllByRole("button", { name: /^Continue with/ });
    expect(buttons.map((button) => button.textContent)).toEqual([
      "GContinue with GitHub",
      "Continue with Our own SSO",
      "WContinue with WeChat",
    ]);
    answer("POST /api/oauth/start", { success: true, data: { url: "https://sso.example/authorize?x=1" } });
    await user.click(screen.getByRole("button", { name: "Continue with Our own SSO" }));
    await settle();
    expect(requests[0]?.body).toEqual({ provider: "our-sso", intent: "signin", next: "/log" });
    expect(visited).toEqual(["https://sso.example/authorize?x=1"]);
  });

  test("one that cannot be begun says why, and can be pressed again", async () => {
    const { user, answer } = open(withProviders());
    answer("POST /api/oauth/start", { success: false, message: "GitHub is switched off", code: "x" });
    await user.click(screen.getByRole("button", { name: "Continue with GitHub" }));
    expect((await screen.findByRole("alert")).textContent).toContain("GitHub is switched off");
    expect(screen.getByRole("button", { name: "Continue with GitHub" }).getAttribute("aria-busy")).toBe(
      "false",
    );
    expect(visited).toEqual([]);
  });

  test("WeChat shows its picture and takes the code; a wrong one stays in the dialog", async () => {
    const { user, answer, requests } = open(withProviders());
    await user.click(screen.getByRole("button", { name: "Continue with WeChat" }));
    const dialog = await screen.findByRole("dialog", { name: "Sign in with WeChat" });
    expect(within(dialog).getByRole("img").getAttribute("src")).toBe("/qr.png");
    expect(within(dialog).getByText(/^Good for about (3:00|2:59)$/)).toBeTruthy();
    answer("GET /api/oauth/wechat", { success: false, message: "Wrong code", code: "wechat_code" });
    await user.type(within(dialog).getByLabelText("Code"), "ab12{Enter}");
    expect((await within(dialog).findByRole("alert")).textContent).toContain("Wrong code");
    answer("GET /api/oauth/wechat", { success: true, data: ACCOUNT });
    await user.click(within(dialog).getByRole("button", { name: "Sign in" }));
    await settle();
    expect(requests.at(-1)?.query).toEqual({ code: "ab12" });
    expect(visited).toEqual(["/token"]);
  });
});

test("where passwords are switched off there is no form for them, only what is left", () => {
  open(withProviders({ password_login_enabled: false }));
  expect(screen.queryByLabelText("Password")).toBeNull();
  expect(screen.getAllByRole("button", { name: /^Continue with/ })).toHaveLength(3);
});

test("where nothing is left that is said", () => {
  open({ status: { password_login_enabled: false } });
  expect(screen.getByText("Signing in with a password is switched off.")).toBeTruthy();
});

test("an administrator who has to enrol is led to it, wherever he wanted to go", async () => {
  const { user, answer } = open({ url: "/login?next=%2Fchannel" });
  answer("POST /api/user/login", {
    success: true,
    data: { ...ACCOUNT, must_enrol: true },
    default_credentials: false,
  });
  await user.type(name(), "root");
  await user.type(password(), "secret-1{Enter}");
  await settle();
  expect(visited).toEqual(["/personal?tab=security"]);
});

test("an expired session is said in the specification's words", () => {
  open({ url: "/login?expired=true", language: "zh" });
  expect(screen.getByText("未登录或登录已过期，请重新登录")).toBeTruthy();
});

test("who is signed in already can go on", async () => {
  const { user } = open({ user: {}, url: "/login?next=/playground" });
  expect(screen.getByText("You are signed in as Ada.")).toBeTruthy();
  await user.click(screen.getByRole("button", { name: "Continue" }));
  expect(visited).toEqual(["/playground"]);
});

describe("default credentials", () => {
  async function signInWithDefault() {
    const island = open();
    island.answer("POST /api/user/login", {
      success: true,
      message: "",
      data: ACCOUNT,
      default_credentials: true,
    });
    await island.user.type(name(), "root");
    await island.user.type(password(), "123456{Enter}");
    return {
      island,
      dialog: await screen.findByRole("dialog", { name: "You are using the default password" }),
    };
  }

  test("raise a warning; changing the password then goes on", async () => {
    const { island, dialog } = await signInWithDefault();
    expect(visited).toEqual([]);
    await island.user.click(within(dialog).getByRole("button", { name: "Change it now" }));
    await settle();
    island.answer("PUT /api/user/self", { success: true, message: "" });
    await island.user.type(screen.getByLabelText("New password"), "123456{Enter}");
    expect(screen.getByText("The password must have at least 8 characters")).toBeTruthy();
    await island.user.clear(screen.getByLabelText("New password"));
    await island.user.type(screen.getByLabelText("New password"), "much-better-1");
    await island.user.type(screen.getByLabelText("Confirm the new password"), "much-better-1{Enter}");
    await settle();
    const change = island.requests.at(-1);
    expect(change?.body).toEqual({ password: "much-better-1", original_password: "123456" });
    expect(change?.headers["new-api-user"]).toBe("3");
    expect(visited).toEqual(["/token"]);
  });

  test("can be kept for now", async () => {
    const { island, dialog } = await signInWithDefault();
    await island.user.click(within(dialog).getByRole("button", { name: "Cancel" }));
    await settle();
    expect(visited).toEqual(["/token"]);
  });
});

test.each([
  [undefined, "/token"],
  ["", "/token"],
  ["/log?p=2#x", "/log?p=2#x"],
  ["https://elsewhere.example/", "/token"],
  ["//elsewhere.example/log", "/token"],
  ["/\\elsewhere.example", "/token"],
  ["/.//elsewhere.example", "/token"],
  ["javascript:alert(1)", "/token"],
  ["/login?next=/login", "/token"],
  ["/api/user/logout", "/token"],
  ["/\t/elsewhere.example", "/token"],
])("after signing in, next=%p leads to %p", (next, expected) => {
  expect(nextAddress(next, "http://localhost")).toBe(expected);
});
