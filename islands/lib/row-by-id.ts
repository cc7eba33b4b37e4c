// The row that the address names (`?edit=42`): out of the list, or fetched when it stands on another page.
// Refuses to leave an address that opens nothing: a row that cannot be had is said and taken out of the address.
import { useEffect, useRef, useState } from "react";
import { toastFailure } from "./toasts.ts";

/** `load` fetches one row; `onMissing` empties the address. Undefined while nothing is asked for, and until it is here. */
export function useRowById<Row extends { id: number }>(
  id: string | undefined,
  rows: readonly Row[],
  load: (id: number) => Promise<Row>,
  onMissing: () => void,
): Row | undefined {
  const [fetched, setFetched] = useState<Row>();
  const latest = useRef({ load, onMissing });
  latest.current = { load, onMissing };
  const wanted = id !== undefined && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
  const listed = rows.find((row) => row.id === wanted);
  const isAbsent = wanted !== undefined && listed === undefined;
  useEffect(() => {
    if (!isAbsent || wanted === undefined) return undefined;
    let isCurrent = true;
    latest.current.load(wanted).then(
      (row) => {
        if (isCurrent) setFetched(row);
      },
      (error: unknown) => {
        if (!isCurrent) return;
        toastFailure(error);
        latest.current.onMissing();
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [isAbsent, wanted]);
  return listed ?? (fetched?.id === wanted ? fetched : undefined);
}
