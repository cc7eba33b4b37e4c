// The sheet by keyboard, pointer and clipboard: what people who know spreadsheets expect, and what is told of cells that cannot be taken.
import { describe, expect, test } from "bun:test";
import { act, fireEvent, screen } from "@testing-library/react";
import { useState } from "react";
import { parseNumber } from "../../islands/ui/sheet-number.ts";
import { SheetCards } from "../../islands/ui/sheet-cards.tsx";
import { Sheet } from "../../islands/ui/sheet.tsx";
import type { CellWrite, SheetColumn, SheetProps } from "../../islands/ui/sheet-types.ts";
import { useT } from "../../islands/lib/i18n.ts";
import { renderPart } from "./render.tsx";

type Row = Record<string, string> & { name: string };

/** What the sheet wrote, action by action, and what undo was asked for. */
let steps: { cells: readonly CellWrite[]; label: string }[] = [];
let asked: string[] = [];

const START: readonly Row[] = [
  { name: "alpha", input: "1", output: "2", billing: "tokens", used: "yes" },
  { name: "beta", input: "3", output: "4", billing: "tokens", used: "no" },
  { name: "gamma", input: "", output: "", billing: "call", used: "no" },
];

function Host({
  rows: first = START,
  isCards = false,
  ...rest
}: Partial<Pick<SheetProps<Row>, "rows" | "onSort" | "onOpenRow" | "ticked" | "onTick" | "sort">> & {
  isCards?: boolean;
}) {
  const t = useT();
  const [rows, setRows] = useState(first);
  const number = { kind: "number", width: 90, parse: (text: string) => parseNumber(t, text, 1000) } as const;
  const columns: SheetColumn<Row>[] = [
    {
      id: "name",
      label: "Name",
      kind: "text",
      width: 200,
      read: ({ name }) => name,
      isSortable: rest.onSort !== undefined,
    },
    { id: "input", label: "Input", unit: "$", read: ({ input = "" }) => input, ...number },
    { id: "output", label: "Output", read: ({ output = "" }) => output, ...number },
    {
      id: "billing",
      label: "Billing",
      kind: "choice",
      width: 90,
      choices: ["tokens", "call"],
      read: ({ billing = "" }) => billing,
      parse: (text) =>
        text === "tokens" || text === "call" ? { value: text } : { problem: `no billing: ${text}` },
    },
    { id: "used", label: "In use", kind: "text", width: 80, read: ({ used = "" }) => used },
  ];
  const Kind = isCards ? SheetCards<Row> : Sheet<Row>;
  return (
    <Kind
      label="Prices"
      rows={rows}
      keyOf={({ name }) => name}
      columns={columns}
      changed={(key, column) => {
        const [was, is] = [first, rows].map((list) => list.find(({ name }) => name === key)?.[column]);
        return was === is ? undefined : was;
      }}
      write={(cells, label) => {
        // The owner's own refusal: 13 brings bad luck.
        const bad = cells.filter(({ value }) => value === 13);
        const good = cells.filter(({ value }) => value !== 13);
        steps.push({ cells: good, label });
        setRows(
          rows.map((row) => {
            const own = good.filter(({ rowKey }) => rowKey === row.name);
            return own.length === 0
              ? row
              : {
                  ...row,
                  ...Object.fromEntries(own.map((cell) => [cell.columnId, String(cell.value ?? "")])),
                };
          }),
        );
        return bad.map(({ rowKey, columnId }) => ({ rowKey, columnId, problem: "unlucky" }));
      }}
      onUndo={() => asked.push("undo")}
      onRedo={() => asked.push("redo")}
      {...rest}
    />
  );
}

type Options = Parameters<typeof Host>[0];

function open(options: Options = {}) {
  steps = [];
  asked = [];
  return renderPart(<Host {...options} />);
}

const grid = () => screen.getByRole("grid", { name: "Prices" });
const current = () => document.getElementById(grid().getAttribute("aria-activedescendant") ?? "");
const at = () => [current()?.dataset["row"], current()?.dataset["column"]].join();
const selected = () => grid().querySelectorAll('[aria-selected="true"]').length;
/** The page's announcements are another status. */
const told = () => grid().nextElementSibling?.querySelector('[role="status"]')?.textContent;
const field = () =>
  screen.queryByRole<HTMLInputElement>("textbox") ?? screen.queryByRole<HTMLInputElement>("combobox");
