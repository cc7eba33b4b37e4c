// Seconds until something may be asked for again, counted down once a second.
import { useEffect, useState } from "react";

export interface LockTime {
  /** 0: it may. */
  seconds: number;
  start: (seconds: number) => void;
}

export function useLockTime(): LockTime {
  const [seconds, setSeconds] = useState(0);
  const isRunning = seconds > 0;
  useEffect(() => {
    if (!isRunning) return undefined;
    const timer = setInterval(() => setSeconds((left) => Math.max(0, left - 1)), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return { seconds, start: setSeconds };
}
