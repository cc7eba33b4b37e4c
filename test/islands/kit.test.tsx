// The smaller parts of the kit as people meet them: pages, ranges, tabs, words with meaning, pictures, fields, table extras.
import { afterEach, beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { act, fireEvent, screen, within } from "@testing-library/react";
import { useState } from "react";
import { useForm } from "../../islands/lib/form.ts";
import type { ListState } from "../../islands/lib/list.ts";
import { rangeOf } from "../../islands/lib/time-range.ts";
import { setQuery, useQuery } from "../../islands/lib/url-state.ts";
import { Chip, Latency, Money, RatioBadge, StatusDot, When } from "../../islands/ui/badges.tsx";
import { Drawer } from "../../islands/ui/drawer.tsx";
import { Empty, Notice } from "../../islands/ui/feedback.tsx";
import { Section, SelectField, TextAreaField } from "../../islands/ui/form.tsx";
import ImageViewer from "../../islands/ui/image-viewer.tsx";
import { PageHeader, TabLinks } from "../../islands/ui/page-header.tsx";
import { Pagination } from "../../islands/ui/pagination.tsx";
import { editable } from "../../islands/ui/table-cell.tsx";
import type { Column, QuickEdit } from "../../islands/ui/table-columns.ts";
import { applyColumns } from "../../islands/ui/table-columns.ts";
import { DataTable } from "../../islands/ui/table.tsx";
import type { DataTableProps } from "../../islands/ui/table.tsx";
import { ChannelTag, Elapsed, ProgressBar, ProgressRing } from "../../islands/ui/task-cells.tsx";
import { TimeRangeField } from "../../islands/ui/time-range.tsx";
import { renderPart, settle } from "./render.tsx";

beforeEach(() => localStorage.clear());
afterEach(() => jest.useRealTimers());

interface Row {
  id: number;
  name: string;
  group: string;
}

const ROWS: Row[] = [
  { id: 1, name: "alpha", group: "default" },
  { id: 2, name: "beta", group: "vip" },
];

const COLUMNS: Column<Row>[] = [
  { id: "name", title: "Name", isIdentity: true, isSortable: true, cell: (row) => row.name },
  { id: "group", title: "Group", cell: (row) => row.group },
  { id: "extra", title: "Extra", cell: () => null },
];

function list(part: Partial<ListState<Row>> = {}): ListState<Row> {
  return {
    rows: ROWS,
    total: 2,
    phase: "ready",
    failure: undefined,
    refresh: async () => undefined,
    patch: () => () => undefined,
    ...part,
  };
}

function table(props: Partial<DataTableProps<Row>> = {}) {
  return (
    <DataTable<Row>
      label="Things"
      columns={COLUMNS}
      list={list()}
      rowKey={(row) => row.id}
      rowName={(row) => row.name}
      page={1}
      pageSize={10}
      onPage={() => undefined}
      onPageSize={() => undefined}
      empty={{ title: "Nothing yet" }}
      {...props}
    />
  );
}

describe("selecting everything that matches", () => {
  const all = Array.from({ length: 1204 }, (_, index) => ({ id: index + 1, name: `n${index}`, group: "" }));
  const bulk = (rows: readonly Row[], clear: () => void) => (
    <button type="button" onClick={clear}>
      {`Delete ${rows.length}`}
    </button>
  );

  test("after the whole page, all rows of the filter are offered and handed to the action", async () => {
    const told: number[] = [];
    const { user } = renderPart(
      table({
        list: list({ total: 1204 }),
        bulk,
        loadAll: async () => all,
        onSelection: (rows) => told.push(rows.length),
      }),
    );
    await user.click(screen.getByRole("checkbox", { name: "Select alpha" }));
    expect(screen.queryByRole("button", { name: /that match/ })).toBeNull();
    await user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    await user.click(screen.getByRole("button", { name: "Select all 1,204 that match" }));
    await settle();
    expect(screen.getByRole("button", { name: "Delete 1204" })).toBeTruthy();
    expect(screen.getByText("1,204 selected, all that match")).toBeTruthy();
    expect(told.at(-1)).toBe(1204);
    // Touching the selection again means these rows only.
    await user.click(screen.getByRole("checkbox", { name: "Select beta" }));
    expect(screen.getByRole("button", { name: "Delete 1" })).toBeTruthy();
  });

  test("where the page is everything, or the call cannot tell, nothing more is offered", async () => {
    const { user, unmount } = renderPart(table({ bulk, loadAll: async () => all }));
    await user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    expect(screen.queryByRole("button", { name: /that match/ })).toBeNull();
    unmount();
    const second = renderPart(table({ list: list({ total: 1204 }), bulk }));
    await second.user.click(screen.getByRole("checkbox", { name: "Select this page" }));
    expect(screen.queryByRole("button", { name: /that match/ })).toBeNull();
  });
});

describe("what a table says", () => {
  test("sort and number of results are spoken once they have settled, not on the first paint", () => {
    jest.useFakeTimers();
    let show: (props: Partial<DataTableProps<Row>>) => void = () => undefined;
    function Changing() {
      const [props, setProps] = useState<Partial<DataTableProps<Row>>>({});
      show = (next) => act(() => setProps(next));
      return table(props);
    }
    renderPart(<Changing />);
    const spoken = () =>
      [...document.querySelectorAll('[aria-live="polite"]')].map((each) => each.textContent).join("");
    const wait = async () => {
      act(() => void jest.advanceTimersByTime(700));
      await act(async () => undefined);
    };
    return (async () => {
      await wait();
      expect(spoken()).toBe("");
      show({ list: list({ total: 31 }) });
      await wait();
      expect(spoken()).toBe("31 results, page 1");
      show({ list: list({ total: 31 }), sort: { id: "name", isDescending: true }, onSort: () => undefined });
      await wait();
      expect(spoken()).toBe("Sorted by Name, descending");
    })();
  });

  test("rows that came in while somebody reads stand above a line", () => {
    renderPart(table({ fresh: { count: 1, text: "New above this line" } }));
    const names = screen.getAllByRole("row").map((row) => row.textContent);
    expect(names.slice(1)).toEqual(["alphadefault", "New above this line", "betavip"]);
  });
});

describe("columns", () => {
  test("Alt and the arrow keys move a column, and it stays there", async () => {
    const { user } = renderPart(table({ columnsKey: "test-columns" }));
    await user.click(screen.getByRole("button", { name: "Columns" }));
    // The menu comes with its first use.
    const group = await screen.findByRole("menuitemcheckbox", { name: "Group" });
    group.focus();
    await user.keyboard("{Alt>}{ArrowDown}{/Alt}");
    const heads = () =>
      screen
        .getAllByRole("columnheader")
        .map((each) => each.textContent)
        .slice(0, 3);
    expect(heads()).toEqual(["Name", "Extra", "Group"]);
    expect(Object.keys(JSON.parse(localStorage.getItem("test-columns") ?? "{}") as object)).toEqual([
      "name",
      "extra",
      "group",
    ]);
    act(() => applyColumns("test-columns", '{"name":true,"group":true,"extra":false}'));
    expect(heads().slice(0, 2)).toEqual(["Name", "Group"]);
  });
});

describe("quick edit", () => {
  function editableTable(edit: QuickEdit<Row>) {
    const group: Column<Row> = {
      id: "group",
      title: "Group",
      cell: (row) => row.group,
      edit: editable(edit),
    };
    return table({ columns: [COLUMNS[0]!, group] });
  }

  test("a choice is made in place by keyboard, and the focus stays in the row", async () => {
    const saved: string[] = [];
    const { user } = renderPart(
      editableTable({
        kind: "select",
        choices: [
          { value: "default", label: "default" },
          { value: "vip", label: "VIP" },
        ],
        value: (row) => row.group,
        save: async (row, value) => void saved.push(`${row.name}=${value}`),
      }),
    );
    await user.keyboard("je");
    const select = screen.getByRole("combobox", { name: "Edit Group" });
    expect(document.activeElement).toBe(select);
    await user.selectOptions(select, "vip");
    await user.keyboard("{Enter}");
    await settle();
    expect(saved).toEqual(["alpha=vip"]);
    expect(document.activeElement?.closest("tr")?.textContent).toContain("alpha");
  });

  test("Escape, an empty number and a value that fails its check are not sent", async () => {
    const saved: string[] = [];
    const { user } = renderPart(
      editableTable({
        kind: "number",
        value: (row) => row.id,
        check: (value) => (Number(value) < 0 ? "Not below 0" : undefined),
        save: async (_, value) => void saved.push(value),
      }),
    );
    const open = () => user.click(screen.getByRole("button", { name: "default" }));
    await open();
    await user.clear(screen.getByRole("spinbutton"));
    await user.keyboard("{Enter}");
    await open();
    await user.clear(screen.getByRole("spinbutton"));
    await user.keyboard("-5{Enter}");
    await settle();
    expect(screen.getByRole("alert").textContent).toBe("Not below 0");
    await open();
    await user.keyboard("7{Escape}");
    await open();
    await user.clear(screen.getByRole("spinbutton"));
    await user.keyboard("8");
    await user.tab();
    expect(saved).toEqual(["8"]);
  });
});

describe("pages of a list", () => {
  test("the neighbours, the ends and the size are buttons with names; a list without a total offers neighbours only", async () => {
    const asked: (number | string)[] = [];
    const { user, unmount } = renderPart(
      <Pagination
        page={2}
        pageSize={10}
        total={35}
        shown={10}
        onPage={(page) => asked.push(page)}
        onPageSize={(size) => asked.push(`size ${size}`)}
      />,
    );
    expect(screen.getByText("11–20 of 35").getAttribute("role")).toBe("status");
    for (const name of ["First page", "Previous page", "Next page", "Last page"]) {
      await user.click(screen.getByRole("button", { name }));
    }
    await user.selectOptions(screen.getByLabelText("Per page"), "50");
    expect(asked).toEqual([1, 1, 3, 4, "size 50"]);
    unmount();
    renderPart(
      <Pagination
        page={2}
        pageSize={10}
        total={-1}
        shown={10}
        onPage={() => undefined}
        onPageSize={() => undefined}
      />,
    );
    expect(screen.getByRole("button", { name: "Last page" }).hasAttribute("disabled")).toBe(true);
    expect(screen.getByRole("button", { name: "Next page" }).hasAttribute("disabled")).toBe(false);
  });
});

describe("ranges of time", () => {
  const NOW = Date.UTC(2026, 10, 20, 12);
  function Field() {
    const query = useQuery();
    return <TimeRangeField range={rangeOf(query, NOW, "UTC", "24h")} onChange={(patch) => setQuery(patch)} />;
  }

  test("presets stay relative in the address, arrows shift by the range's own length", async () => {
    const { user } = renderPart(<Field />, { url: "/log" });
    await user.selectOptions(screen.getByRole("combobox", { name: "Time range" }), "7d");
    expect(location.search).toBe("?range=7d");
    expect(screen.getByRole("button", { name: "Later" }).hasAttribute("disabled")).toBe(true);
    await user.click(screen.getByRole("button", { name: "Earlier" }));
    const to = NOW / 1000 - 7 * 86_400;
    expect(location.search).toBe(`?start_timestamp=${to - 7 * 86_400}&end_timestamp=${to}`);
    expect(screen.getByRole("combobox").textContent).toContain("Custom");
  });

  test("typed moments are read in the visitor's zone, and an end before its start is refused", () => {
    renderPart(<Field />, { url: "/log?start_timestamp=1760000000&end_timestamp=1760003600" });
    const from = screen.getByLabelText<HTMLInputElement>("From");
    expect(from.value).toBe("2025-10-09T08:53");
    fireEvent.change(from, { target: { value: "2025-10-09T08:00" } });
    expect(location.search).toBe("?start_timestamp=1759996800&end_timestamp=1760003600");
    fireEvent.change(screen.getByLabelText("To"), { target: { value: "2025-10-09T07:00" } });
    expect(location.search).toBe("?start_timestamp=1759996800&end_timestamp=1760003600");
  });
});

describe("page head", () => {
  test("title, purpose, one action and the rest in a menu", async () => {
    const done: string[] = [];
    const { user } = renderPart(
      <PageHeader
        title="Channels"
        note="3 of them"
        action={<button type="button">New</button>}
        overflow={[[{ id: "x", label: "Test all", onSelect: () => done.push("x") }]]}
      />,
    );
    expect(screen.getByRole("heading", { level: 1, name: "Channels" })).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "More actions" }));
    await user.click(screen.getByRole("menuitem", { name: "Test all" }));
    expect(done).toEqual(["x"]);
  });

  test("tabs are links; the open one is marked, a plain click does not leave the page", async () => {
    const opened: string[] = [];
    const { user } = renderPart(
      <TabLinks
        label="Sections"
        tabs={[
          { id: "a", label: "One", href: "/x?tab=a" },
          { id: "b", label: "Two", href: "/x?tab=b", count: 4 },
        ]}
        current="a"
        onOpen={(id) => opened.push(id)}
      />,
    );
    const nav = screen.getByRole("navigation", { name: "Sections" });
    expect(within(nav).getByRole("link", { name: "One" }).getAttribute("aria-current")).toBe("page");
    await user.click(within(nav).getByRole("link", { name: /Two/ }));
    expect(opened).toEqual(["b"]);
  });
});

