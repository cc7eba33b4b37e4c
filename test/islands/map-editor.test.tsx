// Maps as people edit them: rows, text, paste, duplicates, keyboard; and the reading of the text beneath.
import { describe, expect, test } from "bun:test";
import { screen, within } from "@testing-library/react";
import { useState } from "react";
import { useForm } from "../../islands/lib/form.ts";
import { cellOf, formatMap, jsonOf, parseMap, pastedPairs, writeMap } from "../../islands/lib/json-map.ts";
import type { MapKind } from "../../islands/lib/json-map.ts";
import { DrawerForm } from "../../islands/ui/drawer.tsx";
import { MapEditor, MapField, mapProblemText } from "../../islands/ui/map-editor.tsx";
import { renderPart, settle } from "./render.tsx";

let latest = "";

function Editor({ start = "", kind = "text" as MapKind }) {
  const [text, setText] = useState(start);
  latest = text;
  return (
    <MapEditor
      label="Model mapping"
      value={text}
      onChange={setText}
      kind={kind}
      keyLabel="SentRequest"
      valueLabel="Sent"
      valueSuggestions={["gpt-4o", "gpt-4o-mini"]}
    />
  );
}

const cell = (column: string, row: number) =>
  screen.getByLabelText<HTMLInputElement>(`${column}, row ${row}`);

describe("reading", () => {
  test("an order of names, duplicates and the place of an error survive, which JSON.parse would lose", () => {
    const { entries, problem } = parseMap('{"500": "a",\n "400": "b",\n "500": "c"}');
    expect(entries.map(({ key }) => key)).toEqual(["500", "400", "500"]);
    expect(problem).toEqual({ code: "duplicate", line: 3, column: 2, key: "500" });
    expect(parseMap('{"a": 1,\n "b" 2}').problem).toEqual({ code: "syntax", line: 2, column: 6, key: "b" });
    expect(parseMap("[1]").problem?.code).toBe("notObject");
    expect(parseMap('{"a": 1} x').problem).toMatchObject({ code: "syntax", column: 10 });
    expect(parseMap('{"a": }').problem?.code).toBe("syntax");
    expect(parseMap('{"": 1}').problem?.code).toBe("emptyKey");
    expect(parseMap("").entries).toEqual([]);
    expect(parseMap('{"a": {"b": [1, "}"]}, "c\\"d": "x,y"}').entries).toEqual([
      { key: "a", json: '{"b": [1, "}"]}' },
      { key: 'c"d', json: '"x,y"' },
    ]);
  });

  test("what can be read is what JSON.parse reads, for texts cut anywhere", () => {
    const whole = '{"a": "b\\"c", "n": [1, {"x": "}"}], "t": true, "e": {}}';
    for (let end = 0; end <= whole.length; end++) {
      const text = whole.slice(0, end);
      let isJson = text === "";
      try {
        JSON.parse(text);
        isJson = true;
      } catch {
        // Not JSON: the reader has to say so too.
      }
      expect([text, parseMap(text).problem === undefined]).toEqual([text, isJson]);
    }
  });

  test("values keep their kind from text to cell and back", () => {
    for (const json of [
      '"gpt-4o"',
      '"0.5"',
      "0.5",
      "true",
      "null",
      '{"a":1}',
      '[1,"x"]',
      '""',
      '"\\"q\\""',
    ]) {
      expect(jsonOf(cellOf(json, "json"), "json")).toBe(json);
    }
    expect(jsonOf("plain words", "json")).toBe('"plain words"');
    expect(jsonOf("500", "text")).toBe('"500"');
    expect(jsonOf(" 1.50 ", "number")).toBe("1.5");
    expect(parseMap(writeMap([{ key: "a", json: jsonOf("x", "number") }]), "number").problem?.code).toBe(
      "notNumber",
    );
  });

  test("a wrong text is left as it is, a right one is put in order", () => {
    expect(formatMap('{"a":1')).toBe('{"a":1');
    expect(formatMap('{"a":1,"b":{"c":2}}')).toBe('{\n  "a": 1,\n  "b": {\n    "c": 2\n  }\n}');
    expect(formatMap("{}")).toBe("");
  });

  test("two columns of a spreadsheet and a JSON object count as pairs, words do not", () => {
    expect(pastedPairs("gpt-4\tgpt-4o\r\ngpt-3.5\t gpt-4o-mini\n")).toEqual([
      { key: "gpt-4", cell: "gpt-4o" },
      { key: "gpt-3.5", cell: "gpt-4o-mini" },
    ]);
    expect(pastedPairs('{"a": 1}')).toEqual([{ key: "a", json: "1" }]);
    expect(pastedPairs("gpt-4o")).toBeUndefined();
  });
});

