// What people can do with a table: open, sort, select, walk with the keyboard, edit in place, choose columns.
// Uses the kit as a screen does; nothing here knows its markup beyond roles and names.
import { describe, expect, test } from "bun:test";
import { act, screen, within } from "@testing-library/react";
import { useState } from "react";
import { ApiFailure } from "../../islands/lib/api.ts";
import type { ListState } from "../../islands/lib/list.ts";
import { DataTable } from "../../islands/ui/table.tsx";
import type { DataTableProps } from "../../islands/ui/table.tsx";
import { mergeStored } from "../../islands/ui/table-columns.ts";
import { editable } from "../../islands/ui/table-cell.tsx";
import type { Column } from "../../islands/ui/table-columns.ts";
import { renderPart, settle } from "./render.tsx";

interface Row {
  id: number;
  name: string;
  priority: number;
}

const ROWS: Row[] = [
  { id: 1, name: "alpha", priority: 3 },
  { id: 2, name: "beta", priority: 2 },
  { id: 3, name: "gamma", priority: 1 },
];

function list(part: Partial<ListState<Row>> = {}): ListState<Row> {
  return {
    rows: ROWS,
    total: 30,
    phase: "ready",
    failure: undefined,
    refresh: async () => undefined,
    patch: () => () => undefined,
    ...part,
  };
}

const COLUMNS: Column<Row>[] = [
  { id: "name", title: "Name", isIdentity: true, isSortable: true, cell: (row) => row.name },
  { id: "priority", title: "Priority", align: "end", cell: (row) => row.priority },
];

function table(props: Partial<DataTableProps<Row>> = {}) {
  return (
    <DataTable<Row>
      label="Channels"
      columns={COLUMNS}
      list={list()}
      rowKey={(row) => row.id}
      rowName={(row) => row.name}
      page={1}
      pageSize={10}
      onPage={() => undefined}
      onPageSize={() => undefined}
      empty={{ title: "Nothing yet", text: "Add one." }}
      {...props}
    />
  );
}

describe("opening", () => {
  test("a click on a row opens it, a click on its menu does not", async () => {
    const opened: string[] = [];
    const { user } = renderPart(
      table({
        onOpen: (row) => opened.push(row.name),
        rowMenu: () => [[{ id: "edit", label: "Edit", onSelect: () => opened.push("menu") }]],
      }),
    );
    await user.click(screen.getByText("beta"));
    expect(opened).toEqual(["beta"]);
    await user.click(screen.getByRole("button", { name: "Actions for gamma" }));
    expect(opened).toEqual(["beta"]);
    await user.click(screen.getByRole("menuitem", { name: "Edit" }));
    expect(opened).toEqual(["beta", "menu"]);
  });

  test("the identity cell is a link with the row's own address", () => {
    renderPart(table({ rowHref: (row) => `?edit=${row.id}` }));
    expect(screen.getByRole("link", { name: "alpha" }).getAttribute("href")).toBe("?edit=1");
  });

  test("j, k and o walk and open without a pointer", async () => {
    const opened: string[] = [];
    const { user } = renderPart(table({ onOpen: (row) => opened.push(row.name) }));
    await user.keyboard("jjjjk");
    expect(document.activeElement?.textContent).toContain("beta");
    await user.keyboard("o");
    await user.keyboard("{ArrowDown}{Enter}");
    expect(opened).toEqual(["beta", "gamma"]);
  });
});

describe("every row of the filter", () => {
  test("is selected once each, and not at all where the list shows another filter by then", async () => {
    const found = Promise.withResolvers<readonly Row[]>();
    let show: (rows: Row[]) => void = () => undefined;
    function Filtered() {
      const [rows, setRows] = useState(ROWS);
      show = setRows;
      return table({
        list: list({ rows }),
        loadAll: () => found.promise,
        bulk: (chosen, _, all) => <output>{all ?? chosen.length}</output>,
      });
    }
    const { user } = renderPart(<Filtered />);
    const selectAll = () => user.click(screen.getByRole("button", { name: /^Select all 30/ }));
    const count = () => document.querySelector("output")?.textContent;
    await user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await selectAll();
    act(() => show(ROWS.slice(0, 2)));
    await act(async () => found.resolve([...ROWS, ...ROWS]));
    expect(count()).toBe("2");
    await selectAll();
    expect(count()).toBe("3");
  });
});