describe("words with meaning", () => {
  test("states have words beside their dots, amounts their exact value, times all three readings", () => {
    renderPart(
      <>
        <StatusDot tone="attention" reason="quota exhausted">
          Disabled
        </StatusDot>
        <Money quota={2250} />
        <RatioBadge ratio={6} />
        <Chip>vip</Chip>
        <When at={1_763_640_000} isAbsolute />
        <When at={-1} never="Never expires" />
        <Latency ms={12_000} thresholdsMs={[3000, 10_000]} />
      </>,
    );
    expect(screen.getByText("Disabled").textContent).toContain("quota exhausted");
    expect(screen.getByText("$0.0045").title).toBe("$0.004500 · 2,250");
    expect(screen.getByText("6×").dataset.tone).toBe("broken");
    expect(screen.getByText("2025-11-20 12:00:00").title).toContain("1763640000");
    expect(screen.getByText("Never expires")).toBeTruthy();
    expect(screen.getByText("12.0 s").parentElement?.dataset.tone).toBe("broken");
  });

  test("progress shows its number, raw texts as they are, and a failure in its colour", () => {
    renderPart(
      <>
        <ProgressBar progress="35%" isFailed={false} />
        <ProgressBar progress="100%" isFailed />
        <ProgressRing progress="waiting" isFailed={false} />
        <Elapsed fromMs={1000} toMs={62_000} />
      </>,
    );
    expect(screen.getByText("35%").parentElement?.dataset.tone).toBe("running");
    expect(screen.getByText("100%").parentElement?.dataset.tone).toBe("attention");
    expect(screen.getByText("waiting")).toBeTruthy();
    expect(screen.getByTitle("Over 60 seconds").textContent).toContain("1 m 01 s");
  });

  test("a channel tag copies its id", async () => {
    const { user } = renderPart(<ChannelTag id={42} />);
    await user.click(screen.getByRole("button", { name: "Copy 42" }));
    expect(await navigator.clipboard.readText()).toBe("42");
  });
});

