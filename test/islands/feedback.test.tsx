// Toasts, questions, copying, the palette, shortcuts and filters as people meet them.
import { afterEach, describe, expect, jest, spyOn, test } from "bun:test";
import { act, fireEvent, screen, within } from "@testing-library/react";
import { useT, setLanguage } from "../../islands/lib/i18n.ts";
import { useShortcut } from "../../islands/lib/keys.ts";
import { useCommand } from "../../islands/lib/commands.ts";
import { setQuery, useQuery } from "../../islands/lib/url-state.ts";
import { confirm } from "../../islands/ui/confirm.tsx";
import { CopyButton } from "../../islands/ui/copy-button.tsx";
import { toast, toastFailure } from "../../islands/lib/toasts.ts";
import { FilterBar } from "../../islands/ui/filter-bar.tsx";
import { Menu } from "../../islands/ui/menu.tsx";
import { Secret } from "../../islands/ui/secret.tsx";
import { renderPart, settle } from "./render.tsx";

afterEach(() => {
  jest.useRealTimers();
});

describe("toasts", () => {
  test("the same key replaces the older one and no more than three are shown", () => {
    renderPart(null);
    act(() => {
      for (const key of ["a", "b", "c", "d"]) toast({ key, text: `text ${key}` });
      toast({ key: "d", text: "text d again" });
    });
    expect(screen.queryByText("text a")).toBeNull();
    expect(screen.getAllByText(/^text/).map((each) => each.textContent)).toEqual([
      "text b",
      "text c",
      "text d again",
    ]);
  });

  test("an ordinary one goes by itself, a failure stays until it is closed", async () => {
    jest.useFakeTimers();
    const log = spyOn(console, "error").mockImplementation(() => undefined);
    renderPart(null);
    act(() => {
      toast({ key: "a", text: "Saved" });
      toastFailure(new Error("boom"), "x");
    });
    act(() => {
      jest.advanceTimersByTime(5000);
    });
    expect(log).toHaveBeenCalledTimes(1);
    log.mockRestore();
    expect(screen.queryByText("Saved")).toBeNull();
    expect(screen.getByRole("alert").textContent).toContain("Something went wrong. Please try again.");
    fireEvent.click(within(screen.getByRole("alert")).getByRole("button", { name: "Close" }));
    expect(screen.queryByRole("alert")).toBeNull();
  });

  test("Undo runs once and takes the toast away", async () => {
    let undone = 0;
    const { user } = renderPart(null);
    act(() => toast({ key: "a", text: "Disabled", undo: () => void undone++ }));
    await user.click(screen.getByRole("button", { name: "Undo" }));
    expect(undone).toBe(1);
    expect(screen.queryByText("Disabled")).toBeNull();
  });

  test("Ctrl Z takes the newest change back, but not while somebody types", async () => {
    const undone: string[] = [];
    const { user } = renderPart(<input aria-label="Name" />);
    act(() => {
      toast({ text: "first", undo: () => void undone.push("first") });
      toast({ text: "second", undo: () => void undone.push("second") });
      toast({ text: "third" });
    });
    screen.getByLabelText("Name").focus();
    await user.keyboard("{Control>}z{/Control}");
    expect(undone).toEqual([]);
    screen.getByLabelText("Name").blur();
    await user.keyboard("{Control>}z{/Control}");
    expect(undone).toEqual(["second"]);
    expect(screen.queryByText("second")).toBeNull();
    await user.keyboard("{Control>}z{/Control}");
    await user.keyboard("{Control>}z{/Control}");
    expect(undone).toEqual(["second", "first"]);
  });

  test("closing one gives the focus back to where it came from", async () => {
    const { user } = renderPart(<input aria-label="Name" />);
    act(() => toast({ text: "saved" }));
    screen.getByLabelText("Name").focus();
    await user.tab();
    expect(document.activeElement).toBe(screen.getByRole("button", { name: "Close" }));
    await user.keyboard("{Enter}");
    expect(screen.queryByText("saved")).toBeNull();
    expect(document.activeElement).toBe(screen.getByLabelText("Name"));
  });
});

