// A choice of few as buttons side by side, one of them pressed.
export interface SegmentsProps<Value extends string | number> {
  /** What is chosen. */
  label: string;
  of: readonly Value[];
  chosen: Value;
  textOf: (value: Value) => string;
  onChoose: (value: Value) => void;
}

export function Segments<Value extends string | number>(props: SegmentsProps<Value>) {
  const { label, of, chosen, textOf, onChoose } = props;
  return (
    <div className="join" role="group" aria-label={label}>
      {of.map((each) => (
        <button
          key={each}
          type="button"
          className="btn btn-sm btn-default join-item"
          aria-pressed={each === chosen}
          onClick={() => onChoose(each)}
        >
          {textOf(each)}
        </button>
      ))}
    </div>
  );
}
