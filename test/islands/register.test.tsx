// Registration as a newcomer meets it: rules ticked live, the code of a letter, invitation, terms, and providers beside.
import { beforeEach, expect, spyOn, test } from "bun:test";
import { screen } from "@testing-library/react";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import Register from "../../islands/screens/register.tsx";
import { renderScreen, settle } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

const ACCOUNT = {
  id: 9,
  username: "newcomer",
  display_name: "newcomer",
  role: 1,
  status: 1,
  group: "default",
};
let visited: string[] = [];

beforeEach(() => {
  visited = [];
  spyOn(window.location, "assign").mockImplementation((to) => void visited.push(String(to)));
  interceptLeaving(
    (to) => visited.push(to),
    () => undefined,
  );
});

const open = (options: IslandOptions = {}) =>
  renderScreen(Register, {
    user: null,
    url: "/register",
    data: { terms: "/legal/terms", privacy: "" },
    ...options,
  });
const field = (label: RegExp) => screen.getByLabelText(label) as HTMLInputElement;

test("an account is made by keyboard alone, with the invitation of the address, and is signed in", async () => {
  const { user, answer, requests } = open({ url: "/register?aff=aB3x&next=%2Flog" });
  answer("POST /api/user/register", { success: true });
  answer("POST /api/user/login", { success: true, data: ACCOUNT });
  expect(document.activeElement).toBe(field(/^Username/));
  await user.keyboard("newcomer{Tab}a good secret{Tab}a good secret{Enter}");
  await settle();
  expect(requests[0]?.body).toMatchObject({
    username: "newcomer",
    password: "a good secret",
    aff_code: "aB3x",
  });
  expect(visited).toEqual(["/log"]);
});

test("each rule of the password is ticked as it is met; a password that is the name is refused", async () => {
  const { user, requests } = open();
  await user.type(field(/^Username/), "newcomer");
  await user.type(field(/^Password(?! again)/), "newcomer");
  expect(screen.getByText("8 to 64 characters").closest("li")?.textContent).toEndWith("charactersmet");
  expect(screen.getByText("Not your username or email address").closest("li")?.textContent).toContain(
    "not met yet",
  );
  await user.type(field(/^Password again/), "newcomer{Enter}");
  expect(screen.getByText("Choose a password that is not your username or email address")).toBeTruthy();
  expect(requests).toEqual([]);
});

test("where the site asks for an address, its code is asked for and counted down", async () => {
  const { user, answer, requests } = open({ status: { email_verification: true } });
  answer("GET /api/verification", { success: true });
  await user.type(field(/^Email/), "ada@example.org");
  await user.click(screen.getByRole("button", { name: "Send code" }));
  await settle();
  expect(requests[0]?.query).toEqual({ email: "ada@example.org" });
  expect(screen.getByRole("button", { name: /^Again in (30|29) s$/ })).toBeTruthy();
  const code = field(/^Code from the email/);
  expect(document.activeElement).toBe(code);
  expect(code.autocomplete).toBe("one-time-code");
  await user.paste(" 12 34 56 ");
  expect(code.value).toBe("123456");
});

test("a refused field has the server's words at it", async () => {
  const { user, answer } = open();
  answer("POST /api/user/register", {
    success: false,
    message: "Taken",
    code: "username_taken",
    field: "username",
  });
  await user.type(field(/^Username/), "ada");
  await user.type(field(/^Password(?! again)/), "a good secret");
  await user.type(field(/^Password again/), "a good secret{Enter}");
  await settle();
  expect(screen.getByText("Taken")).toBeTruthy();
  expect(field(/^Username/).getAttribute("aria-invalid")).toBe("true");
});

const PROVIDERS = { sign_in_providers: [{ id: "github", label: "GitHub", icon: "", kind: "oauth2" }] };

test("a provider takes invitation and acceptance along", async () => {
  const { user, answer, requests } = open({
    url: "/register?aff=aB3x",
    status: { ...PROVIDERS, terms_version: "v1" } as IslandOptions["status"] & object,
  });
  answer("POST /api/oauth/start", { success: true, data: { url: "https://github.example/a" } });
  await user.click(screen.getByRole("checkbox"));
  await user.click(screen.getByRole("button", { name: "Continue with GitHub" }));
  await settle();
  expect(requests[0]?.body).toEqual({
    provider: "github",
    intent: "signin",
    next: "/token",
    aff: "aB3x",
    accept_terms: true,
  });
  expect(visited).toEqual(["https://github.example/a"]);
});

test.each([
  [{ register_enabled: false }, "The administrator has closed registration.", 0],
  [{ password_register_enabled: false }, "Registration with a password is closed here.", 1],
])("closed by %p it says so, and offers what is open", (flags, text, buttons) => {
  open({ status: { ...PROVIDERS, ...flags } as IslandOptions["status"] & object });
  expect(screen.getByText(text)).toBeTruthy();
  expect(screen.queryByLabelText(/^Username/)).toBeNull();
  expect(screen.queryAllByRole("button", { name: "Continue with GitHub" })).toHaveLength(buttons);
});
