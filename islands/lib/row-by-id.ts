// The row that the address names (`?edit=42`): out of the list, or fetched when it stands on another page.
// Refuses to leave an address that opens nothing: a row that cannot be had is reported and taken out of the address.
import { useEffect, useRef, useState } from "react";
import { toastFailure } from "./toasts.ts";

export interface RowByIdOptions<Row> {
  /** As the address has it; undefined: none is named. */
  id: string | undefined;
  rows: readonly Row[];
  /** Whether the rows are those of the address; until then nothing is fetched. */
  isReady?: boolean;
  load: (id: number) => Promise<Row>;
  /** Empties the address. */
  onMissing: () => void;
  /** Says why; the failure's own text where absent. */
  onFailure?: (error: unknown) => void;
}

/** Undefined while no row is named, and until it is here. */
export function useRowById<Row extends { id: number }>(options: RowByIdOptions<Row>): Row | undefined {
  const { id, rows, isReady = true } = options;
  const [, setFetched] = useState<Row>();
  const latest = useRef(options);
  latest.current = options;
  const wanted = id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
  const listed = rows.find((row) => row.id === wanted);
  /** What was shown last stays while the row is fetched: an action may have moved it out of the filter. */
  const last = useRef<Row>(undefined);
  if (listed) last.current = listed;
  const isAbsent = isReady && wanted !== undefined && listed === undefined;
  useEffect(() => {
    if (!isAbsent || wanted === undefined) return undefined;
    let isCurrent = true;
    latest.current.load(wanted).then(
      (row) => {
        if (!isCurrent) return;
        last.current = row;
        setFetched(row);
      },
      (error: unknown) => {
        if (!isCurrent) return;
        (latest.current.onFailure ?? toastFailure)(error);
        latest.current.onMissing();
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [isAbsent, wanted]);
  if (wanted === undefined) last.current = undefined;
  return last.current?.id === wanted ? last.current : undefined;
}
