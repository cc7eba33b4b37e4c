// Accounts elsewhere, as their owner binds and unbinds them.
import { beforeEach, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import type { Binding } from "../../islands/lib/account-security.ts";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import { BindingsCard } from "../../islands/screens/personal/bindings.tsx";
import { renderPart, settle } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

const account = (label: string) => ({ label, created_at: 1_790_000_000, last_used_at: 0 });
const ROWS: Binding[] = [
  {
    provider: "github",
    label: "GitHub",
    icon: "",
    kind: "oauth2",
    account: account("ada-hub"),
    enabled: true,
  },
  { provider: "our-sso", label: "Our SSO", icon: "", kind: "oidc", account: null, enabled: true },
  { provider: "wechat", label: "WeChat", icon: "", kind: "wechat", account: null, enabled: true },
  { provider: "linuxdo", label: "Linux DO", icon: "", kind: "oauth2", account: account(""), enabled: false },
];
let left: string[] = [];

beforeEach(() => {
  left = [];
  sessionStorage.clear();
  interceptLeaving(
    (url) => left.push(url),
    () => undefined,
  );
});

const open = (options: IslandOptions = {}) =>
  renderPart(<BindingsCard email="" initial={ROWS} />, { url: "/personal", ...options });

test("what is bound, what could be, and what the site has switched off", () => {
  open();
  expect(screen.getByText("ada-hub")).toBeTruthy();
  expect(screen.getAllByText("Not bound")).toHaveLength(3);
  expect(screen.getByText("Not enabled on this site")).toBeTruthy();
  // Bound and switched off: the way out is left.
  expect(screen.getByRole("button", { name: "Unbind Linux DO" })).toBeTruthy();
  expect(screen.queryByRole("button", { name: "Bind Linux DO" })).toBeNull();
});

test("binding leaves for the provider, with the purpose and the way back", async () => {
  const { user, answer, requests } = open();
  answer("POST /api/oauth/start", { success: true, data: { url: "https://sso.example/a" } });
  await user.click(screen.getByRole("button", { name: "Bind Our SSO" }));
  await settle();
  expect(requests[0]?.body).toEqual({ provider: "our-sso", intent: "bind", next: "/personal" });
  expect(requests[0]?.headers["new-api-user"]).toBe("7");
  expect(left).toEqual(["https://sso.example/a"]);
});

test("unbinding asks, and the last way in stays with the server's word", async () => {
  const { user, answer, requests } = open();
  answer("DELETE /api/user/oauth/bindings/github", {
    success: false,
    message: "It is your last way in",
    code: "last_method",
  });
  await user.click(screen.getByRole("button", { name: "Unbind GitHub" }));
  const dialog = await screen.findByRole("dialog", { name: "Unbind GitHub?" });
  expect(requests).toEqual([]);
  await user.click(within(dialog).getByRole("button", { name: "Unbind" }));
  expect((await screen.findByRole("alert")).textContent).toContain("It is your last way in");
  expect(screen.getByText("ada-hub")).toBeTruthy();
});

test("unbound, it is a way that could be bound again", async () => {
  const { user, answer } = open();
  answer("DELETE /api/user/oauth/bindings/github", { success: true });
  answer("GET /api/user/oauth/bindings", {
    success: true,
    data: ROWS.map((row) => (row.provider === "github" ? { ...row, account: null } : row)),
  });
  await user.click(screen.getByRole("button", { name: "Unbind GitHub" }));
  await user.click(within(await screen.findByRole("dialog")).getByRole("button", { name: "Unbind" }));
  expect(await screen.findByRole("button", { name: "Bind GitHub" })).toBeTruthy();
});

test("WeChat is bound by its code", async () => {
  const { user, answer, requests } = open();
  answer("GET /api/oauth/wechat/bind", { success: true });
  answer("GET /api/user/oauth/bindings", { success: true, data: ROWS });
  await user.click(screen.getByRole("button", { name: "Bind WeChat" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Bind WeChat" }));
  await user.type(dialog.getByLabelText("Code"), "q7{Enter}");
  await settle();
  expect(requests[0]?.query).toEqual({ code: "q7" });
  expect(screen.queryByRole("dialog")).toBeNull();
});

test("who comes back from a provider is told once, and the address forgets it", async () => {
  open({ url: "/personal?bound=github" });
  expect(await screen.findByText("GitHub is bound")).toBeTruthy();
  expect(location.search).toBe("");
});
