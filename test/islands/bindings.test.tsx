// Accounts elsewhere, as their owner binds and unbinds them.
import { beforeEach, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { useState } from "react";
import type { Binding } from "../../islands/lib/account-security.ts";
import { interceptLeaving } from "../../islands/lib/leave.ts";
import { BindingsCard } from "../../islands/screens/personal/bindings.tsx";
import { UserBindings } from "../../islands/screens/user/bindings.tsx";
import type { UserRow } from "../../islands/lib/wire.ts";
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

function Bindings({ first }: { first: string }) {
  const [email, setEmail] = useState(first);
  return <BindingsCard email={email} initial={ROWS} onEmail={setEmail} />;
}

const open = ({ email = "", ...options }: IslandOptions & { email?: string } = {}) =>
  renderPart(<Bindings first={email} />, { url: "/personal", ...options });

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

test("the own address is bound by the code that went to it; what is refused stands at its field", async () => {
  const { user, answer, requests } = open();
  await user.click(screen.getByRole("button", { name: "Bind Email" }));
  const dialog = within(await screen.findByRole("dialog", { name: "Bind an email address" }));
  await user.click(dialog.getByRole("button", { name: "Bind" }));
  expect(dialog.getByText("Enter your email address")).toBeTruthy();
  expect(requests).toEqual([]);
  answer("GET /api/verification", { success: true });
  await user.type(dialog.getByLabelText(/^Email/), " ada@example.org ");
  await user.click(dialog.getByRole("button", { name: "Send code" }));
  await settle();
  expect(requests.at(-1)?.query).toEqual({ email: "ada@example.org" });
  answer("POST /api/oauth/email/bind", {
    success: false,
    message: "The code is wrong",
    code: "code_wrong",
    field: "code",
  });
  await user.type(dialog.getByLabelText(/code/i, { selector: "input" }), "000000");
  await user.click(dialog.getByRole("button", { name: "Bind" }));
  await settle();
  expect(dialog.getByLabelText(/code/i, { selector: "input" }).getAttribute("aria-invalid")).toBe("true");
  answer("POST /api/oauth/email/bind", { success: true });
  await user.click(dialog.getByRole("button", { name: "Bind" }));
  await settle();
  expect(requests.at(-1)?.body).toEqual({ email: "ada@example.org", code: "000000" });
  expect(screen.queryByRole("dialog")).toBeNull();
  expect(screen.getByText("ada@example.org")).toBeTruthy();
});

test("an address is changed with a word about where the letter of it goes", async () => {
  const { user } = open({ email: "old@example.org" });
  await user.click(screen.getByRole("button", { name: "Change Email" }));
  const dialog = await screen.findByRole("dialog", { name: "Change the email address" });
  expect(dialog.textContent).toContain("an email about the change to old@example.org");
});

test("an administrator undoes what is others', and their own on their account page alone", async () => {
  const names: Record<number, boolean> = {};
  for (const id of [7, 8]) {
    const { unmount } = renderPart(
      <UserBindings row={{ id, username: `user${id}` } as UserRow} isReadOnly={false} />,
      {
        user: { id: 7, role: 100 },
        answers: { [`GET /api/user/${id}/oauth/bindings`]: { success: true, data: ROWS } },
      },
    );
    expect(await screen.findByText("ada-hub")).toBeTruthy();
    names[id] = screen.queryAllByRole("button").length > 0;
    unmount();
  }
  expect(names).toEqual({ 7: false, 8: true });
});
