// The charts kit: honest scales and stacks, colours that stay, a cursor by keys and pointer that speaks, the table view.
import { describe, expect, jest, test } from "bun:test";
import { fireEvent, screen, within } from "@testing-library/react";
import fc from "fast-check";
import { renderToString } from "react-dom/server";
import {
  assignSlots,
  axisLabels,
  scaleOf,
  shareText,
  SLOTS,
  spanText,
  sparkPaths,
  stackPaths,
} from "../../islands/lib/chart.ts";
import type { ChartSeries, TimeAxis } from "../../islands/lib/chart.ts";
import { useChartCursor } from "../../islands/lib/chart-cursor.ts";
import type { Span } from "../../islands/lib/chart-cursor.ts";
import { formatNumber } from "../../islands/lib/format.ts";
import { BarChart } from "../../islands/ui/chart-bars.tsx";
import { RankList } from "../../islands/ui/chart-ranks.tsx";
import { Sparkline } from "../../islands/ui/chart-spark.tsx";
import { renderPart } from "./render.tsx";

const HOUR = 3600;
const START = Date.UTC(2026, 10, 19, 22) / 1000;
const AXIS: TimeAxis = {
  at: [0, 1, 2, 3].map((index) => START + index * HOUR),
  to: START + 4 * HOUR,
  step: "hour",
};
const SERIES: ChartSeries[] = [
  { id: "a", label: "gpt-4o", slot: 1, values: [6, 0, 2, 10] },
  { id: "b", label: "claude", slot: 2, values: [0, 0, 5, 30] },
];

/** Heights of the bars of a path, by bar. */
function topsOf(path: string, height: number): Map<number, number> {
  return new Map(
    [...path.matchAll(/M(\d+) \d+V(\d+)/g)].map(([, x, y]) => [
      Math.floor(Number(x) / 10),
      height - Number(y),
    ]),
  );
}

describe("scales", () => {
  test("grid lines are round, start above zero and hold the highest value", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.001, max: 1e9, noNaN: true }), fc.boolean(), (most, isInteger) => {
        const { top, ticks } = scaleOf(most, 1, isInteger);
        expect(top).toBeGreaterThanOrEqual(most * (1 - 1e-9));
        expect(ticks.length).toBeGreaterThan(0);
        expect(ticks.length).toBeLessThan(6);
        expect(ticks.at(-1)).toBe(top);
        for (const tick of ticks) {
          if (isInteger) expect(Number.isInteger(tick)).toBe(true);
          // Three figures at most, whatever the size.
          expect(Math.abs(Number(tick.toPrecision(3)) / tick - 1)).toBeLessThan(1e-9);
        }
      }),
    );
  });

  test("money is cut at round dollars, calls never at half ones, nothing gets an empty grid", () => {
    expect(scaleOf(1_000_000, 500_000, false).ticks).toEqual([250_000, 500_000, 750_000, 1_000_000]);
    expect(scaleOf(1).ticks).toEqual([1]);
    expect(scaleOf(3).ticks).toEqual([1, 2, 3]);
    expect(scaleOf(9).ticks).toEqual([5, 10]);
    expect(scaleOf(0)).toEqual({ top: 4, ticks: [] });
  });

  test("stacked bars stand on each other, the highest fills the plot, a single call is seen beside a thousand", () => {
    const height = 200;
    const [first = "", second = ""] = stackPaths(SERIES, 4, height, 40);
    expect([...topsOf(first, height)]).toEqual([
      [0, 30],
      [2, 10],
      [3, 50],
    ]);
    // Each path holds the upper ends: the second series reaches from the first one's end to the sum.
    expect([...topsOf(second, height)]).toEqual([
      [2, 35],
      [3, 200],
    ]);
    const tiny = stackPaths([{ id: "t", label: "", slot: 1, values: [1, 100_000] }], 2, height, 100_000);
    expect(topsOf(tiny[0] ?? "", height).get(0)).toBe(1);
  });

  test("a line of nothing, or of one value, is no line", () => {
    expect(sparkPaths([0, 0, 0], 28)).toEqual({ line: "", area: "" });
    expect(sparkPaths([5], 28).line).toBe("");
    expect(sparkPaths([0, 10], 28).line).toBe("M0 27L1 1");
  });

  test("shares never say none or all when it is not so", () => {
    expect([
      shareText(0, 10),
      shareText(1, 1000),
      shareText(5, 10),
      shareText(999, 1000),
      shareText(3, 3),
    ]).toEqual(["0%", "<1%", "50%", ">99%", "100%"]);
    expect(shareText(0, 0)).toBe("");
  });
});