const written = () =>
  steps.map(({ cells }) =>
    cells.map(({ rowKey, columnId, value }) => `${rowKey}.${columnId}=${value}`).join(" "),
  );

/** Begins at a cell: as a press on it does. */
function press(row: number, column: number, more: object = {}): void {
  const cell = grid().querySelector(`[data-row="${row}"][data-column="${column}"]`);
  if (!cell) throw new Error(`no cell ${row},${column}`);
  fireEvent.mouseDown(cell, { button: 0, ...more });
  fireEvent.mouseUp(cell);
  act(() => grid().focus());
}

/** What the grid puts on the clipboard. */
function clip(kind: "copy" | "cut"): string {
  let text = "";
  const clipboardData = { setData: (_: string, data: string) => (text = data) };
  fireEvent[kind](grid(), { clipboardData });
  return text;
}

describe("moving", () => {
  test("one stop of Tab; arrows, Home, End and their jumps lead through the cells and stop at the edges", async () => {
    const { user } = open();
    await user.tab();
    expect(document.activeElement).toBe(grid());
    expect(at()).toBe("0,0");
    const walk: [string, string][] = [
      ["{ArrowRight}", "0,1"],
      ["{ArrowDown}", "1,1"],
      ["{ArrowUp}{ArrowUp}{ArrowUp}", "0,1"],
      ["{End}", "0,4"],
      ["{ArrowRight}", "0,4"],
      ["{Home}", "0,0"],
      ["{Control>}{End}{/Control}", "2,4"],
      ["{Control>}{Home}{/Control}", "0,0"],
      ["{Control>}{ArrowDown}{/Control}", "2,0"],
      ["{PageUp}", "0,0"],
      ["{PageDown}", "2,0"],
    ];
    for (const [keys, place] of walk) {
      await user.keyboard(keys);
      expect([keys, at()]).toEqual([keys, place]);
    }
    await user.tab();
    expect(document.activeElement).not.toBe(grid());
  });

  test("Shift and arrows stretch a range, Ctrl A takes all, Escape takes it back to one", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("{Shift>}{ArrowDown}{ArrowRight}{/Shift}");
    expect(selected()).toBe(4);
    expect(told()).toBe("2 × 2 selected");
    await user.keyboard("{Escape}");
    expect(selected()).toBe(1);
    await user.keyboard("{Control>}a{/Control}");
    expect(selected()).toBe(15);
  });

  test("a pointer selects, stretches with Shift and by drawing, and edits by a double click", () => {
    open();
    press(1, 1);
    expect(at()).toBe("1,1");
    press(2, 2, { shiftKey: true });
    expect(selected()).toBe(4);
    const cell = (row: number, column: number) =>
      grid().querySelector(`[data-row="${row}"][data-column="${column}"]`) as HTMLElement;
    fireEvent.mouseDown(cell(0, 1), { button: 0, buttons: 1 });
    fireEvent.mouseOver(cell(1, 2), { buttons: 1 });
    expect(selected()).toBe(4);
    fireEvent.mouseUp(cell(1, 2));
    fireEvent.mouseOver(cell(2, 2), { buttons: 0 });
    expect(selected()).toBe(4);
    press(0, 1);
    fireEvent.doubleClick(cell(0, 1));
    expect(field()?.value).toBe("1");
  });

  test("heads are above the first row and sort by Enter, where columns sort", async () => {
    const sorted: string[] = [];
    const { user } = open({
      onSort: (column) => sorted.push(column),
      sort: { column: "name", isDescending: true },
    });
    press(0, 0);
    await user.keyboard("{ArrowUp}");
    expect(current()?.getAttribute("role")).toBe("columnheader");
    expect(current()?.getAttribute("aria-sort")).toBe("descending");
    await user.keyboard("{Enter}");
    fireEvent.click(screen.getByRole("button", { name: "Name" }));
    expect(sorted).toEqual(["name", "name"]);
  });

  test("Enter on the name opens the row, Space ticks the rows of the range", async () => {
    const opened: string[] = [];
    const ticked: string[] = [];
    const { user } = open({
      onOpenRow: ({ name }) => opened.push(name),
      ticked: new Set(["alpha"]),
      onTick: (keys, isOn) => ticked.push(`${keys.join()} ${isOn}`),
    });
    press(1, 0);
    await user.keyboard("{Enter}");
    fireEvent.click(screen.getByRole("button", { name: "gamma" }));
    expect(opened).toEqual(["beta", "gamma"]);
    press(0, 1);
    await user.keyboard("{Shift>}{ArrowDown}{/Shift} ");
    press(0, 1);
    await user.keyboard(" ");
    await user.click(screen.getByRole("checkbox", { name: "Select gamma" }));
    expect(ticked).toEqual(["alpha,beta true", "alpha false", "gamma true"]);
  });
});

