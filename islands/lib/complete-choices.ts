// The complete list of choices of which the page brought only the beginning.
// Refuses to stand in the way: until it is there, or when it cannot be had, the beginning stays.
import { useEffect, useState } from "react";
import { toastFailure } from "./toasts.ts";

/** Loads while `isCut`; anew for another `key`. Failures are shown once per key. */
export function useCompleteChoices<T>(
  part: T,
  isCut: boolean,
  load: () => Promise<T>,
  key = "",
): { all: T; isComplete: boolean } {
  const [loaded, setLoaded] = useState<{ key: string; value: T }>();
  useEffect(() => {
    if (!isCut) return undefined;
    let isGone = false;
    load().then(
      (value) => isGone || setLoaded({ key, value }),
      (error: unknown) => isGone || toastFailure(error, "choices"),
    );
    return () => {
      isGone = true;
    };
    // The caller's function is made anew with every render: what it asks for stands in the key.
  }, [isCut, key]);
  const isThere = loaded?.key === key;
  return { all: isThere ? loaded.value : part, isComplete: !isCut || isThere };
}