describe("colours", () => {
  test("slots go by rank at first, and stay with whoever had them when the ranks change", () => {
    const memory = new Map<string, number>();
    expect([...assignSlots(["a", "b", "c"], memory)]).toEqual([
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ]);
    const later = assignSlots(["d", "c", "a"], memory);
    expect([later.get("c"), later.get("a"), later.get("d")]).toEqual([3, 1, 2]);
  });

  test("no two of a chart share a slot, whatever was shown before", () => {
    const ids = fc.uniqueArray(fc.integer({ min: 1, max: 16 }).map(String), { maxLength: 12 });
    fc.assert(
      fc.property(fc.array(ids, { maxLength: 6 }), (charts) => {
        const memory = new Map<string, number>();
        for (const chart of charts) {
          const slots = [...assignSlots(chart, memory).values()];
          expect(slots.length).toBe(Math.min(chart.length, SLOTS));
          expect(new Set(slots).size).toBe(slots.length);
          expect(slots.every((slot) => slot >= 1 && slot <= SLOTS)).toBe(true);
        }
      }),
    );
  });
});

describe("labels of time", () => {
  test("hours are labelled at round hours of the local clock, midnight with its date", () => {
    const day: TimeAxis = {
      at: Array.from({ length: 24 }, (_, index) => START + index * HOUR),
      to: START + 24 * HOUR,
      step: "hour",
    };
    expect(axisLabels(day, "UTC").map(({ text }) => text)).toEqual([
      "11-20",
      "03:00",
      "06:00",
      "09:00",
      "12:00",
      "15:00",
      "18:00",
      "21:00",
    ]);
    expect(axisLabels(day, "Asia/Shanghai").map(({ bar }) => bar)[0]).toBe(0);
  });

  test("many days keep few labels, the newest among them", () => {
    const at = Array.from({ length: 30 }, (_, index) => START + index * 24 * HOUR);
    const labels = axisLabels({ at, to: START + 30 * 24 * HOUR, step: "day" }, "UTC");
    expect(labels.length).toBeLessThan(9);
    expect(labels.at(-1)?.bar).toBe(29);
  });

  test("stretches are told from their start to their end", () => {
    expect(spanText(AXIS, 0, 0, "UTC")).toBe("11-19 22:00 – 23:00");
    expect(spanText(AXIS, 0, 3, "UTC")).toBe("11-19 22:00 – 11-20 02:00");
    const week: TimeAxis = { at: [START], to: START + 7 * 24 * HOUR, step: "week" };
    expect(spanText(week, 0, 0, "UTC")).toBe("11-19 – 11-26");
  });
});

function Chart({ onOpen, onZoom }: { onOpen?: (span: Span) => void; onZoom?: (span: Span) => void }) {
  const cursor = useChartCursor({
    size: AXIS.at.length,
    onOpen: onOpen ?? (() => {}),
    onZoom: onZoom ?? (() => {}),
  });
  return (
    <BarChart
      label="Requests over time"
      caption="53 requests"
      summary="53 requests in all"
      axis={AXIS}
      series={SERIES}
      cursor={cursor}
      height={120}
      format={formatNumber}
      empty="Nothing here"
    />
  );
}