describe("editing", () => {
  test("typing replaces, Enter takes it and goes down, Tab right, and the way back with Shift", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("5{Enter}6{Tab}7{Shift>}{Tab}{/Shift}8{Shift>}{Enter}{/Shift}");
    expect(written()).toEqual(["alpha.input=5", "beta.input=6", "beta.output=7", "beta.input=8"]);
    expect(steps[0]?.label).toBe("Input of alpha");
    expect(at()).toBe("0,1");
    expect(document.activeElement).toBe(grid());
  });

  test("Enter and F2 open what stands there, Escape leaves it as it was", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("{Enter}");
    expect(field()?.value).toBe("1");
    await user.keyboard("99{Escape}{F2}");
    expect(field()?.value).toBe("1");
    await user.keyboard("{Escape}");
    expect(field()).toBeNull();
    expect(steps).toEqual([]);
    expect(document.activeElement).toBe(grid());
  });

  test("what was typed over a cell is left by arrows, what was opened is walked through", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("5{ArrowDown}");
    expect(written()).toEqual(["alpha.input=5"]);
    expect(at()).toBe("1,1");
    await user.keyboard("{F2}{ArrowLeft}");
    expect(field()).not.toBeNull();
  });

  test("a text that is none stays open with its reason; going elsewhere drops it and says so", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("ten{Enter}");
    expect(screen.getByRole("alert").textContent).toBe("“ten” is not a number");
    expect(field()?.getAttribute("aria-invalid")).toBe("true");
    press(1, 2);
    expect(field()).toBeNull();
    expect(told()).toBe("1 cell was not taken: alpha, Input: “ten” is not a number.");
    expect(steps).toEqual([]);
    press(0, 1);
    expect(told()).toBe("");
    await user.keyboard("13");
    act(() => field()?.blur());
    expect(told()).toBe("1 cell was not taken: alpha, Input: unlucky.");
  });

  test("the owner's own refusal is said at the field, too", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("13{Enter}");
    expect(screen.getByRole("alert").textContent).toBe("unlucky");
  });

  test("a press elsewhere takes what was typed", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("5");
    press(2, 2);
    expect(written()).toEqual(["alpha.input=5"]);
    expect(at()).toBe("2,2");
  });

  test("Ctrl Enter writes into the whole range as one step", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("{Shift>}{ArrowDown}{ArrowDown}{/Shift}9{Control>}{Enter}{/Control}");
    expect(written()).toEqual(["alpha.input=9 beta.input=9 gamma.input=9"]);
    expect(told()).toBe("3 cells filled.");
  });

  test("choices are chosen by their first letter and by the list", async () => {
    const { user } = open();
    press(0, 3);
    await user.keyboard("c");
    expect(field()?.value).toBe("call");
    await user.keyboard("{Enter}");
    expect(written()).toEqual(["alpha.billing=call"]);
    expect(at()).toBe("1,3");
  });

  test("cells that nobody writes say so, and leave letters to the page", async () => {
    const { user } = open();
    press(0, 4);
    await user.keyboard("{F2}");
    expect(told()).toBe("This cell cannot be changed here");
    const event = new KeyboardEvent("keydown", { key: "g", bubbles: true, cancelable: true });
    act(() => void grid().dispatchEvent(event));
    expect(event.defaultPrevented).toBe(false);
    expect(current()?.getAttribute("aria-readonly")).toBe("true");
  });

  test("a changed cell shows what stood there before", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("5{Enter}");
    const cell = grid().querySelector('[data-row="0"][data-column="1"]');
    expect(cell?.textContent).toBe("5before: 1");
    expect(cell?.hasAttribute("data-changed")).toBe(true);
  });

  test("Ctrl Z, Ctrl Shift Z and Ctrl Y ask for the steps back and forth", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("{Control>}z{/Control}{Control>}{Shift>}z{/Shift}{/Control}{Control>}y{/Control}");
    expect(asked).toEqual(["undo", "redo", "redo"]);
  });
});

