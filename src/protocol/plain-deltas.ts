// Deltas that are the last one again but for their text, of dialects whose events are named: which they are is learnt from one
// that was read.
// Refuses to learn without trying: another text in its place has to come out where the text does.
import type { MeterState, StreamMeter, WireFrame } from "./dialect.ts";
import { asObject, parseJson } from "./json.ts";
import { plainShapeOf, plainTextLength } from "./plain-frames.ts";
import type { Hole, PlainShape } from "./plain-frames.ts";

/** Each block of an answer has a shape of its own; an upstream whose deltas have no common one is read. */
const MAX_SHAPES = 64;

export interface PlainDeltas {
  skim: NonNullable<StreamMeter["skim"]>;
  /** A delta was read that had this text: the next may be its like. */
  learn: (frame: WireFrame, text: unknown) => void;
}

/** A field beside the text that differs from delta to delta. */
interface VaryingField {
  name: string;
  hole: Exclude<Hole, "text">;
}

export interface DeltaForm {
  /** The text of a delta's data. */
  textOf: (wire: Record<string, unknown>) => unknown;
  varying?: readonly VaryingField[];
}

/** What stands at these places of the data may differ; `probe`: another value that is as good. */
interface Gap {
  hole: Hole;
  from: number;
  to: number;
  probe: string;
  read: (wire: Record<string, unknown>) => unknown;
}

export function createPlainDeltas(state: MeterState, form: DeltaForm): PlainDeltas {
  let shape: PlainShape | null = null;
  let left = MAX_SHAPES;
  return {
    skim(bytes, mostUnits) {
      if (!shape || state.ended || state.failure !== null) return -1;
      const length = plainTextLength(shape, bytes);
      if (length <= 0 || length > mostUnits) return -1;
      state.sawText = true;
      state.textChars += length;
      return Math.max(0, shape.textBytes - length);
    },
    learn({ data, bytes }, text) {
      if (left === 0 || bytes === undefined || typeof text !== "string") return;
      // Where the shape is known, this was a text that had to be read.
      if (shape && plainTextLength({ ...shape, escapes: "written" }, bytes) !== -1) return;
      const at = data.lastIndexOf(`"${text}"`);
      // It has escapes: a plainer one will come.
      if (text === "" || at === -1) return;
      left--;
      shape = shapeOf(data, bytes, gapsOf(data, form, { from: at + 1, to: at + 1 + text.length })) ?? shape;
    },
  };
}

/** The places of the text and of the fields that vary, in their order. */
function gapsOf(
  data: string,
  { textOf, varying = [] }: DeltaForm,
  text: Record<"from" | "to", number>,
): Gap[] {
  const probe = `${data.slice(text.from, text.to)}?`;
  const gaps: Gap[] = [{ hole: "text", ...text, probe, read: textOf }];
  for (const { name, hole } of varying) {
    const quote = hole === "filler" ? '"' : "";
    const head = `"${name}":${quote}`;
    const at = data.lastIndexOf(head);
    if (at === -1) continue;
    const from = at + head.length;
    const value = (hole === "filler" ? /^[^"\\]*/ : /^\d*/).exec(data.slice(from))?.[0] ?? "";
    gaps.push({
      hole,
      from,
      to: from + value.length,
      probe: hole === "filler" ? `${value}?` : `1${value}`,
      read: (wire) => (hole === "filler" ? wire[name] : String(wire[name])),
    });
  }
  return gaps.sort((a, b) => a.from - b.from);
}

/** The shape of a delta with these gaps in its data, as the event's bytes have it; null where it is not sure. */
function shapeOf(data: string, bytes: Uint8Array, gaps: readonly Gap[]): PlainShape | null {
  if (!data.startsWith("{") || !data.endsWith("}")) return null;
  const fixed: string[] = [];
  let from = 0;
  for (const gap of gaps) {
    if (gap.from < from) return null;
    fixed.push(data.slice(from, gap.from));
    from = gap.to;
  }
  const rest = data.slice(from);
  // Other values in their places have to be these fields': the same words may stand elsewhere.
  const probe = fixed.map((part, at) => part + (gaps[at] as Gap).probe).join("") + rest;
  const wire = asObject(parseJson(probe));
  if (!wire || !gaps.every((gap) => gap.read(wire) === gap.probe)) return null;
  const event = Buffer.from(bytes).toString("utf8");
  const begin = event.indexOf(data);
  if (begin === -1) return null;
  return plainShapeOf(bytes, {
    fixed: [
      event.slice(0, begin) + (fixed[0] as string),
      ...fixed.slice(1),
      rest + event.slice(begin + data.length),
    ],
    holes: gaps.map(({ hole }) => hole),
    escapes: "read",
  });
}