describe("questions", () => {
  test("only the button with the verb means yes", async () => {
    const { user } = renderPart(null);
    const answers: boolean[] = [];
    const question = {
      title: "Delete 3 channels?",
      text: "This cannot be undone.",
      action: "Delete 3 channels",
    };
    act(() => void confirm(question).then((yes) => answers.push(yes)));
    await user.click(screen.getByRole("button", { name: "Cancel" }));
    act(() => void confirm(question).then((yes) => answers.push(yes)));
    await user.click(screen.getByRole("button", { name: "Delete 3 channels" }));
    await settle();
    expect(answers).toEqual([false, true]);
  });

  test("what has to be typed must be typed", async () => {
    const { user } = renderPart(null);
    let answer: boolean | undefined;
    act(
      () =>
        void confirm({ title: "Delete account?", action: "Delete", typed: "ada" }).then(
          (yes) => (answer = yes),
        ),
    );
    expect(screen.getByRole("button", { name: "Delete" }).hasAttribute("disabled")).toBe(true);
    await user.type(screen.getByLabelText("Type ada to confirm"), "ada{Enter}");
    await settle();
    expect(answer).toBe(true);
  });
});

describe("copying", () => {
  test("success is announced, refusal offers the text for copying by hand", async () => {
    const { user } = renderPart(<CopyButton text="sk-1" label="Copy key" />);
    await user.click(screen.getByRole("button", { name: "Copy key" }));
    await settle();
    expect(await navigator.clipboard.readText()).toBe("sk-1");
    expect(screen.getByText("Copied")).toBeTruthy();
    const refusing = spyOn(navigator.clipboard, "writeText").mockRejectedValue(new Error("forbidden"));
    await user.click(screen.getByRole("button", { name: "Copy key" }));
    await settle();
    refusing.mockRestore();
    expect((screen.getByRole("textbox") as HTMLTextAreaElement).value).toBe("sk-1");
    await user.click(screen.getByRole("button", { name: "Close" }));
  });
});

describe("secrets", () => {
  test("are masked, copied without being shown, and hide again after half a minute", async () => {
    jest.useFakeTimers();
    renderPart(<Secret value="sk-abcdef123456" label="API key" canReveal />);
    expect(document.body.textContent).not.toContain("sk-abcdef");
    fireEvent.click(screen.getByRole("button", { name: "Show API key" }));
    expect(screen.getByText("sk-abcdef123456")).toBeTruthy();
    act(() => {
      jest.advanceTimersByTime(31_000);
    });
    expect(screen.getByText("••••3456")).toBeTruthy();
    expect(screen.getByRole("button", { name: "Copy API key" })).toBeTruthy();
  });
});

test("a lost connection is told until it is back", () => {
  renderPart(null);
  act(() => void window.dispatchEvent(new Event("offline")));
  expect(screen.getByText(/^You are offline/)).toBeTruthy();
  act(() => void window.dispatchEvent(new Event("online")));
  expect(screen.queryByText(/^You are offline/)).toBeNull();
});

test("a screen that crashes leaves message, Retry and Copy instead of a blank page", async () => {
  const log = spyOn(console, "error").mockImplementation(() => undefined);
  let isBroken = true;
  function Fragile() {
    if (isBroken) throw new Error("no such column");
    return <p>Fine again</p>;
  }
  const { user } = renderPart(<Fragile />);
  expect(within(screen.getByRole("alert")).getByText("no such column")).toBeTruthy();
  isBroken = false;
  await user.click(screen.getByRole("button", { name: "Retry" }));
  expect(screen.getByText("Fine again")).toBeTruthy();
  log.mockRestore();
});

describe("palette", () => {
  function Registers({ run }: { run: () => void }) {
    useCommand({ id: "do x", kind: "do", title: "Test all channels", run });
    return null;
  }

  test("Ctrl K opens it, arrows walk it, Enter runs; a screen's own commands come first", async () => {
    let runs = 0;
    const { user } = renderPart(<Registers run={() => void runs++} />);
    await user.keyboard("{Control>}k{/Control}");
    const box = await screen.findByRole("combobox", { name: "Search or jump" });
    const first = screen.getAllByRole("option")[0];
    expect(first?.textContent).toContain("Test all channels");
    await user.keyboard("{ArrowDown}");
    expect(screen.getAllByRole("option")[1]?.getAttribute("aria-selected")).toBe("true");
    expect(box.getAttribute("aria-activedescendant")).toBe(screen.getAllByRole("option")[1]?.id ?? "-");
    await user.keyboard("{ArrowUp}{Enter}");
    expect(runs).toBe(1);
    expect(screen.queryByRole("combobox")).toBeNull();
  });

  test("Chinese titles are found by English words and by initials; pages of other roles are not offered", async () => {
    const { user } = renderPart(null, { language: "zh" });
    await user.keyboard("{Control>}k{/Control}");
    const box = await screen.findByRole("combobox");
    await user.type(box, "playground");
    expect(screen.getAllByRole("option").map((each) => each.textContent)).toEqual([
      expect.stringContaining("操练场"),
    ]);
    await user.clear(box);
    await user.type(box, "syrz");
    expect(screen.getAllByRole("option")[0]?.textContent).toContain("使用日志");
    await user.clear(box);
    await user.type(box, "渠道");
    expect(screen.queryByRole("option")).toBeNull();
  });
});