describe("bars over time", () => {
  const slider = () => screen.getByRole("slider", { name: /^Requests over time/ });
  const spoken = () => slider().getAttribute("aria-valuetext");

  test("without a cursor the summary is spoken; arrows, Home and End move from bar to bar and speak", async () => {
    const { user } = renderPart(<Chart />);
    expect(spoken()).toBe("53 requests in all");
    await user.tab();
    expect(document.activeElement).toBe(slider());
    await user.keyboard("{ArrowLeft}");
    expect(spoken()).toBe("11-20 01:00 – 02:00: 40, claude 30, gpt-4o 10");
    await user.keyboard("{ArrowLeft}{ArrowLeft}");
    expect(spoken()).toBe("11-19 23:00 – 00:00: 0");
    await user.keyboard("{Home}{ArrowLeft}");
    expect([spoken(), slider().getAttribute("aria-valuenow")]).toEqual([
      "11-19 22:00 – 23:00: 6, gpt-4o 6",
      "1",
    ]);
    await user.keyboard("{End}{ArrowRight}");
    expect(slider().getAttribute("aria-valuenow")).toBe("4");
    await user.keyboard("{Escape}");
    expect(spoken()).toBe("53 requests in all");
  });

  test("Enter opens a bar; Shift with arrows chooses a stretch, which Enter zooms into", async () => {
    const onOpen = jest.fn();
    const onZoom = jest.fn();
    const { user } = renderPart(<Chart onOpen={onOpen} onZoom={onZoom} />);
    await user.tab();
    await user.keyboard("{Enter}");
    expect(onOpen).not.toHaveBeenCalled();
    await user.keyboard("{End}{Enter}");
    expect(onOpen).toHaveBeenCalledWith({ first: 3, last: 3 });
    await user.keyboard("{Shift>}{ArrowLeft}{/Shift}");
    expect(spoken()).toBe("11-20 00:00 – 02:00: 47, claude 35, gpt-4o 12");
    await user.keyboard("{Enter}");
    expect(onZoom).toHaveBeenCalledWith({ first: 2, last: 3 });
    expect(onOpen).toHaveBeenCalledTimes(1);
  });

  test("the pointer shows a bar's values by size, a drag chooses a stretch, a click pins", () => {
    const onZoom = jest.fn();
    renderPart(<Chart onZoom={onZoom} />);
    const plot = slider();
    plot.getBoundingClientRect = () => ({ left: 100, width: 400, top: 0, height: 120 }) as DOMRect;
    fireEvent.pointerEnter(plot);
    fireEvent.pointerMove(plot, { clientX: 450 });
    const tip = plot.querySelector(".chart-tip") as HTMLElement;
    expect([...tip.querySelectorAll("p")].map((each) => each.textContent)).toEqual([
      "11-20 01:00 – 02:0040",
      "claude30",
      "gpt-4o10",
    ]);
    fireEvent.pointerDown(plot, { button: 0, clientX: 110, pointerId: 1 });
    fireEvent.pointerMove(plot, { clientX: 250, pointerId: 1 });
    fireEvent.pointerUp(plot, { clientX: 250, pointerId: 1 });
    expect(onZoom).toHaveBeenCalledWith({ first: 0, last: 1 });
    fireEvent.pointerDown(plot, { button: 0, clientX: 310, pointerId: 1 });
    fireEvent.pointerUp(plot, { clientX: 310, pointerId: 1 });
    fireEvent.pointerLeave(plot);
    expect(onZoom).toHaveBeenCalledTimes(1);
    expect(spoken()).toBe("11-20 00:00 – 01:00: 7, claude 5, gpt-4o 2");
  });

  test("the same numbers stand in a table with heads, made when it is opened", async () => {
    const { user } = renderPart(<Chart />);
    expect(screen.queryByRole("table")).toBeNull();
    await user.click(screen.getByText("Show as table"));
    const table = await screen.findByRole("table");
    expect(
      within(table)
        .getAllByRole("columnheader")
        .map((each) => each.textContent),
    ).toEqual(["Time", "Total", "gpt-4o", "claude"]);
    const rows = within(table).getAllByRole("row").slice(1);
    expect(rows.map((row) => [...row.children].map((cell) => cell.textContent))).toEqual([
      ["11-19 22:00 – 23:00", "6", "6", "–"],
      ["11-20 00:00 – 01:00", "7", "2", "5"],
      ["11-20 01:00 – 02:00", "40", "10", "30"],
    ]);
  });

  test("the server draws it whole: bars, grid and labels need no script and no measuring", () => {
    const html = renderToString(<Chart />);
    expect(html).toContain('data-slot="1" d="M5 120V102M25 120V114M35 120V90"');
    expect(html).toContain("--plot:120px");
    expect(html).toContain(">11-20<");
    expect(html).not.toContain("<table");
  });

  test("nothing to draw keeps the height and says so", () => {
    function Empty() {
      const cursor = useChartCursor({ size: 4, onOpen: () => {}, onZoom: () => {} });
      return (
        <BarChart
          label="Requests over time"
          caption="none"
          summary="none"
          axis={AXIS}
          series={[]}
          cursor={cursor}
          height={120}
          format={formatNumber}
          empty="Nothing here"
        />
      );
    }
    renderPart(<Empty />);
    expect(screen.getByText("Nothing here")).toBeTruthy();
    expect(slider().closest(".chart-body")?.getAttribute("style")).toContain("--plot: 120px");
  });
});

describe("ranked list", () => {
  const entries = [
    { id: "a", label: "gpt-4o", slot: 1, value: 75, isHidden: false, href: "/log?model_name=gpt-4o" },
    { id: "b", label: "claude", slot: 2, value: 25, isHidden: true },
  ];

  test("says name, value and share, switches by click and key, isolates with Alt, and leads to the log", async () => {
    const onToggle = jest.fn();
    const { user } = renderPart(
      <RankList label="Models by share" entries={entries} format={formatNumber} onToggle={onToggle} />,
    );
    const list = screen.getByRole("list", { name: "Models by share" });
    const buttons = within(list).getAllByRole("button");
    expect(buttons.map((each) => [each.textContent, each.getAttribute("aria-pressed")])).toEqual([
      ["gpt-4o7575%", "true"],
      ["claude2525%", "false"],
    ]);
    const link = within(list).getByRole("link", { name: "Usage log of gpt-4o" });
    expect(link.getAttribute("href")).toBe("/log?model_name=gpt-4o");
    await user.tab();
    await user.keyboard("{Enter}");
    fireEvent.click(buttons[1] as HTMLElement, { altKey: true });
    expect(onToggle.mock.calls).toEqual([
      ["a", false],
      ["b", true],
    ]);
  });
});

test("a sparkline is decoration: the number beside it speaks", () => {
  const { container } = renderPart(<Sparkline values={[1, 5, 2]} />);
  expect(container.querySelector("svg")?.getAttribute("aria-hidden")).toBe("true");
  expect(container.querySelector(".spark-line")?.getAttribute("d")).toBe("M0 22L1 1L2 17");
});
