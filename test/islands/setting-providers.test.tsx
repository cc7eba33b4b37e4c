// The operator's sign-in providers in the settings: their state, their callback addresses, the editor with its verdict.
import { describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import type { OptionRow } from "../../islands/screens/setting/editor-props.ts";
import MailTest from "../../islands/screens/setting/editors/mail-test.tsx";
import {
  verdictOf,
  providerValues,
  withPreset,
} from "../../islands/screens/setting/editors/provider-values.ts";
import type { CustomProvider } from "../../islands/screens/setting/editors/provider-values.ts";
import Providers from "../../islands/screens/setting/editors/providers.tsx";
import { renderPart, settle } from "./render.tsx";

// As on a page that has been idle once: the drawer is there when it is opened.
await import("../../islands/screens/setting/editors/provider-drawer.tsx");

const ROOT = "/api/custom-oauth-provider";

const option = (key: string, value: string, more: Partial<OptionRow> = {}) =>
  [
    key,
    {
      key,
      kind: "text",
      group: key.startsWith("GitHub") ? "github" : "server",
      value,
      default: "",
      secret: false,
      changed: false,
      tab: "system",
      ...more,
    },
  ] as const;

const losing = (accounts: number) => ({
  success: true,
  message: "",
  data: { accounts_without_sign_in: accounts, passkeys_orphaned: 0 },
});

const work: CustomProvider = {
  slug: "work-sso",
  name: "Work",
  icon: "",
  enabled: true,
  kind: "oauth2",
  client_id: "weir",
  client_secret_set: true,
  issuer: "",
  authorization_endpoint: "https://id.example/authorize",
  token_endpoint: "https://id.example/token",
  user_info_endpoint: "https://id.example/me",
  scopes: "read:user",
  auth_style: 0,
  user_id_field: "data.id",
  username_field: "data.login",
  display_name_field: "data.name",
  email_field: "data.email",
  email_verified_field: "data.verified",
  access_policy: { logic: "and", conditions: [{ field: "data.level", op: "gte", value: 2 }], groups: [] },
  access_denied_message: "{{provider}} asks for level {{required}}, you have {{current}}",
  pkce: "auto",
  allow_register: true,
  skip_second_factor: false,
  link_verified_email: false,
  created_at: 1,
  updated_at: 1,
  identities: 3,
};

const open = async (rows: readonly (readonly [string, OptionRow])[] = [], own: CustomProvider[] = [work]) => {
  const island = renderPart(<Providers rows={new Map(rows)} />, {
    status: { server_address: "https://gate.example/" },
  });
  island.answer(`GET ${ROOT}`, { success: true, message: "", data: own });
  await settle();
  return island;
};
const line = (name: string) => {
  const found = screen.getAllByRole("listitem").find((item) => within(item).queryByText(name));
  if (!found) throw new Error(`no line of ${name}`);
  return within(found);
};

describe("the list of providers", () => {
  test("says which are on, what the others lack, and the address that each server has to know", async () => {
    await open(
      [
        option("GitHubOAuthEnabled", "true"),
        option("GitHubClientId", "abc"),
        option("GitHubClientSecret", "", { secret: true, isSet: false }),
        option("ServerAddress", "https://gate.example"),
      ],
      [
        work,
        { ...work, slug: "draft", name: "Draft", enabled: false, client_secret_set: false, identities: 0 },
      ],
    );
    expect(line("GitHub").getByText("Incomplete")).toBeTruthy();
    expect(line("GitHub").getByText("Missing: Client secret")).toBeTruthy();
    expect(line("GitHub").getByText("https://gate.example/oauth/github")).toBeTruthy();
    expect(line("Work").getByText("Enabled")).toBeTruthy();
    expect(line("Work").getByText("Secret set · 3 accounts bound")).toBeTruthy();
    expect(line("Work").getByText("https://gate.example/oauth/work-sso")).toBeTruthy();
    expect(line("Draft").getByText("Missing: Client secret")).toBeTruthy();
    // Of providers that this release has no options of, nothing is said.
    expect(screen.queryByText("Linux DO")).toBeNull();
  });

  test("deleting tells how many accounts go with it, and how many of them have nothing else", async () => {
    const { user, answer, requests } = await open();
    answer(`GET ${ROOT}/work-sso/ways_in`, losing(2));
    await user.click(line("Work").getByRole("button", { name: "Delete Work" }));
    await settle();
    const question = within(screen.getByRole("dialog"));
    expect(
      question.getByText(/3 accounts are bound to it and can no longer sign in by it\./).textContent,
    ).toContain("2 accounts have no other way to sign in");
    answer(`DELETE ${ROOT}/work-sso`, { success: true, message: "", data: { identities: 3 } });
    answer(`GET ${ROOT}`, { success: true, message: "", data: [] });
    await user.click(question.getByRole("button", { name: "Delete provider" }));
    await settle();
    expect(requests.filter(({ method }) => method === "DELETE")).toHaveLength(1);
    expect(screen.queryByText("Work")).toBeNull();
  });
});

describe("the editor", () => {
  test("switches one off once somebody has read whom that leaves outside", async () => {
    const { user, answer, requests } = await open();
    const puts = () => requests.filter(({ method }) => method === "PUT").map(({ body }) => body);
    answer(`PUT ${ROOT}/work-sso`, { success: true, message: "", data: { ...work, enabled: false } });
    answer(`GET ${ROOT}/work-sso/ways_in`, losing(2));
    await user.click(line("Work").getByRole("button", { name: "Edit Work" }));
    await settle();
    await user.click(screen.getByRole("switch", { name: /^Enabled/ }));
    await user.click(screen.getByRole("button", { name: "Save" }));
    const question = within(await screen.findByRole("dialog", { name: "Work: turn it off?" }));
    await user.click(question.getByRole("button", { name: "Cancel" }));
    await settle();
    expect(puts()).toEqual([]);
    await user.click(screen.getByRole("button", { name: "Save" }));
    await user.click(await screen.findByRole("button", { name: "Turn it off" }));
    await settle();
    expect(puts()).toEqual([{ enabled: false }]);
  });

  test("sends only what was changed, and a secret only where one was typed", async () => {
    const { user, answer, requests } = await open();
    await user.click(line("Work").getByRole("button", { name: "Edit Work" }));
    await settle();
    const name = screen.getByRole("textbox", { name: /Name on the button/ });
    await user.clear(name);
    await user.type(name, "Works");
    answer(`PUT ${ROOT}/work-sso`, { success: true, message: "", data: { ...work, name: "Works" } });
    await user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(requests.find(({ method }) => method === "PUT")?.body).toEqual({ name: "Works" });
  });

  test("a policy that cannot be read is not sent, and the place is named", async () => {
    const { user, requests } = await open();
    await user.click(line("Work").getByRole("button", { name: "Edit Work" }));
    await settle();
    const policy = screen.getByRole("textbox", { name: /Access policy/ });
    await user.clear(policy);
    await user.click(policy);
    await user.paste('{"conditions": [{"field": "a", "op": "like", "value": "b"}]}');
    await user.click(screen.getByRole("button", { name: "Save" }));
    await settle();
    expect(screen.getByText("The access policy cannot be read at conditions.0.op")).toBeTruthy();
    expect(requests.some(({ method }) => method === "PUT")).toBe(false);
  });

  test("shows what a sign-in with pasted claims would come to, in the operator's words", async () => {
    const { user } = await open();
    await user.click(line("Work").getByRole("button", { name: "Edit Work" }));
    await settle();
    const claims = screen.getByRole("textbox", { name: /what the server answers/ });
    const paste = async (value: unknown) => {
      await user.clear(claims);
      await user.click(claims);
      await user.paste(typeof value === "string" ? value : JSON.stringify(value));
    };
    await paste({ data: { id: 7, level: 1, name: "Ada" } });
    expect(screen.getByText("Refused: data.level gte 2, there is 1")).toBeTruthy();
    expect(screen.getByText("Work asks for level 2, you have 1")).toBeTruthy();
    await paste({ data: { id: 7, level: 2, email: "ada@x.org", verified: true } });
    expect(screen.getByText("May come in")).toBeTruthy();
    expect(screen.getByText("ada@x.org (proven)")).toBeTruthy();
    await paste({ data: { id: 7 } });
    expect(screen.getByText("Refused: data.level gte 2, there is –")).toBeTruthy();
    await paste("[]");
    expect(screen.getByText("This is no JSON object")).toBeTruthy();
  });

  test("discovery fills in what the server says of itself", async () => {
    const { user, answer, requests } = await open();
    await user.click(screen.getByRole("button", { name: "Add provider" }));
    await settle();
    await user.type(screen.getByRole("textbox", { name: /Name on the button/ }), "Home");
    await user.type(screen.getByRole("textbox", { name: /Short name/ }), "home");
    await user.type(screen.getByRole("textbox", { name: /Issuer/ }), "https://id.example");
    answer(`POST ${ROOT}/discovery`, {
      success: true,
      message: "",
      data: {
        issuer: "https://id.example/",
        authorization_endpoint: "https://id.example/a",
        token_endpoint: "https://id.example/t",
        user_info_endpoint: "https://id.example/u",
        scopes_supported: [],
        has_pkce: true,
      },
    });
    await user.click(screen.getByRole("button", { name: "Discover" }));
    await settle();
    answer(`POST ${ROOT}`, { success: true, message: "", data: work });
    await user.click(screen.getByRole("button", { name: "Create" }));
    await settle();
    expect(
      requests.find(({ method, path }) => method === "POST" && !path.endsWith("discovery"))?.body,
    ).toMatchObject({
      name: "Home",
      slug: "home",
      kind: "oidc",
      issuer: "https://id.example/",
      token_endpoint: "https://id.example/t",
      pkce: "on",
      access_policy: null,
    });
  });

  test("presets keep what was typed of name and secret", () => {
    const typed = { ...providerValues(undefined), name: "Code", client_secret: "s" };
    expect(withPreset(typed, "gitea")).toMatchObject({
      name: "Code",
      slug: "gitea",
      client_secret: "s",
      kind: "oauth2",
      user_id_field: "id",
    });
    expect(withPreset(typed, "")).toMatchObject({ kind: "oidc", user_id_field: "sub", preset: "" });
    expect(verdictOf(providerValues(work), "")).toEqual({ kind: "none" });
  });
});

describe("a test letter", () => {
  const said = () => document.querySelector(".setting-line [role=status]")?.textContent;

  test("is sent to the typed address, and the server's refusal is read", async () => {
    const { user, answer, requests } = renderPart(<MailTest />);
    answer("POST /api/option/letter", { success: true, message: "", data: { address: "me@x.org" } });
    await user.type(screen.getByRole("textbox"), "me@x.org");
    await user.click(screen.getByRole("button", { name: "Send" }));
    await settle();
    expect(requests[0]?.body).toEqual({ to: "me@x.org" });
    expect(said()).toBe("The mail server took the email to me@x.org");
    answer("POST /api/option/letter", {
      success: false,
      message: "The letter was not sent: 535",
      code: "mail_test_failed",
    });
    await user.click(screen.getByRole("button", { name: "Send" }));
    await settle();
    expect(said()).toBe("The letter was not sent: 535");
  });
});