describe("shortcuts", () => {
  function Keys({ hits }: { hits: string[] }) {
    useShortcut({ keys: "c", label: "common.create", run: () => hits.push("c") });
    useShortcut({ keys: "g x", label: "common.refresh", run: () => hits.push("g x") });
    return <input aria-label="Field" />;
  }

  test("single letters and sequences fire, but not while somebody types or composes", async () => {
    const hits: string[] = [];
    const { user } = renderPart(<Keys hits={hits} />);
    await user.keyboard("cgx");
    expect(hits).toEqual(["c", "g x"]);
    await user.type(screen.getByLabelText("Field"), "cgx");
    fireEvent.keyDown(document.body, { key: "c", isComposing: true });
    expect(hits).toEqual(["c", "g x"]);
  });

  test("they can be switched off", async () => {
    const hits: string[] = [];
    const { user } = renderPart(<Keys hits={hits} />);
    localStorage.setItem("shortcuts", "off");
    await user.keyboard("c");
    expect(hits).toEqual([]);
  });

  test("? lists what is registered", async () => {
    const { user } = renderPart(<Keys hits={[]} />);
    await user.keyboard("?");
    const sheet = await screen.findByRole("dialog", { name: "Keyboard shortcuts" });
    expect(within(sheet).getByText("Create")).toBeTruthy();
    expect(within(sheet).getByText("g x")).toBeTruthy();
  });
});

describe("filters", () => {
  function Bar() {
    const query = useQuery();
    return (
      <FilterBar
        searchName="keyword"
        fields={[
          { name: "group", label: "Group", choices: [{ value: "vip", label: "VIP" }] },
          { name: "model", label: "Model" },
        ]}
        query={query}
        onChange={(patch) => setQuery(patch)}
      />
    );
  }

  test("the address holds text and pills; Enter applies, Backspace on empty takes the last pill away", async () => {
    const { user } = renderPart(<Bar />, { url: "/channel?model=gpt" });
    const search = screen.getByRole("searchbox", { name: "Search" });
    await user.type(search, "east{Enter}");
    expect(location.search).toBe("?model=gpt&keyword=east");
    await user.click(screen.getByRole("button", { name: "Add filter" }));
    await user.click(screen.getByRole("menuitem", { name: "Group" }));
    await settle();
    await user.selectOptions(screen.getByRole("combobox", { name: "Group" }), "vip");
    expect(location.search).toBe("?model=gpt&keyword=east&group=vip");
    await user.clear(search);
    await user.type(search, "{Enter}{Backspace}");
    expect(location.search).toBe("?group=vip");
    await user.click(screen.getByRole("button", { name: "Remove filter: Group" }));
    expect(location.search).toBe("");
  });

  test("Back restores the filter before", async () => {
    const { user } = renderPart(<Bar />, { url: "/channel" });
    await user.type(screen.getByRole("searchbox"), "one{Enter}");
    act(() => {
      history.replaceState(null, "", "/channel?keyword=before");
      window.dispatchEvent(new Event("popstate"));
    });
    expect((screen.getByRole("searchbox") as HTMLInputElement).value).toBe("before");
  });
});

describe("menu", () => {
  test("arrows and Home and End walk it, Enter chooses, disabled items are passed over", async () => {
    const chosen: string[] = [];
    const item = (id: string, isDisabled = false) => ({
      id,
      label: id,
      isDisabled,
      onSelect: () => void chosen.push(id),
    });
    const { user } = renderPart(
      <Menu label="More" groups={[[item("one"), item("two", true)], [item("three")]]}>
        …
      </Menu>,
    );
    await user.click(screen.getByRole("button", { name: "More" }));
    expect(document.activeElement?.textContent).toBe("one");
    await user.keyboard("{ArrowDown}");
    expect(document.activeElement?.textContent).toBe("three");
    await user.keyboard("{Home}{ArrowUp}{Enter}");
    expect(chosen).toEqual(["three"]);
    expect(document.activeElement).toBe(screen.getByRole("button", { name: "More" }));
  });
});

test("switching the language renders what is shown in it, without a reload", () => {
  function Title() {
    const t = useT();
    return <h1>{t("shell.nav.wallet")}</h1>;
  }
  renderPart(<Title />, { language: "en" });
  expect(screen.getByRole("heading", { name: "Wallet" })).toBeTruthy();
  act(() => setLanguage("zh"));
  expect(screen.getByRole("heading", { name: "钱包" })).toBeTruthy();
});