describe("notices", () => {
  test("a failure alerts, a notice can be closed, an empty place says what to do next", async () => {
    let closed = 0;
    const { user } = renderPart(
      <>
        <Notice tone="error">Broken</Notice>
        <Notice tone="info" onClose={() => closed++}>
          Good to know
        </Notice>
        <Empty title="No keys" text="Make one." action={<button type="button">New</button>} />
      </>,
    );
    expect(screen.getByRole("alert").textContent).toBe("Broken");
    await user.click(screen.getByRole("button", { name: "Close" }));
    expect(closed).toBe(1);
    expect(screen.getByRole("button", { name: "New" })).toBeTruthy();
  });
});

describe("fields", () => {
  function Fields() {
    const form = useForm({ initial: { note: "", group: "default" } });
    return (
      <>
        <TextAreaField form={form} name="note" label="Note" hint="Two lines" />
        <SelectField
          form={form}
          name="group"
          label="Group"
          choices={[
            { value: "default", label: "default" },
            { value: "vip", label: "VIP" },
          ]}
        />
        <Section title="Rare" isFolded count={2}>
          <p>inside</p>
        </Section>
        <output>{JSON.stringify(form.values)}</output>
      </>
    );
  }

  test("areas and choices have labels and hints; a folded section tells how much is set", async () => {
    const { user } = renderPart(<Fields />);
    const note = screen.getByLabelText("Note");
    expect(document.getElementById(note.getAttribute("aria-describedby") ?? "")?.textContent).toBe(
      "Two lines",
    );
    await user.type(note, "a{Enter}b");
    await user.selectOptions(screen.getByLabelText("Group"), "vip");
    expect(document.querySelector("output")?.textContent).toBe('{"note":"a\\nb","group":"vip"}');
    expect(screen.getByText("2 set")).toBeTruthy();
  });
});

