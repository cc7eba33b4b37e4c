// The checklist's state: from the page, then asked again while somebody looks at it, so that it ticks itself.
// Refuses to ask from a hidden tab, and once everything is done.
import { useCallback, useEffect, useState } from "react";
import { api, call } from "../../lib/api.ts";
import type { FirstSteps } from "./data.ts";

const EVERY_MS = 4000;

export function useFirstSteps(given: FirstSteps): { steps: FirstSteps; refresh: () => Promise<void> } {
  const [steps, setSteps] = useState(given);
  const refresh = useCallback(async () => {
    try {
      setSteps(await call(api.data.self.first_steps.get()));
    } catch {
      // The list stays as it was; the next look asks again.
    }
  }, []);
  const isOver = steps.call;
  useEffect(() => {
    if (isOver) return undefined;
    const look = () => void (document.hidden ? undefined : refresh());
    const timer = setInterval(look, EVERY_MS);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, [isOver, refresh]);
  return { steps, refresh };
}