describe("focus", () => {
  const focusedRow = () => document.activeElement?.closest("tr")?.textContent;
  let show: (names: string[]) => void = () => undefined;
  function Changing() {
    const [names, setNames] = useState(["alpha", "beta", "gamma"]);
    show = (next) => act(() => setNames(next));
    return table({ list: list({ rows: ROWS.filter(({ name }) => names.includes(name)) }) });
  }

  test("a row that goes hands it to its successor, the last one to the row above, an empty table takes it", async () => {
    const { user } = renderPart(<Changing />);
    await user.keyboard("jj");
    expect(focusedRow()).toContain("beta");
    show(["alpha", "gamma"]);
    expect(focusedRow()).toContain("gamma");
    show(["alpha"]);
    expect(focusedRow()).toContain("alpha");
    show([]);
    expect(document.activeElement?.getAttribute("aria-label")).toBe("Channels");
  });

  test("who has left the table is not called back", async () => {
    const { user } = renderPart(<Changing />);
    await user.keyboard("j");
    (document.activeElement as HTMLElement).blur();
    show(["beta"]);
    expect(document.activeElement).toBe(document.body);
  });
});

describe("sorting", () => {
  test("the head button goes through ascending, descending and natural order, and says which", async () => {
    const asked: unknown[] = [];
    const onSort: DataTableProps<Row>["onSort"] = (sort) => asked.push(sort);
    const { user, unmount } = renderPart(table({ onSort }));
    await user.click(screen.getByRole("button", { name: "Name" }));
    unmount();
    const second = renderPart(table({ onSort, sort: { id: "name", isDescending: false } }));
    expect(screen.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort")).toBe("ascending");
    await second.user.click(screen.getByRole("button", { name: "Name" }));
    second.unmount();
    const third = renderPart(table({ onSort, sort: { id: "name", isDescending: true } }));
    await third.user.click(screen.getByRole("button", { name: "Name" }));
    expect(asked).toEqual([
      { id: "name", isDescending: false },
      { id: "name", isDescending: true },
      undefined,
    ]);
  });

  test("a column that the call cannot sort offers no sorting", () => {
    renderPart(table({ onSort: () => undefined }));
    expect(screen.queryByRole("button", { name: "Priority" })).toBeNull();
  });
});

describe("selection", () => {
  const bulk: DataTableProps<Row>["bulk"] = (rows, clear) => (
    <button type="button" onClick={clear}>
      Delete {rows.map(({ name }) => name).join("+")}
    </button>
  );

  test("chosen rows appear in the bar and go away with it", async () => {
    const { user } = renderPart(table({ bulk }));
    await user.click(screen.getByRole("checkbox", { name: "Select alpha" }));
    await user.click(screen.getByRole("checkbox", { name: "Select gamma" }));
    const bar = screen.getByRole("toolbar", { name: "Actions for the selection" });
    expect(within(bar).getByText("2 selected")).toBeTruthy();
    await user.click(within(bar).getByRole("button", { name: "Delete alpha+gamma" }));
    expect(screen.queryByRole("toolbar")).toBeNull();
  });

  test("the head's checkbox takes the whole page", async () => {
    const { user } = renderPart(table({ bulk }));
    await user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    expect(screen.getByRole("button", { name: "Delete alpha+beta+gamma" })).toBeTruthy();
  });

  test("x selects and shift x selects up to the row", async () => {
    const { user } = renderPart(table({ bulk }));
    await user.keyboard("jxjj{Shift>}X{/Shift}");
    expect(screen.getByRole("button", { name: "Delete alpha+beta+gamma" })).toBeTruthy();
  });
});

describe("states", () => {
  test("loading shows the head, skeletons hidden from readers and one status", () => {
    renderPart(table({ list: list({ rows: [], phase: "loading" }) }));
    expect(screen.getByRole("columnheader", { name: "Name" })).toBeTruthy();
    expect(screen.getByText("Loading")).toBeTruthy();
    expect(screen.queryByText("Nothing yet")).toBeNull();
  });

  test("a failure keeps the old rows and offers another try", async () => {
    let tries = 0;
    const { user } = renderPart(
      table({
        list: list({
          phase: "failed",
          failure: "Cannot reach the server",
          refresh: async () => {
            tries++;
          },
        }),
      }),
    );
    expect(screen.getByText("alpha")).toBeTruthy();
    await user.click(within(screen.getByRole("alert")).getByRole("button", { name: "Retry" }));
    expect(tries).toBe(1);
  });

  test("an empty list says what belongs here; an empty answer to filters offers to clear them", async () => {
    let cleared = false;
    const { unmount } = renderPart(table({ list: list({ rows: [], total: 0 }) }));
    expect(screen.getByText("Nothing yet")).toBeTruthy();
    unmount();
    const { user } = renderPart(
      table({ list: list({ rows: [], total: 0 }), isFiltered: true, onClearFilters: () => (cleared = true) }),
    );
    await user.click(screen.getByRole("button", { name: "Clear filters" }));
    expect(cleared).toBe(true);
  });
});

describe("pages", () => {
  test("the range is told and the brackets turn the pages", async () => {
    const pages: number[] = [];
    const { user } = renderPart(table({ page: 2, onPage: (page) => pages.push(page) }));
    expect(screen.getByText("11–13 of 30")).toBeTruthy();
    await user.keyboard("[[");
    await user.keyboard("]");
    expect(pages).toEqual([1, 3]);
  });

  test("the first page has nothing before it and the last nothing behind", () => {
    renderPart(table({ list: list({ total: 3 }) }));
    for (const name of ["First page", "Previous page", "Next page", "Last page"]) {
      expect(screen.getByRole("button", { name }).hasAttribute("disabled")).toBe(true);
    }
  });
});

describe("editing in place", () => {
  const withEdit = (save: (row: Row, text: string) => Promise<void>): Column<Row>[] => [
    COLUMNS[0]!,
    {
      id: "priority",
      title: "Priority",
      cell: (row) => row.priority,
      edit: editable({ kind: "number", value: (row) => row.priority, save }),
    },
  ];

  test("e opens the cell of the current row, Enter saves, Escape reverts", async () => {
    const saved: string[] = [];
    const columns = withEdit(async (row, text) => {
      saved.push(`${row.name}=${text}`);
    });
    const { user } = renderPart(table({ columns }));
    await user.keyboard("jje");
    const input = screen.getByRole("spinbutton", { name: "Edit Priority" });
    await user.clear(input);
    await user.type(input, "9{Enter}");
    expect(saved).toEqual(["beta=9"]);
    await user.click(screen.getByRole("button", { name: "1" }));
    await user.type(screen.getByRole("spinbutton"), "5{Escape}");
    expect(saved).toEqual(["beta=9"]);
    expect(screen.queryByRole("spinbutton")).toBeNull();
  });

  test("a refused value stands at its cell", async () => {
    const columns = withEdit(async () => {
      throw new ApiFailure("nope", 200, "Too high");
    });
    const { user } = renderPart(table({ columns }));
    await user.click(screen.getByRole("button", { name: "3" }));
    await user.type(screen.getByRole("spinbutton"), "7{Enter}");
    await settle();
    expect(screen.getByRole("alert").textContent).toBe("Too high");
  });
});

describe("columns", () => {
  test("a hidden column stays hidden on the next visit, and reset brings it back", async () => {
    const first = renderPart(table({ columnsKey: "test-columns" }));
    await first.user.click(screen.getByRole("button", { name: "Columns" }));
    await settle();
    await first.user.click(screen.getByRole("menuitemcheckbox", { name: "Priority" }));
    expect(screen.queryByRole("columnheader", { name: "Priority" })).toBeNull();
    first.unmount();
    const second = renderPart(table({ columnsKey: "test-columns" }));
    expect(screen.queryByRole("columnheader", { name: "Priority" })).toBeNull();
    await second.user.click(screen.getByRole("button", { name: "Columns" }));
    await settle();
    await second.user.click(screen.getByRole("menuitem", { name: "Reset" }));
    expect(screen.getByRole("columnheader", { name: "Priority" })).toBeTruthy();
  });

  test("what a choice does not name goes on standing back in narrow tables, what it shows is shown at any width", async () => {
    const columns: Column<Row>[] = [
      ...COLUMNS,
      { id: "weight", title: "Weight", from: 1100, cell: () => "1" },
      { id: "group", title: "Group", from: 990, isHiddenByDefault: true, cell: () => "vip" },
    ];
    const { user } = renderPart(table({ columns, columnsKey: "test-columns" }));
    const fromOf = (name: string) => screen.getByRole("columnheader", { name }).dataset["from"];
    expect(fromOf("Weight")).toBe("1100");
    await user.click(screen.getByRole("button", { name: "Columns" }));
    await settle();
    await user.click(screen.getByRole("menuitemcheckbox", { name: "Priority" }));
    expect(fromOf("Weight")).toBe("1100");
    await user.click(screen.getByRole("menuitemcheckbox", { name: "Group" }));
    expect(fromOf("Group")).toBeUndefined();
    expect(JSON.parse(localStorage.getItem("test-columns") ?? "")).toEqual({
      name: true,
      priority: false,
      group: true,
    });
  });

  test("stored settings of another version are merged: unknown ones dropped, new ones shown in their place", () => {
    const columns: Column<Row>[] = [...COLUMNS, { id: "fresh", title: "Fresh", cell: () => "" }];
    const { order, hidden } = mergeStored(columns, { gone: true, priority: false, name: false });
    expect(order).toEqual(["priority", "name", "fresh"]);
    expect([...hidden]).toEqual(["priority"]);
  });
});