describe("rows", () => {
  test("a row is added, filled with the keyboard alone, and removed", async () => {
    const { user } = renderPart(<Editor />);
    expect(screen.getByText("Model mapping: nothing set")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Add row" }));
    await settle();
    expect(document.activeElement).toBe(cell("SentRequest", 1));
    await user.keyboard("gpt-4{Enter}");
    await settle();
    expect(document.activeElement).toBe(cell("Sent", 1));
    await user.keyboard("gpt-4o{Enter}");
    await settle();
    expect(document.activeElement).toBe(cell("SentRequest", 2));
    await user.keyboard("o1{Enter}");
    await settle();
    await user.keyboard("o3");
    expect(JSON.parse(latest)).toEqual({ "gpt-4": "gpt-4o", o1: "o3" });
    await user.click(screen.getByRole("button", { name: "Remove gpt-4" }));
    await settle();
    expect(JSON.parse(latest)).toEqual({ o1: "o3" });
    await user.click(screen.getByRole("button", { name: "Remove o1" }));
    expect(latest).toBe("");
  });

  test("a name that stands twice is told at its rows and kept until it is mended", async () => {
    const { user } = renderPart(<Editor start='{"a": "1", "b": "2"}' />);
    await user.clear(cell("SentRequest", 2));
    await user.type(cell("SentRequest", 2), "a");
    expect(screen.getByText("“a” appears twice (line 3)")).toBeTruthy();
    expect(cell("SentRequest", 2).getAttribute("aria-invalid")).toBe("true");
    expect(cell("SentRequest", 1).value).toBe("a");
    await user.type(cell("SentRequest", 2), "2");
    expect(screen.queryByText(/stands twice/)).toBeNull();
    expect(JSON.parse(latest)).toEqual({ a: "1", a2: "2" });
  });

  test("numbers that are none are named", async () => {
    const { user } = renderPart(<Editor start='{"gpt-4o": 1.5}' kind="number" />);
    await user.type(cell("Sent", 1), "x");
    expect(screen.getByText(/must be a number/)).toBeTruthy();
    expect(cell("Sent", 1).value).toBe("1.5x");
  });

  test("two pasted columns become rows in place of the empty one", async () => {
    const { user } = renderPart(<Editor start='{"a": "1"}' />);
    await user.click(screen.getByRole("button", { name: "Add row" }));
    await settle();
    await user.paste("b\t2\nc\t3");
    expect(JSON.parse(latest)).toEqual({ a: "1", b: "2", c: "3" });
    expect(cell("Sent", 3).value).toBe("3");
  });
});

describe("text", () => {
  test("rows and text stay in step, and a broken text stays in the text tab with its place", async () => {
    const { user } = renderPart(<Editor start='{"a": "1"}' />);
    await user.click(screen.getByRole("tab", { name: "Text" }));
    const raw = screen.getByRole<HTMLTextAreaElement>("textbox", { name: "Model mapping as JSON text" });
    expect(raw.value).toContain('"a": "1"');
    await user.clear(raw);
    await user.type(raw, '{{"b": "2"');
    expect(screen.getByText("Invalid JSON: line 1, column 7")).toBeTruthy();
    expect(screen.getByRole("tab", { name: "Table" }).hasAttribute("disabled")).toBe(true);
    await user.type(raw, "}");
    await user.tab();
    expect(raw.value).toBe('{\n  "b": "2"\n}');
    await user.click(screen.getByRole("tab", { name: "Table" }));
    expect(cell("SentRequest", 1).value).toBe("b");
  });

  test("the arrow keys change the tab", async () => {
    const { user } = renderPart(<Editor start='{"a": "1"}' />);
    screen.getByRole("tab", { name: "Table" }).focus();
    await user.keyboard("{ArrowRight}");
    expect(screen.getByRole("tab", { name: "Text" }).getAttribute("aria-selected")).toBe("true");
    expect(document.activeElement).toBe(screen.getByRole("tab", { name: "Text" }));
  });
});

test("in a form the map is checked, its error belongs to it, and the save carries the text", async () => {
  const saved: unknown[] = [];
  function Drawer() {
    const form = useForm({
      initial: { mapping: '{"a": "1"}' },
      validate: (values) => {
        const wrong = mapProblemText(values.mapping, "text");
        return wrong === undefined ? {} : { mapping: wrong };
      },
    });
    return (
      <DrawerForm
        isOpen
        title="Edit"
        form={form}
        onClose={() => undefined}
        onSave={async (values) => void saved.push(values.mapping)}
      >
        <MapField
          form={form}
          name="mapping"
          label="Model mapping"
          hint="SentRequest and sent"
          kind="text"
          keyLabel="SentRequest"
          valueLabel="Sent"
        />
      </DrawerForm>
    );
  }
  const { user } = renderPart(<Drawer />);
  const group = screen.getByRole("group", { name: "Model mapping" });
  expect(document.getElementById(group.getAttribute("aria-describedby") ?? "")?.textContent).toBe(
    "SentRequest and sent",
  );
  await user.click(within(group).getByRole("button", { name: "Add row" }));
  await settle();
  await user.keyboard("a{Enter}");
  await settle();
  await user.keyboard("2");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await settle();
  expect(saved).toEqual([]);
  expect(screen.getByText("“a” appears twice (line 3)")).toBeTruthy();
  expect(document.activeElement).toBe(screen.getByLabelText("SentRequest, row 1"));
  await user.click(screen.getAllByRole("button", { name: "Remove a" })[1]!);
  await user.type(screen.getByLabelText("Sent, row 1"), "0");
  await user.click(screen.getByRole("button", { name: "Save" }));
  await settle();
  expect(saved.map((each) => JSON.parse(String(each)) as unknown)).toEqual([{ a: "10" }]);
});
