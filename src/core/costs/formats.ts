// Providers' cost and usage exports as lines of one shape, in billionths of a dollar and tokens by UTC day.
// Refuses amounts in other currencies and lines without a day; what is wrong is told by its place, the rest is read.
import { readBlock } from "../../shared/tsv.ts";
import { refuse } from "../../shared/failures.ts";
import type { BillSource } from "../../shared/bill-sources.ts";
import {
  Bill,
  DAY_SECONDS,
  MAX_TEXT,
  countOf,
  dayOf,
  decimalNanos,
  list,
  momentOf,
  record,
  textOf,
} from "./bill-lines.ts";
import type { BillKind, BillLine, Json, ReadBill } from "./bill-lines.ts";
import { parsedSource } from "../prices/sources/read.ts";

/** Columns of a CSV by their heads; amount's unit as the wizard asks for it. */
export interface CsvColumns {
  date: string;
  model?: string | undefined;
  amount?: string | undefined;
  unit?: "usd" | "cent" | "quota" | undefined;
  input?: string | undefined;
  cached?: string | undefined;
  output?: string | undefined;
  requests?: string | undefined;
  request_id?: string | undefined;
}

export interface ReadOptions {
  columns?: CsvColumns | undefined;
  /** Units of a dollar at the other instance, or in the CSV. */
  quotaPerUnit: number;
  /** Unix seconds: days that are not over yet are refused where the source has whole days only. */
  now: number;
}

const NO_FIGURES = { requestId: "", requests: null, tokens: null, amountNanos: null } as const;

/** "gpt-4o-2024-08-06, cached input": the model, and what of it. */
function lineItem(text: string): { model: string; kind: BillKind } {
  const at = text.lastIndexOf(", ");
  if (at === -1) return { model: text, kind: "" };
  const kinds: Record<string, BillKind> = { input: "in", "cached input": "cache_read", output: "out" };
  const kind = kinds[text.slice(at + 2).toLowerCase()];
  return kind === undefined ? { model: text, kind: "" } : { model: text.slice(0, at), kind };
}

/** The days of a paged list; each result with its place. */
function* results(parsed: unknown): Generator<{ at: number; bucket: Json; result: Json }> {
  let at = 0;
  for (const each of list(record(parsed)["data"])) {
    const bucket = record(each);
    for (const result of list(bucket["results"])) yield { at: ++at, bucket, result: record(result) };
  }
}

/** GET /v1/organization/costs: buckets of a day, dollars by line item. */
function openaiCosts(parsed: unknown): ReadBill {
  const bill = new Bill();
  for (const { at, bucket, result } of results(parsed)) {
    const start = momentOf(bucket["start_time"]);
    const { value, currency } = record(result["amount"]);
    const amountNanos = decimalNanos(value);
    if (start === undefined) bill.refuse(at, "day");
    else if (typeof currency !== "string" || currency.toLowerCase() !== "usd") bill.refuse(at, "currency");
    else if (amountNanos === undefined) bill.refuse(at, "amount");
    else {
      const item = textOf(result["line_item"]);
      const project = textOf(result["project_id"]);
      const bucketName = `${start}|${project}|${item}`;
      bill.add({ ...NO_FIGURES, bucket: bucketName, day: dayOf(start), ...lineItem(item), amountNanos });
    }
  }
  return bill.read(record(parsed)["next_page"]);
}

/** Tokens of one result by kind; a count that is none refuses the result. */
function addTokens(
  bill: Bill,
  at: number,
  line: Pick<BillLine, "bucket" | "day" | "model">,
  counts: readonly [BillKind, unknown][],
): void {
  const read = counts.map(([kind, value]) => [kind, value === undefined ? 0 : countOf(value)] as const);
  if (read.some(([, count]) => count === undefined)) return bill.refuse(at, "tokens");
  for (const [kind, count = 0] of read) {
    if (kind !== "" && count === 0) continue;
    const figures = kind === "" ? { requests: count } : { tokens: count };
    bill.add({ ...NO_FIGURES, ...line, bucket: `${line.bucket}|${kind}`, kind, ...figures });
  }
}

