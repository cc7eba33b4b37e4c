// Coming back from a provider: on to the page that was asked for, to a second step, to the terms, or a reason why not.
import { beforeEach, describe, expect, test } from "bun:test";
import { screen } from "@testing-library/react";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import OauthCallback from "../../islands/screens/oauth-callback.tsx";
import { renderScreen, settle } from "./render.tsx";
import type { Island, IslandOptions } from "./render.tsx";

const ACCOUNT = { id: 3, username: "ada", display_name: "Ada", role: 1, status: 1, group: "default" };
let left: string[] = [];

beforeEach(() => {
  left = [];
  sessionStorage.clear();
  localStorage.clear();
  interceptLeaving(
    (url) => left.push(url),
    () => undefined,
  );
});

function begun(flow: object): void {
  sessionStorage.setItem("sign-in-flow", JSON.stringify(flow));
}

function comeBack(url: string, reply: unknown, options: IslandOptions = {}, provider = "github"): Island {
  const route = provider === "telegram" ? "telegram/login" : provider;
  return renderScreen(OauthCallback, {
    url,
    user: null,
    params: { id: provider },
    data: { terms: "/legal/terms", privacy: "" },
    status: {
      sign_in_providers: [
        { id: "github", label: "GitHub", icon: "", kind: "oauth2" },
        { id: "telegram", label: "Telegram", icon: "", kind: "telegram" },
      ],
    } as IslandOptions["status"] & object,
    answers: { [`GET /api/oauth/${route}`]: reply },
    ...options,
  });
}

describe("done", () => {
  test("signs in and goes where it was begun; code and state are gone from the address, and sent once", async () => {
    begun({ provider: "github", intent: "signin", next: "/elsewhere" });
    const { requests } = comeBack("/oauth/github?code=c1&state=s1", {
      success: true,
      data: { ...ACCOUNT, next: "/log" },
    });
    expect(screen.getByText("Asking GitHub who you are…")).toBeTruthy();
    await settle();
    expect(requests.map(({ query }) => query)).toEqual([{ code: "c1", state: "s1" }]);
    expect(location.search).toBe("");
    expect(left).toEqual(["/log"]);
    expect(JSON.parse(localStorage.getItem("user") ?? "{}")).toEqual(ACCOUNT);
  });

  test("a page elsewhere is never gone to", async () => {
    comeBack("/oauth/github?code=c1&state=s1", {
      success: true,
      data: { ...ACCOUNT, next: "//evil.example" },
    });
    await settle();
    expect(left).toEqual(["/token"]);
  });

  test("bound, one is back on the profile, which says so", async () => {
    comeBack("/oauth/github?code=c1&state=s1", { success: true, message: "bind" }, { user: {} });
    await settle();
    expect(left).toEqual(["/personal?bound=github#bindings"]);
  });

  test("verified, one is back where the proof was asked for", async () => {
    comeBack(
      "/oauth/github?code=c1&state=s1",
      { success: true, message: "verify", data: { next: "/personal" } },
      { user: {} },
    );
    await settle();
    expect(left).toEqual(["/personal"]);
  });

  test("where a second factor is asked for, the step is on this page", async () => {
    const { user, answer } = comeBack("/oauth/github?code=c1&state=s1", {
      success: true,
      data: { require_2fa: true, flow_token: "f1", methods: ["totp"], next: "/log" },
    });
    answer("POST /api/user/login/2fa", { success: true, data: ACCOUNT });
    await user.type(await screen.findByLabelText("Six-digit code"), "123456{Enter}");
    await settle();
    expect(left).toEqual(["/log"]);
  });

  test("Telegram's result is read from the fragment", async () => {
    const fragment = Buffer.from(JSON.stringify({ id: 42, first_name: "Адa", hash: "ab" })).toString(
      "base64url",
    );
    const { requests } = comeBack(
      `/oauth/telegram#tgAuthResult=${fragment}`,
      { success: true, data: ACCOUNT },
      {},
      "telegram",
    );
    await settle();
    expect(requests[0]?.query).toEqual({ id: "42", first_name: "Адa", hash: "ab" });
    expect(location.hash).toBe("");
    expect(left).toEqual(["/token"]);
  });
});

describe("failed", () => {
  test("code and provider's words stand there; a guest tries again or takes another way", async () => {
    begun({ provider: "github", intent: "signin", next: "/log" });
    const { user, answer, requests } = comeBack(
      "/oauth/github?error=access_denied&error_description=You+said+no&state=s1",
      { success: false, message: "The provider refused", code: "oauth_denied" },
    );
    const alert = await screen.findByRole("alert");
    expect(alert.textContent).toContain("The provider refused");
    expect(alert.textContent).toContain("The provider says: You said no");
    expect(alert.textContent).toContain("oauth_denied");
    expect(left).toEqual([]);
    expect(screen.getByRole("link", { name: "Other ways to sign in" }).getAttribute("href")).toBe(
      "/login?next=%2Flog",
    );
    answer("POST /api/oauth/start", { success: true, data: { url: "https://github.example/a" } });
    await user.click(screen.getByRole("button", { name: "Try again" }));
    await settle();
    expect(requests.at(-1)?.body).toEqual({ provider: "github", intent: "signin", next: "/log" });
    expect(left).toEqual(["https://github.example/a"]);
  });

  test("whoever is signed in goes on to the profile", async () => {
    comeBack(
      "/oauth/github?code=c1&state=s1",
      { success: false, message: "Somebody else's", code: "oauth_bound" },
      { user: {} },
    );
    await screen.findByRole("alert");
    expect(screen.getByRole("link", { name: "To my profile" }).getAttribute("href")).toBe("/personal");
    expect(screen.getByRole("link", { name: "Other bindings" }).getAttribute("href")).toBe(
      "/personal#bindings",
    );
  });

  test("opened by itself it asks nothing and says so", async () => {
    const { requests } = comeBack("/oauth/github", {});
    expect((await screen.findByRole("alert")).textContent).toContain("Nothing arrived from the provider");
    expect(requests).toEqual([]);
  });

  test("markup in a provider's words is text", async () => {
    comeBack("/oauth/github?error=x&error_description=%3Cimg+src%3Dx%3E", {
      success: false,
      message: "no",
      code: "oauth_denied",
    });
    expect((await screen.findByRole("alert")).querySelector("img")).toBeNull();
  });
});

test("terms come first: accepted, the provider is asked once more with the acceptance", async () => {
  begun({ provider: "github", intent: "signin", next: "/log", aff: "aB3x" });
  const { user, answer, requests } = comeBack("/oauth/github?code=c1&state=s1", {
    success: false,
    message: "Accept the terms",
    code: "terms_unaccepted",
  });
  const go = await screen.findByRole("button", { name: "Accept and go on with GitHub" });
  expect(screen.getByRole("link", { name: "the terms of service" }).getAttribute("href")).toBe(
    "/legal/terms",
  );
  await user.click(go);
  expect(screen.getByText("Accept this to go on")).toBeTruthy();
  expect(requests).toHaveLength(1);
  answer("POST /api/oauth/start", { success: true, data: { url: "https://github.example/a" } });
  await user.click(screen.getByRole("checkbox"));
  await user.click(go);
  await settle();
  expect(requests.at(-1)?.body).toEqual({
    provider: "github",
    intent: "signin",
    next: "/log",
    aff: "aB3x",
    accept_terms: true,
  });
});
