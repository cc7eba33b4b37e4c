// What the first person can do with the wizard: go through it, be corrected where it was typed, and go on.
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { act, screen } from "@testing-library/react";
import Setup from "../../islands/screens/setup.tsx";
import { passwordStrength } from "../../islands/screens/setup/values.ts";
import { renderScreen, settle } from "./render.tsx";
import type { IslandOptions, SentRequest } from "./render.tsx";

/** The browser's. */
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const FRESH = { databaseType: "sqlite", databaseVersion: "3.50.4", rootExists: false, isMoving: false };

function open(options: IslandOptions = {}) {
  return renderScreen(Setup, { user: null, url: "/setup", data: FRESH, ...options });
}
const next = () => screen.getByRole("button", { name: "Next" });
const field = (name: string) => screen.getByLabelText(new RegExp(`^${name}`)) as HTMLInputElement;
const heading = () => screen.getByRole("heading", { level: 2 }).textContent;

async function toMode(island: ReturnType<typeof open>) {
  await island.user.click(next());
  await island.user.keyboard("root{Tab}long-enough-1{Tab}{Tab}long-enough-1{Enter}");
  await settle();
}

describe("the wizard", () => {
  test("is gone through by keyboard and sends what the specification names", async () => {
    const island = open();
    island.answer("POST /api/setup", { success: true, message: "" });
    island.answer("POST /api/user/login", { success: true, message: "", data: { id: 1, username: "root" } });
    expect(screen.getByText("SQLite (embedded)")).toBeTruthy();
    await toMode(island);
    expect(heading()).toBe("Usage mode");
    expect(document.activeElement).toBe(screen.getByRole("radio", { name: "External operation" }));
    await island.user.click(screen.getByRole("radio", { name: "Self-use" }));
    await island.user.click(screen.getByRole("button", { name: "Finish setup" }));
    expect((await screen.findByRole("link", { name: "Add your first channel" })).getAttribute("href")).toBe(
      "/channel?new=1",
    );
    expect(island.requests[0]?.body).toEqual({
      username: "root",
      password: "long-enough-1",
      confirmPassword: "long-enough-1",
      SelfUseModeEnabled: true,
      DemoSiteEnabled: false,
      time_zone: ZONE,
    });
    expect(island.requests[1]?.path).toBe("/api/user/login");
    expect(localStorage.getItem("user")).toContain("root");
  });

  test("says what is wrong at the field, in the specification's words, and does not go on", async () => {
    const island = open({ language: "zh" });
    await island.user.click(screen.getByRole("button", { name: "下一步" }));
    await island.user.type(field("密码"), "short");
    await island.user.click(screen.getByRole("button", { name: "下一步" }));
    await settle();
    expect(screen.getByText("请输入管理员用户名")).toBeTruthy();
    expect(screen.getByText("密码长度至少为8个字符")).toBeTruthy();
    expect(screen.getByText("两次输入的密码不一致")).toBeTruthy();
    expect(document.activeElement).toBe(field("用户名"));
    expect(island.requests).toEqual([]);
  });

  test("keeps what was typed when going back", async () => {
    const island = open();
    await toMode(island);
    await island.user.click(screen.getByRole("radio", { name: "Demo site" }));
    await island.user.click(screen.getByRole("button", { name: "Back" }));
    expect(field("Username").value).toBe("root");
    expect(field("Password").value).toBe("long-enough-1");
    await island.user.click(next());
    expect((screen.getByRole("radio", { name: "Demo site" }) as HTMLInputElement).checked).toBe(true);
  });

  test("skips the account when an administrator exists", async () => {
    const island = open({ data: { databaseType: "postgres", rootExists: true } });
    island.answer("POST /api/setup", { success: true, message: "" });
    await island.user.click(next());
    expect(screen.getByText(/There is already an administrator/)).toBeTruthy();
    await island.user.click(next());
    await island.user.click(screen.getByRole("button", { name: "Finish setup" }));
    await settle();
    expect(island.requests.map(({ body }) => body)).toEqual([
      { SelfUseModeEnabled: false, DemoSiteEnabled: false, time_zone: ZONE },
    ]);
  });

  test("a zone that the server has never heard of keeps nobody from a site", async () => {
    const island = open();
    const unknown = { success: false, message: "No zone", code: "option_not_time_zone" };
    island.answer("POST /api/setup", ({ body }: SentRequest) =>
      "time_zone" in (body as object)
        ? Response.json(unknown, { status: 400 })
        : Response.json({ success: true, message: "" }),
    );
    island.answer("POST /api/user/login", { success: true, message: "", data: { id: 1, username: "root" } });
    await toMode(island);
    await island.user.click(screen.getByRole("button", { name: "Finish setup" }));
    expect((await screen.findByRole("link", { name: "Go on to the first call" })).getAttribute("href")).toBe(
      "/detail",
    );
  });

  test("a refused name leads back to its field", async () => {
    const island = open();
    island.answer(
      "POST /api/setup",
      Response.json({ success: false, message: "At most 12", code: "setup_username_long" }, { status: 400 }),
    );
    await toMode(island);
    await island.user.click(screen.getByRole("button", { name: "Finish setup" }));
    expect(await screen.findByText("At most 12")).toBeTruthy();
    expect(heading()).toBe("Administrator");
    expect(field("Username").getAttribute("aria-invalid")).toBe("true");
  });

  test("a failure can be tried again with everything kept", async () => {
    const island = open();
    island.answer(
      "POST /api/setup",
      Response.json(
        { success: false, message: "Setup failed; please try again", code: "setup_failed" },
        { status: 500 },
      ),
    );
    await toMode(island);
    await island.user.click(screen.getByRole("button", { name: "Finish setup" }));
    expect((await screen.findByRole("alert")).textContent).toContain("Setup failed");
    island.answer("POST /api/setup", { success: true, message: "" });
    island.answer("POST /api/user/login", { success: false, message: "no" });
    await island.user.click(screen.getByRole("button", { name: "Finish setup" }));
    expect(await screen.findByText("The system has been set up")).toBeTruthy();
    expect(localStorage.getItem("user")).toBeNull();
  });
});

