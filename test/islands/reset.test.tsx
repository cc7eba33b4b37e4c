// A forgotten password, both halves: the same answer for everybody, and nothing done by merely opening the link.
import { expect, test } from "bun:test";
import { screen } from "@testing-library/react";
import Reset from "../../islands/screens/reset.tsx";
import UserReset from "../../islands/screens/user-reset.tsx";
import { renderScreen, settle } from "./render.tsx";

test("the link is asked for; the answer says nothing of the account, and the button rests", async () => {
  const { user, answer, requests } = renderScreen(Reset, { user: null, url: "/reset" });
  answer("GET /api/reset_password", { success: true });
  await user.type(screen.getByLabelText(/^Email/), "ada@example.org{Enter}");
  await settle();
  expect(requests[0]?.query).toEqual({ email: "ada@example.org" });
  const button = screen.getByRole("button", { name: /\b(30|29)\b/ });
  expect(button.getAttribute("aria-disabled")).toBe("true");
  await user.click(button);
  expect(requests).toHaveLength(1);
});

test("too often: the button rests as long as the server says", async () => {
  const { user, answer } = renderScreen(Reset, { user: null, url: "/reset" });
  answer(
    "GET /api/reset_password",
    Response.json(
      { success: false, message: "Too often", code: "too_many_attempts" },
      { status: 429, headers: { "retry-after": "45" } },
    ),
  );
  await user.type(screen.getByLabelText(/^Email/), "ada@example.org{Enter}");
  await screen.findByRole("alert");
  expect(screen.getByRole("button", { name: /\b(45|44)\b/ })).toBeTruthy();
});

test("where letters cannot be sent there is no form", () => {
  renderScreen(Reset, { user: null, url: "/reset", status: { reset_enabled: false } });
  expect(screen.queryByLabelText(/^Email/)).toBeNull();
});

const LINK = "/user/reset?email=ada%40example.org&token=0123456789abcdef";

test("the link does nothing until somebody presses; then the password is shown, copied, and the token gone", async () => {
  const { user, answer, requests } = renderScreen(UserReset, { user: null, url: LINK });
  await settle();
  expect(requests).toEqual([]);
  answer("POST /api/user/reset", { success: true, data: "new-secret-12" });
  await user.click(screen.getByRole("button"));
  expect(await screen.findByText("new-secret-12")).toBeTruthy();
  expect(requests[0]?.body).toEqual({ email: "ada@example.org", token: "0123456789abcdef" });
  expect(await navigator.clipboard.readText()).toBe("new-secret-12");
  expect(location.search).toBe("");
});

test("a used link says so and offers another", async () => {
  const { user, answer } = renderScreen(UserReset, { user: null, url: LINK });
  answer("POST /api/user/reset", { success: false, message: "Illegal or expired", code: "x" });
  await user.click(screen.getByRole("button"));
  expect((await screen.findByRole("alert")).textContent).toContain("Illegal or expired");
  expect(screen.getByRole("link").getAttribute("href")).toBe("/reset");
});

test("a link that was cut is said to be", () => {
  renderScreen(UserReset, { user: null, url: "/user/reset?email=ada%40example.org" });
  expect(screen.getByRole("alert")).toBeTruthy();
  expect(screen.getByRole("link").getAttribute("href")).toBe("/reset");
});
