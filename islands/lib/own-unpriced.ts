// The reader's own models that are refused because they have no price.
// Refuses to warn of what it does not know: until the answer is there, none is.
import { useCallback, useEffect, useState } from "react";
import { api, call } from "./api.ts";

export interface OwnUnpriced {
  unpriced: ReadonlySet<string>;
  refresh: () => Promise<void>;
}

export function useOwnUnpriced(): OwnUnpriced {
  const [unpriced, setUnpriced] = useState<ReadonlySet<string>>(new Set());
  const refresh = useCallback(async () => {
    try {
      setUnpriced(new Set(await call(api.user.models.unpriced.get())));
    } catch {
      // A warning that cannot be given stands in nobody's way.
    }
  }, []);
  useEffect(() => void refresh(), [refresh]);
  return { unpriced, refresh };
}