describe("after the setup", () => {
  let reload: ReturnType<typeof spyOn>;
  beforeEach(() => {
    reload = spyOn(window.location, "reload").mockImplementation(() => undefined);
  });
  afterEach(() => {
    jest.useRealTimers();
    reload.mockRestore();
  });

  test("the page reloads after a second and a half, not earlier", async () => {
    const island = open({ data: { databaseType: "sqlite", rootExists: true } });
    island.answer("POST /api/setup", { success: true, message: "" });
    await island.user.click(next());
    await island.user.click(next());
    const submit = screen.getByRole("button", { name: "Finish setup" });
    jest.useFakeTimers();
    await act(async () => {
      submit.click();
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    });
    expect(screen.getByText("The system has been set up")).toBeTruthy();
    act(() => void jest.advanceTimersByTime(1499));
    expect(reload).toHaveBeenCalledTimes(0);
    act(() => void jest.advanceTimersByTime(1));
    expect(reload).toHaveBeenCalledTimes(1);
  });
});

test.each([
  ["", 0],
  ["seven77", 0],
  ["aaaaaaaaaaaa", 1],
  ["password1", 1],
  ["abcdefgi", 1],
  ["correct horse battery", 4],
  ["Tr0ub4dor&3", 3],
] as const)("the strength of %p is %p of 4", (password, level) => {
  expect(passwordStrength(password)).toBe(level);
});

describe("a site that moves in", () => {
  const begin = async (island: ReturnType<typeof open>, source: string) => {
    await island.user.click(screen.getByRole("button", { name: "Move a site in" }));
    await island.user.type(await screen.findByLabelText(/^Database of the old site/), `${source}{Enter}`);
    await settle();
  };

  test("is told why it cannot be read, at the field, and can be gone back from", async () => {
    const island = open();
    island.answer("POST /api/setup/import", {
      success: false,
      code: "setup_import_refused",
      message: "This cannot be moved in: no such file",
    });
    await begin(island, "/data/none.db");
    expect(screen.getByText("This cannot be moved in: no such file")).toBeTruthy();
    expect(screen.getByLabelText(/^Database of the old site/).getAttribute("aria-invalid")).toBe("true");
    await island.user.click(screen.getByRole("button", { name: "Back" }));
    expect(next()).toBeTruthy();
  });

  test("shows how far it is, then the report and the way in", async () => {
    const island = open();
    island.answer("POST /api/setup/import", { success: true, message: "" });
    island.answer("GET /api/setup/import", {
      success: true,
      message: "",
      data: { state: "running", step: "users", done: 1200, total: 3000, left_seconds: 4 },
    });
    await begin(island, "/data/one-api.db");
    expect(island.requests[0]?.body).toEqual({ source: "/data/one-api.db" });
    expect(await screen.findByText("users: 1,200 of 3,000 rows")).toBeTruthy();
    expect(screen.getByText("About 4 s left")).toBeTruthy();
    island.answer("GET /api/setup/import", {
      success: true,
      message: "",
      data: { state: "done", report: ["new-api on sqlite", "Did not come along"] },
    });
    expect(
      (await screen.findByRole("link", { name: "Sign in" }, { timeout: 5000 })).getAttribute("href"),
    ).toBe("/login");
    expect(screen.getByLabelText("Report of the import").textContent).toContain("Did not come along");
  });

  test("a page that is loaded while it runs shows it at once", async () => {
    const island = open({ data: { ...FRESH, isMoving: true } });
    island.answer("GET /api/setup/import", {
      success: true,
      message: "",
      data: { state: "failed", error: "gone" },
    });
    expect(await screen.findByText("Looking at the old database …")).toBeTruthy();
    expect(await screen.findByText("gone")).toBeTruthy();
  });
});