describe("the clipboard", () => {
  test("a range is copied as lines of cells between tabs", async () => {
    const { user } = open();
    press(0, 0);
    await user.keyboard("{Shift>}{ArrowDown}{ArrowRight}{/Shift}");
    expect(clip("copy")).toBe("alpha\t1\nbeta\t3");
    expect(told()).toBe("4 cells copied.");
  });

  test("cutting copies and clears what can be cleared", async () => {
    const { user } = open();
    press(0, 0);
    await user.keyboard("{Shift>}{ArrowRight}{ArrowRight}{/Shift}");
    expect(clip("cut")).toBe("alpha\t1\t2");
    expect(written()).toEqual(["alpha.input=null alpha.output=null"]);
  });

  test("a block is pasted as one step, numbers read as spreadsheets write them", async () => {
    const { user } = open();
    press(0, 1);
    await user.paste("$10.50\t0,5\r\n１２\t1.234,5\r\n");
    expect(written()).toEqual(["alpha.input=10.5 alpha.output=0.5 beta.input=12"]);
    expect(steps[0]?.label).toBe("paste 3 cells");
    expect(selected()).toBe(4);
    expect(told()).toBe("3 cells changed. 1 cell was not taken: beta, Output: Must not be above 1000.");
  });

  test("bad cells of a block are counted, the first is named, the others stand", async () => {
    const { user } = open();
    press(0, 1);
    await user.paste("7\tabc\n1,234\t8\n-3\t9");
    expect(written()).toEqual(["alpha.input=7 beta.output=8 gamma.output=9"]);
    expect(told()).toBe(
      "3 cells changed. 3 cells were not taken, first alpha, Output: “abc” is not a number.",
    );
  });

  test("one value fills the range, a block that fits several times is repeated", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("{Shift>}{ArrowDown}{ArrowDown}{ArrowRight}{/Shift}");
    await user.paste("6");
    expect(steps[0]?.cells.length).toBe(6);
    await user.paste("8\t9");
    expect(written()[1]).toBe(
      "alpha.input=8 alpha.output=9 beta.input=8 beta.output=9 gamma.input=8 gamma.output=9",
    );
  });

  test("what stands there already is neither written nor refused; names come along", async () => {
    const { user } = open();
    press(0, 0);
    await user.paste("alpha\t1\t5\nother\t3\t4");
    expect(written()).toEqual(["alpha.output=5"]);
    expect(told()).toBe(
      "1 cell changed. 1 cell was not taken: beta, Name: This cell cannot be changed here.",
    );
  });

  test("values beyond the edge are counted", async () => {
    const { user } = open();
    press(2, 1);
    await user.paste("1\n2\n3");
    expect(written()).toEqual(["gamma.input=1"]);
    expect(told()).toBe("1 cell changed. 2 values lay beyond the edge of the sheet.");
  });

  test("nothing goes to the sheet while a field is open", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("5");
    await user.paste("7");
    expect(field()?.value).toBe("57");
    expect(steps).toEqual([]);
  });
});

describe("filling and clearing", () => {
  test("Ctrl D takes the top row down; in a single row, what stands above", async () => {
    const { user } = open();
    press(0, 1);
    await user.keyboard("{Shift>}{ArrowDown}{ArrowDown}{/Shift}{Control>}d{/Control}");
    expect(written()).toEqual(["beta.input=1 gamma.input=1"]);
    press(1, 2);
    await user.keyboard("{Control>}d{/Control}");
    expect(written()[1]).toBe("beta.output=2");
    press(0, 2);
    await user.keyboard("{Control>}d{/Control}");
    expect(steps.length).toBe(2);
  });

  test("Delete clears the range, and says which cells cannot be empty", async () => {
    const { user } = open();
    press(0, 2);
    await user.keyboard("{Shift>}{End}{/Shift}{Delete}");
    expect(written()).toEqual(["alpha.output=null"]);
    expect(told()).toBe("1 cell cleared. 1 cell was not taken: alpha, Billing: no billing: .");
  });
});

