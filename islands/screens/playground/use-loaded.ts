// Something that is fetched when it is first needed, for the parts of an answer that few answers have.
import { useEffect, useState } from "react";

/** Undefined until it is there; stays so when it cannot be had: what it would draw is shown without it. */
export function useLoaded<T>(isNeeded: boolean, load: () => Promise<T>): T | undefined {
  const [loaded, setLoaded] = useState<{ value: T }>();
  useEffect(() => {
    if (!isNeeded || loaded) return undefined;
    let isGone = false;
    load().then(
      (value) => isGone || setLoaded({ value }),
      () => undefined,
    );
    return () => {
      isGone = true;
    };
  }, [isNeeded]);
  return loaded?.value;
}