/** GET /v1/organization/usage/completions: `input_tokens` has the cached ones in it, and audio. */
function openaiUsage(parsed: unknown): ReadBill {
  const bill = new Bill();
  for (const { at, bucket, result } of results(parsed)) {
    const start = momentOf(bucket["start_time"]);
    if (start === undefined) {
      bill.refuse(at, "day");
      continue;
    }
    const input = countOf(result["input_tokens"]);
    const output = countOf(result["output_tokens"]);
    const cached = countOf(result["input_cached_tokens"] ?? 0);
    const audioIn = countOf(result["input_audio_tokens"] ?? 0);
    const audioOut = countOf(result["output_audio_tokens"] ?? 0);
    if (
      input === undefined ||
      output === undefined ||
      cached === undefined ||
      audioIn === undefined ||
      audioOut === undefined
    ) {
      bill.refuse(at, "tokens");
      continue;
    }
    const model = textOf(result["model"]);
    const parts = [
      start,
      textOf(result["project_id"]),
      model,
      result["batch"] === true,
      textOf(result["service_tier"]),
    ];
    addTokens(bill, at, { bucket: parts.join("|"), day: dayOf(start), model }, [
      ["", result["num_model_requests"] ?? 0],
      ["in", Math.max(0, input - cached - audioIn)],
      ["cache_read", cached],
      ["audio_in", audioIn],
      ["out", Math.max(0, output - audioOut)],
      ["audio_out", audioOut],
    ]);
  }
  return bill.read(record(parsed)["next_page"]);
}

const ANTHROPIC_KINDS: Readonly<Record<string, BillKind>> = {
  uncached_input_tokens: "in",
  output_tokens: "out",
  cache_read_input_tokens: "cache_read",
  "cache_creation.ephemeral_5m_input_tokens": "cache_write",
  "cache_creation.ephemeral_1h_input_tokens": "cache_write_1h",
};

/** GET /v1/organizations/cost_report: amounts are decimals as text, in CENTS. */
function anthropicCost(parsed: unknown): ReadBill {
  const bill = new Bill();
  for (const { at, bucket, result } of results(parsed)) {
    const start = momentOf(bucket["starting_at"]);
    const amountNanos = decimalNanos(result["amount"], -2);
    const currency = textOf(result["currency"]);
    if (start === undefined) bill.refuse(at, "day");
    else if (currency.toUpperCase() !== "USD") bill.refuse(at, "currency");
    else if (amountNanos === undefined) bill.refuse(at, "amount");
    else {
      const names = [
        "workspace_id",
        "description",
        "cost_type",
        "model",
        "token_type",
        "context_window",
        "service_tier",
      ];
      bill.add({
        ...NO_FIGURES,
        bucket: [start, ...names.map((name) => textOf(result[name]))].join("|"),
        day: dayOf(start),
        model: textOf(result["model"]),
        kind: ANTHROPIC_KINDS[textOf(result["token_type"])] ?? "",
        amountNanos,
      });
    }
  }
  return bill.read(record(parsed)["next_page"]);
}

/** GET /v1/organizations/usage_report/messages: every kind of input by itself. */
function anthropicUsage(parsed: unknown): ReadBill {
  const bill = new Bill();
  for (const { at, bucket, result } of results(parsed)) {
    const start = momentOf(bucket["starting_at"]);
    if (start === undefined) {
      bill.refuse(at, "day");
      continue;
    }
    const written = record(result["cache_creation"]);
    const names = ["workspace_id", "api_key_id", "model", "service_tier", "context_window"];
    const model = textOf(result["model"]);
    addTokens(
      bill,
      at,
      { bucket: [start, ...names.map((name) => textOf(result[name]))].join("|"), day: dayOf(start), model },
      [
        ["in", result["uncached_input_tokens"]],
        ["cache_read", result["cache_read_input_tokens"]],
        ["cache_write", written["ephemeral_5m_input_tokens"]],
        ["cache_write_1h", written["ephemeral_1h_input_tokens"]],
        ["out", result["output_tokens"]],
      ],
    );
  }
  return bill.read(record(parsed)["next_page"]);
}