describe("many rows", () => {
  const many: readonly Row[] = Array.from({ length: 20_000 }, (_, index) => ({
    name: `model-${index}`,
    input: "1",
    output: "2",
  }));

  test("few of them are drawn, wherever the sheet stands, and the current one always is", async () => {
    const { user } = open({ rows: many });
    const drawn = () => grid().querySelectorAll('[role="row"]').length;
    expect(drawn()).toBeLessThan(50);
    expect(grid().getAttribute("aria-rowcount")).toBe("20001");
    press(0, 1);
    const scrollTo = (top: number) =>
      act(() => {
        grid().scrollTop = top;
        fireEvent.scroll(grid());
      });
    scrollTo(7200);
    expect(current()?.parentElement?.getAttribute("aria-rowindex")).toBe("2");
    await user.keyboard("{Control>}{End}{/Control}");
    expect(current()?.parentElement?.getAttribute("aria-rowindex")).toBe("20001");
    scrollTo(3600);
    expect(drawn()).toBeLessThan(50);
    expect(grid().textContent).toContain("model-100");
    expect(current()?.parentElement?.getAttribute("aria-rowindex")).toBe("20001");
  });

  test("the current cell goes with its row when rows are sorted or filtered", async () => {
    function Sorted() {
      const [isDown, setDown] = useState(false);
      const rows = isDown ? START.toReversed() : START;
      return (
        <>
          <button type="button" onClick={() => setDown(!isDown)}>
            turn
          </button>
          <Sheet
            label="Prices"
            rows={rows}
            keyOf={({ name }) => name}
            columns={[{ id: "name", label: "Name", kind: "text", width: 90, read: ({ name }) => name }]}
            write={() => undefined}
          />
        </>
      );
    }
    const { user } = renderPart(<Sorted />);
    press(0, 0);
    await user.click(screen.getByRole("button", { name: "turn" }));
    expect(current()?.textContent).toBe("alpha");
    expect(at()).toBe("2,0");
  });
});

describe("on a phone", () => {
  test("a row is a card whose fields are tapped to be edited, by the same rules", async () => {
    const { user } = open({ isCards: true });
    await user.click(screen.getByRole("button", { name: "Input $ of alpha: 1 Edit" }));
    const input = screen.getByRole<HTMLInputElement>("textbox", { name: "Input of alpha" });
    expect(document.activeElement).toBe(input);
    await user.clear(input);
    await user.type(input, "abc{Enter}");
    expect(screen.getByRole("alert").textContent).toBe("“abc” is not a number");
    await user.clear(input);
    await user.type(input, "7{Enter}");
    expect(written()).toEqual(["alpha.input=7"]);
    expect(screen.getByRole("button", { name: "Input $ of alpha: 7 before: 1 Edit" }).textContent).toContain(
      "before: 1",
    );
    await user.click(screen.getByRole("button", { name: "Billing of alpha: tokens Edit" }));
    await user.selectOptions(screen.getByRole("combobox", { name: "Billing of alpha" }), "call");
    expect(written()[1]).toBe("alpha.billing=call");
  });

  test("of many columns a card shows the first, and all of them when asked", async () => {
    const columns = Array.from({ length: 300 }, (_, at): SheetColumn<Row> => {
      const id = at === 0 ? "name" : `c${at}`;
      return {
        id,
        label: id,
        kind: "text",
        width: 90,
        read: (row) => row[id] ?? "",
        parse: (value) => ({ value }),
      };
    });
    const { user, container } = renderPart(
      <SheetCards
        label="Wide"
        rows={START}
        keyOf={({ name }) => name}
        columns={columns}
        write={() => undefined}
      />,
    );
    expect(container.querySelectorAll("[data-column-id]").length).toBe(3 * 24);
    const more = [...container.querySelectorAll("button")].filter((each) =>
      each.textContent?.startsWith("Show more"),
    );
    expect(more.map((each) => each.textContent)).toContain("Show more (275 left) of beta:");
    await user.click(more[1] as HTMLElement);
    expect(container.querySelectorAll("[data-column-id]").length).toBe(2 * 24 + 299);
  });

  test("cards come by the page", async () => {
    const rows = Array.from({ length: 65 }, (_, index) => ({ name: `model-${index}`, input: "1" }));
    const { user } = open({ isCards: true, rows });
    expect(screen.getAllByRole("listitem").length).toBe(30);
    await user.click(screen.getByRole("button", { name: "Show more (35 left)" }));
    expect(screen.getAllByRole("listitem").length).toBe(60);
    await user.click(screen.getByRole("button", { name: "Show more (5 left)" }));
    expect(screen.getAllByRole("listitem").length).toBe(65);
    expect(screen.queryByRole("button", { name: /Show more/ })).toBeNull();
  });
});
