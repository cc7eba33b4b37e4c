// Special editors of options, each alone over a text as the settings hand it over: what is typed, what would be saved.
import { describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { useState } from "react";
import type { OptionRow } from "../../islands/screens/setting/editor-props.ts";
import { editorOf, panelKeys, panelOf } from "../../islands/screens/setting/editors/index.tsx";
import { jsonProblem } from "../../islands/screens/setting/editors/json-beside.tsx";
import { optionDefinitions, optionRows } from "../../src/core/options/definitions.ts";
import type { OptionKey } from "../../src/core/options/definitions.ts";
import { renderPart, settle } from "./render.tsx";
import type { IslandOptions } from "./render.tsx";

const rowOf = (key: string, group: string): OptionRow => {
  const { default: shipped } = optionDefinitions[key as OptionKey];
  // Only what editors read.
  return {
    key,
    kind: "text",
    group,
    value: shipped,
    default: shipped,
    secret: false,
    changed: false,
  } as OptionRow;
};

/** What would be saved, by key. */
let texts: Record<string, string> = {};

function Editor({ name, start }: { name: string; start: string }) {
  const [value, setValue] = useState(start);
  const Control = editorOf(name);
  if (!Control) throw new Error(`no editor of ${name}`);
  return (
    <>
      <p id="name">Name</p>
      <Control
        option={{ ...rowOf(name, ""), value: start }}
        value={value}
        onChange={(next) => {
          texts[name] = next;
          setValue(next);
        }}
        labelledBy="name"
      />
    </>
  );
}

function Panel({ group, start }: { group: string; start: Record<string, string> }) {
  const [values, setValues] = useState(start);
  const Drawn = panelOf(group);
  if (!Drawn) throw new Error(`no panel of ${group}`);
  const keys = panelKeys(group);
  return (
    <Drawn
      rows={keys.map((key) => rowOf(key, group))}
      value={(key) => values[key] ?? rowOf(key, group).default}
      onChange={(key, next) => {
        texts[key] = next;
        setValues((before) => ({ ...before, [key]: next }));
      }}
      failureOf={() => undefined}
      refresh={() => Promise.resolve()}
    />
  );
}

const edit = (name: string, start: string, options?: IslandOptions) => {
  texts = {};
  return renderPart(<Editor name={name} start={start} />, options);
};
const saved = (key: string): unknown => JSON.parse(texts[key] ?? "null");
/** The text passes the option's own check, as the server would make it. */
const isTaken = (key: OptionKey) => optionDefinitions[key].kind.parse(texts[key] ?? "") !== undefined;

describe("the table of editors", () => {
  test("names options that exist, and panels of groups whose options they draw", () => {
    const groups = new Map(optionRows.map((row) => [String(row.key), row.group as string]));
    for (const group of new Set(groups.values())) {
      for (const key of panelKeys(group)) expect([key, groups.get(key)]).toEqual([key, group]);
      if (panelKeys(group).length > 0) expect([group, panelOf(group) !== undefined]).toEqual([group, true]);
    }
    const drawn = [...groups.keys()].filter((key) => editorOf(key) !== undefined);
    expect(drawn.length).toBeGreaterThan(12);
    // Names that every object has are no options.
    expect([editorOf("constructor"), panelOf("toString"), panelKeys("valueOf")]).toEqual([
      undefined,
      undefined,
      [],
    ]);
  });
});

describe("the place of what is wrong in a JSON text", () => {
  test.each([
    ['{"a": 1,}', 1, 9],
    ['{"a": 1', 1, 8],
    ["[1, 2\n 3]", 2, 2],
    ['{"a"\n1}', 2, 1],
    ["[1]]", 1, 4],
    ["{'a': 1}", 1, 2],
  ])("%j: line %p, column %p", (text, line, column) => {
    expect(jsonProblem(text)).toEqual({ line, column });
  });
  test("none in what can be read", () => {
    for (const text of ["", "{}", "[]", ' {"a": [1, {"b": null}], "c": "x,]"} '])
      expect(jsonProblem(text)).toBeUndefined();
  });
});

describe("raw JSON beside a table", () => {
  test("is checked when it is left, and the table waits until it can be read", async () => {
    const { user } = edit("gemini.safety_settings", '{"default":"OFF"}');
    await user.click(screen.getByRole("tab", { name: "JSON" }));
    const raw = screen.getByRole<HTMLTextAreaElement>("textbox");
    expect(raw.value).toBe('{\n  "default": "OFF"\n}');
    // Laid out for reading, and no change yet.
    expect(texts).toEqual({});
    await user.clear(raw);
    await user.type(raw, '{{"default": "OFF",}');
    expect(screen.queryByRole("alert")).toBeNull();
    await user.tab();
    await settle();
    expect(screen.getByRole("alert").textContent).toBe("Not a legal JSON string: line 1, column 19");
    expect(screen.getByRole("tab", { name: "Table" }).hasAttribute("disabled")).toBe(true);
    expect(raw.getAttribute("aria-invalid")).toBe("true");
    await user.clear(raw);
    await user.type(raw, '{{"default": "BLOCK_NONE"}');
    expect(screen.queryByRole("alert")).toBeNull();
    await user.click(screen.getByRole("tab", { name: "Table" }));
    expect(screen.getByLabelText<HTMLSelectElement>("Everything else (default)").value).toBe("BLOCK_NONE");
  });

  test("says it in the specification's words", async () => {
    const { user } = edit("Chats", "[]", { language: "zh" });
    await user.click(screen.getByRole("tab", { name: "JSON" }));
    await user.type(screen.getByRole("textbox"), "x");
    await user.tab();
    await settle();
    expect(screen.getByRole("alert").textContent).toStartWith("不是合法的 JSON 字符串");
  });

  test("the arrow keys change the tab and take the focus along", async () => {
    const { user } = edit("Chats", "[]");
    screen.getByRole("tab", { name: "Table" }).focus();
    await user.keyboard("{ArrowRight}");
    expect(document.activeElement?.textContent).toBe("JSON");
    expect(screen.getByRole("textbox").tagName).toBe("TEXTAREA");
  });
});

describe("rate limits", () => {
  const start = {
    ModelRequestRateLimitDurationMinutes: "1",
    ModelRequestRateLimitCount: "0",
    ModelRequestRateLimitSuccessCount: "1000",
    ModelRequestRateLimitGroup: '{"vip":[0,1000]}',
  };
  const open = (language: "zh" | "en" = "en") => {
    texts = {};
    const island = renderPart(<Panel group="rate_limit" start={start} />, { language });
    island.answer("GET /api/group", { success: true, data: ["default", "vip"] });
    return island;
  };

  test("read as a sentence whose numbers are fields", async () => {
    const { user, container } = open();
    await settle();
    expect(container.querySelector(".setting-line")?.textContent).toContain(
      "Each user: at mostrequests, of whichsuccessful, inmin",
    );
    const minutes = screen.getByLabelText<HTMLInputElement>("Window");
    await user.clear(minutes);
    await user.type(minutes, "5");
    expect(texts["ModelRequestRateLimitDurationMinutes"]).toBe("5");
  });

  test("a number out of its limits is told once the field is left", async () => {
    const { user } = open();
    await settle();
    const successes = screen.getByLabelText<HTMLInputElement>("Successful requests per window");
    await user.clear(successes);
    await user.type(successes, "0");
    expect(screen.queryByRole("alert")).toBeNull();
    await user.tab();
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("successes from 1");
    await user.clear(successes);
    await user.type(successes, "10");
    expect(screen.queryByRole("alert")).toBeNull();
  });

  test("a group's rule is added, named and removed by keyboard; the text is what the server takes", async () => {
    const { user } = open();
    await settle();
    await user.click(screen.getByRole("button", { name: "Add a group's rule" }));
    await settle();
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Group of rule 2");
    // A rule without a group changes nothing.
    expect(texts["ModelRequestRateLimitGroup"]).toBeUndefined();
    await user.keyboard("default");
    const requests = screen.getByLabelText<HTMLInputElement>("Requests of default");
    await user.clear(requests);
    await user.type(requests, "200");
    expect(saved("ModelRequestRateLimitGroup")).toEqual({ vip: [0, 1000], default: [200, 1000] });
    expect(isTaken("ModelRequestRateLimitGroup")).toBe(true);
    await user.click(screen.getByRole("button", { name: "Remove vip" }));
    await user.click(screen.getByRole("button", { name: "Remove default" }));
    // Not the empty text, which the server refuses.
    expect(texts["ModelRequestRateLimitGroup"]).toBe("{}");
  });

  test("the rule that applies to a chosen group is said in words", async () => {
    const { user } = open();
    await settle();
    const said = () => document.querySelector("output")?.textContent;
    expect(said()).toContain("At most 1,000 successful requests in 1 min");
    expect(said()).toContain("the rule for everybody");
    await user.selectOptions(screen.getByLabelText("In force for the group"), "vip");
    expect(said()).toContain("the group's own rule");
  });
});

describe("Claude and Gemini", () => {
  test("headers: model, header and value in a line; several values of a header stay together", async () => {
    const { user } = edit("claude.model_headers_settings", '{"claude-x":{"anthropic-beta":["a","b"]}}');
    expect(screen.getAllByLabelText(/^Value, row/).map((each) => (each as HTMLInputElement).value)).toEqual([
      "a",
      "b",
    ]);
    await user.click(screen.getByRole("button", { name: "Add header" }));
    await settle();
    await user.keyboard("claude-y{Tab}x test{Tab}1");
    await user.tab();
    await user.tab();
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("A header");
    const header = screen.getByLabelText<HTMLInputElement>("Header, row 3");
    await user.clear(header);
    await user.type(header, "x-test");
    expect(screen.queryByRole("alert")).toBeNull();
    expect(saved("claude.model_headers_settings")).toEqual({
      "claude-x": { "anthropic-beta": ["a", "b"] },
      "claude-y": { "x-test": ["1"] },
    });
    expect(isTaken("claude.model_headers_settings")).toBe(true);
  });

  test("safety: kinds as choices; what is not known stays", async () => {
    const { user } = edit("gemini.safety_settings", '{"default":"OFF","HARM_CATEGORY_NEW":"SOMETIMES"}');
    expect(screen.getByLabelText<HTMLSelectElement>("HARM_CATEGORY_NEW").value).toBe("SOMETIMES");
    await user.selectOptions(screen.getByLabelText("Harassment"), "BLOCK_ONLY_HIGH");
    expect(saved("gemini.safety_settings")).toEqual({
      default: "OFF",
      HARM_CATEGORY_NEW: "SOMETIMES",
      HARM_CATEGORY_HARASSMENT: "BLOCK_ONLY_HIGH",
    });
    await user.selectOptions(screen.getByLabelText("Harassment"), "");
    expect(saved("gemini.safety_settings")).toEqual({ default: "OFF", HARM_CATEGORY_NEW: "SOMETIMES" });
  });

  test("most tokens: a table that writes a map, also with nothing in it", async () => {
    const { user } = edit("claude.default_max_tokens", '{"default":8192}');
    const value = screen.getByLabelText<HTMLInputElement>("Most output tokens, row 1");
    await user.clear(value);
    await user.type(value, "4096");
    expect(saved("claude.default_max_tokens")).toEqual({ default: 4096 });
    await user.click(screen.getByRole("button", { name: "Remove default" }));
    expect(texts["claude.default_max_tokens"]).toBe("{}");
  });

  test("names, one a line, while a line is still being typed", async () => {
    const { user } = edit("gemini.supported_imagine_models", '["a"]');
    const box = screen.getByRole<HTMLTextAreaElement>("textbox");
    await user.type(box, "{Enter}{Enter}b");
    expect(box.value).toBe("a\n\nb");
    expect(saved("gemini.supported_imagine_models")).toEqual(["a", "b"]);
  });

  test("a share: slider and number in step, and the words for what is none", async () => {
    const { user } = edit("gemini.thinking_adapter_budget_tokens_percentage", "0.6");
    expect(screen.getByRole("slider").getAttribute("aria-valuetext")).toBe("60%");
    const number = screen.getByRole<HTMLInputElement>("textbox");
    await user.clear(number);
    await user.type(number, "0.05");
    expect(screen.getByRole("alert").textContent).toBe("Enter a number from 0.1 to 1");
    await user.clear(number);
    await user.type(number, "0.85");
    expect(screen.getByRole<HTMLInputElement>("slider").value).toBe("0.85");
  });
});

describe("chat links", () => {
  const two = JSON.stringify([
    { One: "https://one.example/?k={key}&a={address}" },
    { Two: "two://{key}{address}" },
  ]);

  test("begin with a usual program's link, which the server takes", async () => {
    const { user } = edit("Chats", "[]");
    expect(screen.getByText(/No chat links yet/).tagName).toBe("P");
    for (const name of ["NextChat", "LobeChat", "AI as Workspace", "AMA 问天", "OpenCat"]) {
      await user.click(screen.getByRole("button", { name: "Usual programs" }));
      await user.click(screen.getByRole("menuitem", { name, hidden: true }));
      await settle();
    }
    expect((saved("Chats") as object[]).map((each) => Object.keys(each)[0])).toEqual([
      "NextChat",
      "LobeChat",
      "AI as Workspace",
      "AMA 问天",
      "OpenCat",
    ]);
    expect(isTaken("Chats")).toBe(true);
  });

  test("are moved with the buttons and with Alt and an arrow; the focus stays with the row", async () => {
    const { user } = edit("Chats", two);
    await user.click(screen.getByRole("button", { name: "Move Two up" }));
    await settle();
    expect((saved("Chats") as object[]).map((each) => Object.keys(each)[0])).toEqual(["Two", "One"]);
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Move Two down");
    screen.getByLabelText("Name 1").focus();
    await user.keyboard("{Alt>}{ArrowDown}{/Alt}");
    await settle();
    expect((saved("Chats") as object[]).map((each) => Object.keys(each)[0])).toEqual(["One", "Two"]);
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Name 2");
    await user.click(screen.getByRole("button", { name: "Remove One" }));
    expect((saved("Chats") as object[]).map((each) => Object.keys(each)[0])).toEqual(["Two"]);
  });

  test.each([
    "javascript:alert(1)",
    " DATA:text/html,x",
    "vb\u200bscript:x",
    "file:///x",
    "blob:x",
    "about:blank",
  ])("%j is refused where it stands and cannot be tried", async (link) => {
    const { user } = edit("Chats", JSON.stringify([{ Bad: link }]));
    screen.getByLabelText("Link 1").focus();
    await user.tab({ shift: true });
    await user.tab({ shift: true });
    await user.tab({ shift: true });
    await settle();
    expect(screen.getByRole("alert").textContent).toContain("is not allowed");
    expect(screen.getByRole("button", { name: "Test Bad with a sample key" }).hasAttribute("disabled")).toBe(
      true,
    );
  });

  test("are tried with a sample key and the site's address, apart from the console", async () => {
    const opened: unknown[][] = [];
    const before = window.open;
    window.open = (...given: unknown[]) => (opened.push(given), null);
    try {
      const { user } = edit("Chats", two, { status: { server_address: "https://weir.example" } });
      await user.click(screen.getByRole("button", { name: "Test One with a sample key" }));
    } finally {
      window.open = before;
    }
    expect(opened).toEqual([
      [
        "https://one.example/?k=sk-weir-test-key&a=https%3A%2F%2Fweir.example",
        "_blank",
        "noopener,noreferrer",
      ],
    ]);
  });

  test("a link without its placeholders is let pass, with a word", async () => {
    const { user } = edit("Chats", '[{"Plain": "https://plain.example"}]');
    screen.getByLabelText("Name 1").focus();
    await user.tab({ shift: true });
    await settle();
    expect(screen.queryByRole("alert")).toBeNull();
    expect(screen.getByText(/no \{key\}/).id).toBe(
      screen.getByLabelText("Link 1").getAttribute("aria-describedby") ?? "-",
    );
  });

  test("a text that is no list of links stays a text", () => {
    edit("Chats", '[{"a": 1}]');
    expect(screen.getByRole("tab", { name: "JSON" }).getAttribute("aria-selected")).toBe("true");
  });
});

describe("groups", () => {
  const start = { GroupRatio: '{"default":1,"vip":0.5}', UserUsableGroups: '{"default":"Everybody"}' };
  const open = (texts0 = start) => {
    texts = {};
    return renderPart(<Panel group="groups" start={texts0} />);
  };

  test("ratio and words stand in one row and go into two options, each only where it changed", async () => {
    const { user } = open();
    expect(screen.getByRole("link").getAttribute("href")).toBe("/prices?section=groups");
    await user.click(screen.getByRole("checkbox", { name: "Users may choose vip" }));
    await user.type(screen.getByLabelText("Description of vip"), "Fast");
    expect(saved("UserUsableGroups")).toEqual({ default: "Everybody", vip: "Fast" });
    expect(texts["GroupRatio"]).toBeUndefined();
    const ratio = screen.getByLabelText("Ratio of default");
    await user.clear(ratio);
    await user.type(ratio, "1.5");
    expect(saved("GroupRatio")).toEqual({ default: 1.5, vip: 0.5 });
    expect(isTaken("GroupRatio") && isTaken("UserUsableGroups")).toBe(true);
  });

  test("a group is added where its name is typed next; twice the same name and no number are told", async () => {
    const { user } = open();
    await user.click(screen.getByRole("button", { name: "Add group" }));
    await settle();
    await user.keyboard("vip");
    expect(screen.getByRole("alert").textContent).toBe("vip appears twice");
    await user.keyboard("2");
    expect(screen.queryByRole("alert")).toBeNull();
    expect(saved("GroupRatio")).toEqual({ default: 1, vip: 0.5, vip2: 1 });
    const ratio = screen.getByLabelText("Ratio of vip2");
    await user.clear(ratio);
    expect(screen.getByText(/cost ratio 1/).tagName).toBe("P");
    await user.type(ratio, "-1");
    expect(screen.getByRole("alert").textContent).toBe("Enter a number");
    // It is not dropped in silence: the server refuses it by name.
    expect(() => isTaken("GroupRatio")).toThrow("option_bad_ratio");
  });

  test("the JSON of both stands beside the table", async () => {
    const { user } = open();
    await user.click(screen.getByRole("tab", { name: "JSON" }));
    const boxes = screen.getAllByRole<HTMLTextAreaElement>("textbox");
    expect(boxes.map((box) => JSON.parse(box.value) as unknown)).toEqual([
      JSON.parse(start.GroupRatio),
      JSON.parse(start.UserUsableGroups),
    ]);
  });
});

describe("texts that pages show", () => {
  const preview = (data: object) => ({
    success: true,
    data: { html: "", frame_url: "", removed: [], ...data },
  });

  test("are seen in both themes, as the server cleaned them, with what it cut out", async () => {
    const { user, answer, requests } = edit("About", "");
    answer("POST /api/option/preview", (sent: { body: { value: string } }) =>
      preview({
        html: `<p>clean ${sent.body.value.length}</p><a href="/away">away</a>`,
        removed: [
          { kind: "tag", name: "script", count: 2 },
          { kind: "value", name: "href", count: 1 },
        ],
      }),
    );
    await user.type(screen.getByRole("textbox"), "hello");
    expect(requests).toEqual([]);
    await user.tab();
    await settle();
    expect(requests.map(({ body }) => body)).toEqual([{ key: "About", value: "hello" }]);
    // What is cut out is told whether or not anybody looks at the preview.
    expect(screen.getByText("tag <script> ×2").tagName).toBe("LI");
    expect(screen.getByText("a value of href that is not allowed").tagName).toBe("LI");
    await user.click(screen.getByRole("button", { name: "Preview" }));
    const shown = ["paper", "ink"].map(
      (theme) => document.querySelector(`[data-theme="${theme}"]`)?.textContent,
    );
    expect(shown).toEqual(["clean 5away", "clean 5away"]);
    // A link of the preview leads nowhere: what is not saved would be lost.
    const link = document.querySelector('[data-theme="ink"] a');
    const click = new MouseEvent("click", { bubbles: true, cancelable: true });
    link?.dispatchEvent(click);
    expect(click.defaultPrevented).toBe(true);
  });

  test("an address is said to be framed, and a failed look says why", async () => {
    const { user, answer } = edit("HomePageContent", "https://weir.example");
    answer("POST /api/option/preview", preview({ frame_url: "https://weir.example" }));
    await user.click(screen.getByRole("button", { name: "Preview" }));
    await settle();
    expect(screen.getByText("Pages show https://weir.example in a frame").tagName).toBe("P");
    answer("POST /api/option/preview", Response.json({ success: false, message: "no" }, { status: 403 }));
    await user.type(screen.getByRole("textbox"), "x");
    await user.tab();
    await settle();
    expect(screen.getByRole("alert").textContent).toBe("no");
  });

  test("of two answers the one of the newer text counts, whichever comes last", async () => {
    const { user, answer } = edit("Notice", "");
    const waiting: (() => void)[] = [];
    answer("POST /api/option/preview", async (sent: { body: { value: string } }) => {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return preview({ html: `<p>${sent.body.value}</p>` });
    });
    const box = screen.getByRole("textbox");
    await user.type(box, "a");
    await user.tab();
    await user.type(box, "b");
    await user.tab();
    await settle();
    waiting[1]?.();
    await settle();
    waiting[0]?.();
    await settle();
    await user.click(screen.getByRole("button", { name: "Preview" }));
    expect(document.querySelector('[data-theme="paper"]')?.textContent).toBe("ab");
  });

  test("name and logo are seen in both themes while they are typed", async () => {
    const { user } = edit("SystemName", "Weir", { status: { logo: "/mine.svg" } });
    await user.type(screen.getByRole("textbox"), "s");
    const heads = [...document.querySelectorAll("[data-theme]")];
    expect(heads.map((head) => head.textContent)).toEqual(["Weirs", "Weirs"]);
    expect(heads.map((head) => head.querySelector("img")?.getAttribute("src"))).toEqual([
      "/mine.svg",
      "/mine.svg",
    ]);
  });
});

describe("the version", () => {
  const newest = () => document.querySelector<HTMLElement>("dd[aria-live]") ?? document.body;
  const state = { current: "0.1.0", newest: "", isNewer: false, url: "", checkedAt: 0 };
  const open = (data: object) => {
    const island = renderPart(<Panel group="version" start={{}} />);
    island.answer("GET /api/option/version", { success: true, data: { ...state, ...data } });
    return island;
  };

  test("a newer one is told with its page", async () => {
    open({ newest: "9.8.7", isNewer: true, url: "https://code.example/v9.8.7", checkedAt: 1_760_000_000 });
    await settle();
    const said = newest();
    expect(said.textContent).toContain("9.8.7 is out");
    expect(within(said).getByRole("link").getAttribute("href")).toBe("https://code.example/v9.8.7");
  });

  test.each([
    ["off", "Looking is switched off", true],
    ["no_address", "No release address is set", true],
    ["limited", "The code host refuses questions for now; it is asked again later", false],
  ])("%s is said, and the button fits", async (problem, text, isOff) => {
    open({ problem });
    await settle();
    expect(newest().textContent).toBe(text);
    expect(screen.getByRole("button", { name: "Look now" }).hasAttribute("disabled")).toBe(isOff);
  });

  test("a look now shows what came of it", async () => {
    const { user, answer } = open({});
    answer("POST /api/option/version", { success: true, data: { ...state, newest: "0.1.0", checkedAt: 1 } });
    await settle();
    await user.click(screen.getByRole("button", { name: "Look now" }));
    await settle();
    expect(newest().textContent).toBe("0.1.0, which is up to date");
  });
});

describe("budgets and limits of users", () => {
  test("everybody's are one row of fields in the site's money", async () => {
    const { user } = edit("KeyLimitsDefault", '{"rpm_limit": 60}');
    await settle();
    const budget = screen.getByLabelText(/^Budget: /);
    await user.type(budget, "5");
    await user.selectOptions(screen.getByLabelText(/^Period: /), "a day");
    await user.clear(screen.getByLabelText(/^Requests a minute: /));
    expect(saved("KeyLimitsDefault")).toEqual({ budget_quota: 2_500_000, budget_period: "day" });
    expect(isTaken("KeyLimitsDefault")).toBe(true);
    await user.clear(budget);
    expect(texts["KeyLimitsDefault"]).toBe("{}");
  });

  test("groups have a row each; what is no number stays as it was typed, and is marked", async () => {
    const { user } = edit("KeyLimitsGroup", '{"vip": {"tpm_limit": 90000, "max_concurrency": 0}}');
    await settle();
    expect((screen.getByLabelText("Calls at once: vip") as HTMLInputElement).value).toBe("0");
    await user.click(screen.getByRole("button", { name: "Add a group’s limits" }));
    await user.type(screen.getByLabelText("Group of row 2"), "free");
    await user.type(screen.getByLabelText("Budget: free"), "0.5");
    expect(saved("KeyLimitsGroup")).toEqual({
      vip: { tpm_limit: 90_000, max_concurrency: 0 },
      free: { budget_quota: 250_000, budget_period: "month" },
    });
    expect(isTaken("KeyLimitsGroup")).toBe(true);
    const tokens = screen.getByLabelText("Tokens a minute: vip");
    await user.type(tokens, "x");
    expect(tokens.getAttribute("aria-invalid")).toBe("true");
    expect(saved("KeyLimitsGroup")).toMatchObject({ vip: { tpm_limit: "90000x" } });
    expect(() => optionDefinitions.KeyLimitsGroup.kind.parse(texts["KeyLimitsGroup"] ?? "")).toThrow();
    await user.click(screen.getByRole("button", { name: "Remove vip" }));
    expect(Object.keys(saved("KeyLimitsGroup") as object)).toEqual(["free"]);
  });

  test("what the fields cannot show stays text", async () => {
    edit("KeyLimitsDefault", '{"burst": 1}');
    await settle();
    expect(screen.getByRole("tab", { name: "Table" }).hasAttribute("disabled")).toBe(true);
  });
});

describe("rules of affinity", () => {
  const KEY = "channel_affinity_setting.rules";
  const stored = { name: "old", key_sources: [{ type: "gjson", path: "user" }], made_by: "another program" };

  test("a rule is written in fields, and what these do not know stays as it was", async () => {
    const { user } = edit(KEY, JSON.stringify([stored]));
    await settle();
    await user.click(screen.getByRole("button", { name: "Add a rule" }));
    const rule = within(screen.getAllByRole("listitem").at(-2) ?? document.body);
    await user.type(rule.getByLabelText("Name"), "tenants");
    await user.type(rule.getByLabelText(/^Models/), "^gpt-{enter}^o4");
    await user.type(rule.getByLabelText("Name of place 1"), "x-tenant");
    await user.click(rule.getByRole("button", { name: "Add a place" }));
    await user.selectOptions(rule.getByLabelText("Kind of place 2"), "Field of the body");
    await user.type(rule.getByLabelText("Name of place 2"), "metadata.tenant");
    await user.type(rule.getByLabelText(/^Seconds after/), "60s");
    await user.click(rule.getByLabelText("A failure there is not tried elsewhere"));
    const template = rule.getByRole("textbox", { name: /Request rules/ });
    await user.clear(template);
    await user.type(template, '{{"temperature": 0}');
    expect(saved(KEY)).toEqual([
      stored,
      {
        name: "tenants",
        model_regex: ["^gpt-", "^o4"],
        key_sources: [
          { type: "request_header", key: "x-tenant", path: "" },
          { type: "gjson", key: "", path: "metadata.tenant" },
        ],
        ttl_seconds: 60,
        skip_retry_on_failure: true,
        param_override_template: { temperature: 0 },
      },
    ]);
    expect(isTaken(KEY)).toBe(true);
    await user.click(rule.getByRole("button", { name: "Remove the rule" }));
    expect(saved(KEY)).toEqual([stored]);
  });
});