/** GET /api/v1/activity: complete UTC days, dollars by model and provider. */
function openrouter(parsed: unknown, { now }: ReadOptions): ReadBill {
  const bill = new Bill();
  list(record(parsed)["data"]).forEach((each, index) => {
    const row = record(each);
    const at = index + 1;
    const moment = momentOf(row["date"]);
    const amountNanos = decimalNanos(row["usage"]);
    if (moment === undefined) return bill.refuse(at, "day");
    if (dayOf(moment) + DAY_SECONDS > now) return bill.refuse(at, "unfinished");
    if (amountNanos === undefined) return bill.refuse(at, "amount");
    const day = dayOf(moment);
    const model = textOf(row["model"]);
    const key = [day, model, textOf(row["provider_name"]), textOf(row["endpoint_id"])].join("|");
    const requests = countOf(row["requests"]);
    const [input, output] = [countOf(row["prompt_tokens"]), countOf(row["completion_tokens"])];
    if (requests === undefined || input === undefined || output === undefined)
      return bill.refuse(at, "tokens");
    bill.add({ ...NO_FIGURES, bucket: `${key}|`, day, model, kind: "", requests, amountNanos });
    bill.add({ ...NO_FIGURES, bucket: `${key}|in`, day, model, kind: "in", tokens: input });
    bill.add({ ...NO_FIGURES, bucket: `${key}|out`, day, model, kind: "out", tokens: output });
  });
  return bill.read();
}

/** One call of a log as lines: its amount, and its tokens by kind. */
function addCall(
  bill: Bill,
  call: { id: string; day: number; model: string; requestId: string },
  figures: { requests: number | null; amountNanos: number | null; tokens: readonly [BillKind, number][] },
): void {
  const { id, ...line } = call;
  bill.addRow(
    { ...NO_FIGURES, ...line, kind: "", requests: figures.requests, amountNanos: figures.amountNanos },
    id,
  );
  for (const [kind, tokens] of figures.tokens) bill.addRow({ ...NO_FIGURES, ...line, kind, tokens }, id);
}

/** Names a row by what it says, where it has no id. */
function rowName(parts: readonly unknown[]): string {
  return `row:${new Bun.CryptoHasher("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)}`;
}

/** The log of another instance: /api/log/self of the family, a list of rows or its pages. Only charges count. */
function instanceLog(parsed: unknown, { quotaPerUnit }: ReadOptions): ReadBill {
  const bill = new Bill();
  const data = record(parsed)["data"];
  const items = Array.isArray(parsed)
    ? (parsed as unknown[])
    : Array.isArray(data)
      ? (data as unknown[])
      : list(record(data)["items"]);
  items.forEach((each, index) => {
    const row = record(each);
    const at = index + 1;
    if (row["type"] !== undefined && row["type"] !== 2) return;
    const moment = momentOf(row["created_at"]);
    if (moment === undefined) return bill.refuse(at, "day");
    const quota = row["quota"];
    if (typeof quota !== "number" || !Number.isSafeInteger(quota) || quota < 0)
      return bill.refuse(at, "amount");
    const amountNanos = Math.round((quota / quotaPerUnit) * 1e9);
    const [input, output] = [countOf(row["prompt_tokens"] ?? 0), countOf(row["completion_tokens"] ?? 0)];
    if (input === undefined || output === undefined) return bill.refuse(at, "tokens");
    const model = textOf(row["model_name"]);
    const requestId = textOf(row["request_id"]);
    const id = requestId === "" ? rowName([moment, model, quota, input, output]) : requestId;
    addCall(
      bill,
      { id, day: dayOf(moment), model, requestId },
      {
        requests: 1,
        amountNanos,
        tokens: [
          ["in", input],
          ["out", output],
        ],
      },
    );
  });
  return bill.read();
}