describe("leaving a drawer", () => {
  test("Back asks once where something was typed, and stays or goes as it is answered", async () => {
    const went: string[] = [];
    const back = spyOn(history, "back").mockImplementation(() => {
      went.push("back");
      pressBack();
    });
    const pressBack = () => {
      history.replaceState(null, "", "/list");
      window.dispatchEvent(new PopStateEvent("popstate"));
    };
    function Listed() {
      return useQuery().edit ? (
        <Drawer isOpen isDirty title="Edit" onClose={() => went.push("closed")}>
          <input aria-label="Field" />
        </Drawer>
      ) : null;
    }
    const { user } = renderPart(<Listed />, { url: "/list?edit=1" });
    await user.type(screen.getByLabelText("Field"), "typed");
    const answer = async (name: string) => {
      await user.click(await screen.findByRole("button", { name }));
      await settle();
    };
    act(pressBack);
    await screen.findByText("Discard unsaved changes?");
    act(pressBack);
    expect(location.pathname + location.search).toBe("/list?edit=1");
    await answer("Cancel");
    expect(screen.getByLabelText<HTMLInputElement>("Field").value).toBe("typed");
    expect(went).toEqual([]);
    act(pressBack);
    await answer("Discard changes");
    expect(went).toEqual(["back"]);
    expect(screen.queryByLabelText("Field")).toBeNull();
    back.mockRestore();
  });
});

