// The parent gathers what its workers count: one that is silent is left out, what ended ones counted is kept.
import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { FromWorker, ToWorker } from "../../src/cluster/control.ts";
import { createGathering } from "../../src/cluster/figures.ts";
import type { MetricSnapshot } from "../../src/observe/metrics.ts";
import { mergedText } from "../../src/observe/metrics.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const counter = (value: number): MetricSnapshot => ({
  name: "weir_requests_total",
  help: "x",
  type: "counter",
  aggregator: "sum",
  values: [{ value, labels: { endpoint: "chat" } }],
});
const gauge = (value: number): MetricSnapshot => ({
  ...counter(value),
  name: "weir_inflight",
  type: "gauge",
  values: [{ value, labels: {} }],
});

function parent(running: number[]) {
  const sent: [number, ToWorker][] = [];
  const gathering = createGathering({
    running: () => running,
    send: (index, message) => running.includes(index) && sent.push([index, message]) > 0,
  });
  const gathered = () =>
    sent.flatMap(([, message]) => (message.kind === "gathered" ? [message.snapshots] : []));
  const asked = () => sent.flatMap(([, message]) => (message.kind === "figures" ? [message.id] : []));
  return { gathering, sent, gathered, asked };
}

const figures = (id: number, ...snapshot: MetricSnapshot[]): FromWorker => ({
  kind: "figures",
  id,
  snapshot,
});

test("the one that asks gets the figures of all", async () => {
  const { gathering, sent, asked, gathered } = parent([0, 1]);
  gathering.heard(1, { kind: "gather", id: 7 });
  const [id = 0] = asked();
  gathering.heard(0, figures(id, counter(3)));
  expect(gathered()).toEqual([]);
  gathering.heard(1, figures(id, counter(4)));
  expect(sent.at(-1)).toEqual([1, { kind: "gathered", id: 7, snapshots: [[counter(3)], [counter(4)]] }]);
  expect(await mergedText(gathered()[0] ?? [])).toContain('weir_requests_total{endpoint="chat"} 7');
});

test("a worker that does not answer is left out, and nobody waits longer than two seconds", () => {
  const { gathering, asked, gathered } = parent([0, 1]);
  gathering.heard(0, { kind: "gather", id: 1 });
  gathering.heard(0, figures(asked()[0] ?? 0, counter(3)));
  jest.advanceTimersByTime(1999);
  expect(gathered()).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(gathered()).toEqual([[[counter(3)]]]);
});

test("what ended workers counted is kept, what they held is not", () => {
  const running = [0, 1];
  const { gathering, asked, gathered } = parent(running);
  const round = (first: MetricSnapshot[], second: MetricSnapshot[]) => {
    gathering.heard(1, { kind: "gather", id: 1 });
    const id = asked().at(-1) ?? 0;
    if (running.includes(0)) gathering.heard(0, figures(id, ...first));
    gathering.heard(1, figures(id, ...second));
    return gathered().at(-1);
  };
  round([counter(3), gauge(9)], [counter(4), gauge(1)]);
  gathering.ended(0);
  // Its successor begins anew, and ends as well.
  round([counter(2), gauge(5)], [counter(4), gauge(1)]);
  gathering.ended(0);
  running.shift();
  expect(round([], [counter(4), gauge(1)])).toEqual([[counter(4), gauge(1)], [counter(5)]]);
});

test("one that ends while it is asked holds nobody up", () => {
  const { gathering, asked, gathered } = parent([0, 1]);
  gathering.heard(1, { kind: "gather", id: 1 });
  gathering.heard(1, figures(asked()[0] ?? 0, counter(4)));
  gathering.ended(0);
  expect(gathered()).toEqual([[[counter(4)]]]);
});