const plain = (cell: string | undefined): string => (cell ?? "").replace(/^'(?=[=+\-@\t\r])/, "").trim();

/** Spreadsheets of some countries have semicolons. */
function separatorOf(text: string): "\t" | "," | ";" {
  const [head = ""] = text.split(/\r?\n/, 1);
  const counts = ([",", ";", "\t"] as const).map((sign) => [head.split(sign).length, sign] as const);
  return counts.reduce((best, each) => (each[0] > best[0] ? each : best))[1];
}

export function csvBlock(text: string): string[][] {
  const whole = text.replace(/^\uFEFF/, "");
  return readBlock(whole, separatorOf(whole));
}

/** An amount as people and spreadsheets write it: "$1,234.50". */
function typedAmount(text: string, { unit = "usd" }: CsvColumns, quotaPerUnit: number): number | undefined {
  const bare = text.replace(/^([+-]?)\s*(?:US)?\$\s*/i, "$1").replaceAll(/,(?=\d{3}(?:\D|$))/g, "");
  if (unit !== "quota") return decimalNanos(bare, unit === "cent" ? -2 : 0);
  return /^\d+$/.test(bare) ? Math.round((Number(bare) / quotaPerUnit) * 1e9) : undefined;
}

/** Any CSV, by the columns that somebody named. Throws bill_column. */
function csv(text: string, { columns, quotaPerUnit }: ReadOptions): ReadBill {
  const bill = new Bill();
  const [heads = [], ...rows] = csvBlock(text);
  const names = heads.map((head) => plain(head));
  const place = (name: string | undefined): number => {
    if (name === undefined || name === "") return -1;
    const at = names.indexOf(name);
    if (at === -1) throw refuse("bill_column", { column: name.slice(0, 60) });
    return at;
  };
  if (!columns || (columns.amount ?? "") + (columns.input ?? "") + (columns.output ?? "") === "")
    throw refuse("bill_columns");
  const at = {
    date: place(columns.date),
    model: place(columns.model),
    amount: place(columns.amount),
    input: place(columns.input),
    cached: place(columns.cached),
    output: place(columns.output),
    requests: place(columns.requests),
    requestId: place(columns.request_id),
  };
  rows.forEach((cells, index) => {
    const line = index + 2;
    if (cells.every((cell) => cell.trim() === "")) return;
    const cell = (column: number): string => (column === -1 ? "" : plain(cells[column]));
    const moment = momentOf(cell(at.date));
    if (moment === undefined) return bill.refuse(line, "day");
    const amountNanos = at.amount === -1 ? null : typedAmount(cell(at.amount), columns, quotaPerUnit);
    if (amountNanos === undefined) return bill.refuse(line, "amount");
    const count = (column: number) => (cell(column) === "" ? 0 : countOf(cell(column)));
    const [input, cached, output, requests] = [
      count(at.input),
      count(at.cached),
      count(at.output),
      count(at.requests),
    ];
    if (
      input === undefined ||
      cached === undefined ||
      output === undefined ||
      requests === undefined ||
      cached > input
    )
      return bill.refuse(line, "tokens");
    const requestId = cell(at.requestId).slice(0, MAX_TEXT);
    const model = cell(at.model).slice(0, MAX_TEXT);
    const tokens: [BillKind, number][] = [];
    if (at.input !== -1) tokens.push(["in", input - cached]);
    if (at.cached !== -1) tokens.push(["cache_read", cached]);
    if (at.output !== -1) tokens.push(["out", output]);
    const id =
      requestId === "" ? rowName([moment, model, amountNanos, input, cached, output, requests]) : requestId;
    addCall(
      bill,
      { id, day: dayOf(moment), model, requestId },
      {
        requests: at.requests === -1 ? null : requests,
        amountNanos,
        tokens,
      },
    );
  });
  return bill.read();
}

/**
 * The lines of an export. Throws price_source_broken, _empty and _too_dense where the text is none of its form, bill_form
 * where it is another form, bill_lines_many, bill_columns and bill_column.
 */
export function readBill(source: BillSource, text: string, options: ReadOptions): ReadBill {
  if (source === "csv") {
    if (text.trim() === "") throw refuse("price_source_empty");
    return csv(text, options);
  }
  const parsed = parsedSource(text.replace(/^\uFEFF/, ""));
  const whole = record(parsed);
  if (
    !Array.isArray(parsed) &&
    !Array.isArray(whole["data"]) &&
    !Array.isArray(record(whole["data"])["items"])
  )
    throw refuse("bill_form", { source });
  const read = {
    "openai-costs": openaiCosts,
    "openai-usage": openaiUsage,
    "anthropic-cost": anthropicCost,
    "anthropic-usage": anthropicUsage,
    openrouter,
    instance: instanceLog,
  }[source](parsed, options);
  return read;
}
