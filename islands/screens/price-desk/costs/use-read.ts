// Reads what a part shows, and again when something was written; keeps what is shown meanwhile.
import { useEffect, useState } from "react";
import { failureMessage } from "../../../lib/api.ts";

export function useRead<T>(read: () => Promise<T>, key: unknown) {
  const [found, setFound] = useState<T>();
  const [failure, setFailure] = useState<string>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isGone = false;
    read().then(
      (value) => {
        if (isGone) return;
        setFound(value);
        setFailure(undefined);
      },
      (error: unknown) => isGone || setFailure(failureMessage(error)),
    );
    return () => {
      isGone = true;
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [key, round]);
  return { found, failure, again: async () => setRound((value) => value + 1) };
}
