// Saved views and CSV and curl: what people take away from a list.
import { beforeEach, describe, expect, jest, spyOn, test } from "bun:test";
import { act, screen } from "@testing-library/react";
import { collectRows, csvCell, csvText } from "../../islands/lib/csv.ts";
import { curlOf, shellQuote } from "../../islands/lib/curl.ts";
import { setQuery, useQuery } from "../../islands/lib/url-state.ts";
import { ExportProgress, useCsvExport } from "../../islands/ui/csv-export.tsx";
import { ViewTabs } from "../../islands/ui/view-tabs.tsx";
import { renderPart, settle } from "./render.tsx";

beforeEach(() => localStorage.clear());

describe("views", () => {
  function Tabs() {
    const query = useQuery();
    return (
      <ViewTabs
        label="Views"
        screen="test"
        builtIn={[
          { id: "all", label: "All", query: {} },
          { id: "off", label: "Disabled", query: { status: "2" } },
        ]}
        fields={["status", "model", "sort"]}
        query={query}
        onOpen={(patch) => setQuery({ ...patch, p: undefined })}
        columnsKey="test-columns"
      />
    );
  }
  const current = () => document.querySelector('[aria-current="page"]')?.textContent;

  test("a tab is a link to its address and marks itself when the address is its own", async () => {
    const { user } = renderPart(<Tabs />, { url: "/x?model=gpt&p=3" });
    expect(current()).toBe("All");
    expect(screen.getByRole("link", { name: "Disabled" }).getAttribute("href")).toBe("/x?model=gpt&status=2");
    await user.click(screen.getByRole("link", { name: "Disabled" }));
    expect(location.search).toBe("?model=gpt&status=2");
    expect(current()).toBe("Disabled");
  });

  test("filters get a name, come back with it, columns included, on the next visit too", async () => {
    localStorage.setItem("test-columns", '{"name":true,"group":false}');
    const first = renderPart(<Tabs />, { url: "/x?status=2&model=gpt" });
    await first.user.click(screen.getByRole("button", { name: "Save view" }));
    await first.user.keyboard("my broken ones{Enter}");
    expect(current()).toBe("my broken ones");
    expect(screen.queryByRole("button", { name: "Save view" })).toBeNull();
    first.unmount();
    localStorage.removeItem("test-columns");
    const second = renderPart(<Tabs />, { url: "/x" });
    await second.user.click(screen.getByRole("link", { name: "my broken ones" }));
    expect(location.search).toBe("?status=2&model=gpt");
    expect(localStorage.getItem("test-columns")).toBe('{"name":true,"group":false}');
  });

  test("Escape and an empty name save nothing; the plain views need no name", async () => {
    const { user } = renderPart(<Tabs />, { url: "/x?status=2" });
    expect(screen.queryByRole("button", { name: "Save view" })).toBeNull();
    act(() => setQuery({ sort: "-id" }));
    await user.click(screen.getByRole("button", { name: "Save view" }));
    await user.keyboard("lost{Escape}");
    expect(screen.queryByRole("link", { name: "lost" })).toBeNull();
    await user.click(screen.getByRole("button", { name: "Save view" }));
    await user.keyboard("  {Enter}");
    expect(localStorage.getItem("saved-views")).toBeNull();
  });

  test("a view is removed with Undo at hand", async () => {
    localStorage.setItem("saved-views", JSON.stringify({ test: [{ name: "mine", query: { model: "o1" } }] }));
    const { user } = renderPart(<Tabs />, { url: "/x?model=o1" });
    await user.click(screen.getByRole("button", { name: "Actions for the view mine" }));
    await user.click(screen.getByRole("menuitem", { name: "Remove view" }));
    expect(screen.queryByRole("link", { name: "mine" })).toBeNull();
    await user.click(screen.getByRole("button", { name: "Undo" }));
    expect(screen.getByRole("link", { name: "mine" })).toBeTruthy();
  });

  test("a view of an older version applies what is still known and says what is not", async () => {
    localStorage.setItem(
      "saved-views",
      JSON.stringify({ test: [{ name: "old", query: { model: "o1", gone: "x" } }, { broken: true }] }),
    );
    const { user } = renderPart(<Tabs />, { url: "/x?status=2" });
    await user.click(screen.getByRole("link", { name: "old" }));
    expect(location.search).toBe("?model=o1");
    expect(screen.getByText(/uses fields that no longer exist.*gone/)).toBeTruthy();
  });
});