describe("drawer keys", () => {
  test("single keys reach the drawer, but not from a field, and Enter on a button is the button's", async () => {
    const keys: string[] = [];
    const { user } = renderPart(
      <Drawer isOpen title="Detail" onClose={() => undefined} onKey={(event) => keys.push(event.key)}>
        <input aria-label="Field" />
        <button type="button">Button</button>
      </Drawer>,
    );
    screen.getByRole("dialog", { name: "Detail" }).focus();
    fireEvent.keyDown(screen.getByRole("dialog", { name: "Detail" }), { key: "j" });
    await user.type(screen.getByLabelText("Field"), "k");
    screen.getByRole("button", { name: "Button" }).focus();
    await user.keyboard("{Enter}j");
    expect(keys).toEqual(["j", "j"]);
  });
});

describe("pictures", () => {
  const IMAGES = [
    { id: 1, url: "/1.png", alt: "a cat" },
    { id: 2, url: "/2.png", alt: "a dog" },
  ];
  function Viewer({ onClose }: { onClose: () => void }) {
    const [at, setAt] = useState(0);
    return <ImageViewer images={IMAGES} at={at} onStep={setAt} onClose={onClose} />;
  }

  test("arrows walk, the prompt stands in place of the picture, the original can be opened, Escape closes", async () => {
    let closed = 0;
    const { user } = renderPart(<Viewer onClose={() => closed++} />);
    const dialog = screen.getByRole("dialog", { name: "Picture" });
    expect(within(dialog).getByRole("img", { name: "a cat" })).toBeTruthy();
    expect(screen.getByRole("button", { name: "Previous picture" }).hasAttribute("disabled")).toBe(true);
    fireEvent.keyDown(dialog, { key: "ArrowRight" });
    expect(within(dialog).getByRole("img", { name: "a dog" })).toBeTruthy();
    expect(screen.getByText("2 of 2")).toBeTruthy();
    expect(screen.getByRole("link", { name: "Open the original" }).getAttribute("href")).toBe("/2.png");
    await user.click(screen.getByRole("button", { name: "Copy the picture's address" }));
    expect(await navigator.clipboard.readText()).toBe("/2.png");
    fireEvent.error(within(dialog).getByRole("img"));
    expect(screen.getByRole("alert").textContent).toBe("The picture could not be loaded");
    fireEvent(dialog, new Event("cancel", { cancelable: true }));
    expect(closed).toBe(1);
  });
});