describe("CSV", () => {
  test("cells keep commas, quotes and lines; a text that a spreadsheet would run is defused", () => {
    expect(csvCell('a,"b"\nc')).toBe('"a,""b""\nc"');
    for (const text of ["=1+1", "+1", "-1", "@x", "\tx"])
      expect(csvCell(text).replace(/^"/, "")).toStartWith("'");
    expect(csvCell("=A1,B1")).toBe(`"'=A1,B1"`);
    expect([csvCell(-1.5), csvCell(0), csvCell(Number.NaN), csvCell(undefined), csvCell(true)]).toEqual([
      "-1.5",
      "0",
      "",
      "",
      "true",
    ]);
    expect(csvText(["名称", "n"], [["甲", 1]])).toBe("\uFEFF名称,n\r\n甲,1\r\n");
  });

  test("every page is fetched once, rows that moved on are not doubled, and a cut is told", async () => {
    const pages: number[] = [];
    const load = async (page: number) => {
      pages.push(page);
      // One row came in between the pages: the last of the first page stands again on the second.
      const all = [1, 2, 3, 3, 4, 5, 6];
      return { rows: all.slice((page - 1) * 3, page * 3), total: 7 };
    };
    const options = { load, rowKey: (row: number) => row, pageSize: 3, signal: new AbortController().signal };
    expect(await collectRows({ ...options, most: 100 })).toEqual({ rows: [1, 2, 3, 4, 5, 6], isCut: false });
    expect(pages).toEqual([1, 2, 3]);
    expect(await collectRows({ ...options, most: 2 })).toEqual({ rows: [1, 2], isCut: true });
  });

  test("a running export shows how far it is and can be cancelled", async () => {
    let finish: (() => void) | undefined;
    function Exporter() {
      const csv = useCsvExport<number>(() => ({
        name: "x",
        heads: ["n"],
        cells: (row) => [row],
        rowKey: (row) => row,
        load: (page, signal) =>
          new Promise((resolve, reject) => {
            signal.addEventListener("abort", () => reject(new DOMException("gone", "AbortError")));
            if (page === 1) resolve({ rows: Array.from({ length: 100 }, (_, index) => index), total: 150 });
            else finish = () => resolve({ rows: [], total: 150 });
          }),
      }));
      return (
        <>
          <button type="button" onClick={csv.start}>
            Export
          </button>
          <ExportProgress {...csv} />
        </>
      );
    }
    const { user } = renderPart(<Exporter />);
    await user.click(screen.getByRole("button", { name: "Export" }));
    await settle();
    expect(await screen.findByText("Exporting: 100 of 150")).toBeTruthy();
    await user.click(screen.getByRole("button", { name: "Cancel export" }));
    await settle();
    expect(screen.queryByText(/Exporting/)).toBeNull();
    expect(screen.queryByRole("alert")).toBeNull();
    const made = spyOn(URL, "createObjectURL").mockReturnValue("blob:x");
    const click = spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(() => undefined);
    await user.click(screen.getByRole("button", { name: "Export" }));
    await settle();
    act(() => finish?.());
    await settle();
    // Other files of the run may save files of their own meanwhile: this one has the head "n" and a hundred numbers.
    const saved = await Promise.all(made.mock.calls.map(([blob]) => (blob as Blob).text()));
    expect(saved.filter((text) => /n\r?\n"?0"?\r?\n/.test(text) && /99"?\s*$/.test(text))).toHaveLength(1);
    expect(await screen.findByText("100 rows exported")).toBeTruthy();
    made.mockRestore();
    click.mockRestore();
    jest.restoreAllMocks();
  });
});

describe("curl", () => {
  test("the command names the server, carries the filter, and no secret", () => {
    renderPart(null, { status: { server_address: "https://gate.example/" } });
    expect(curlOf({ path: "/api/log/", query: { model_name: "gpt 4", group: "", p: 2 } })).toBe(
      [
        "curl 'https://gate.example/api/log/?model_name=gpt+4&p=2' \\",
        "  -H 'Authorization: Bearer <system access token>' \\",
        "  -H 'New-Api-User: 7'",
      ].join("\n"),
    );
    const post = curlOf({ method: "POST", path: "/v1/chat/completions", body: { model: "it's" } });
    expect(post).toContain("-X POST");
    expect(post).toContain("<API key>");
    expect(post).not.toContain("New-Api-User");
    expect(post).toContain(String.raw`{"model":"it'\''s"}`);
  });

  test("nothing in it is a command to a shell", async () => {
    const hostile = `a'; rm -rf / #$(id)\`id\`"\n\\`;
    const shell = Bun.spawnSync(["sh", "-c", `printf %s ${shellQuote(hostile)}`]);
    expect(shell.stdout.toString()).toBe(hostile);
  });
});
