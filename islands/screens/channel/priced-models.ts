// Which models have a price, as the channel editor and the test drawer say it beforehand.
// Refuses to warn of what it does not know: until the list is there, and where calls are not refused, nothing is unpriced.
import { useCallback, useEffect, useState } from "react";
import { priceName } from "../../../src/shared/price-name.ts";
import { api, call } from "../../lib/api.ts";

export interface PricedModels {
  unpricedOf: (models: readonly string[]) => string[];
  /** Who may set prices, where the reader may not. */
  ask: string;
  refresh: () => Promise<void>;
}

interface Known {
  names: ReadonlySet<string>;
  ask: string;
}

export function usePricedModels(): PricedModels {
  const [known, setKnown] = useState<Known>();
  const refresh = useCallback(async () => {
    try {
      const { isRefusing, names, ask } = await call(api.channel.models_priced.get());
      setKnown(isRefusing ? { names: new Set(names), ask } : undefined);
    } catch {
      // The editor works without; only the warning is not given.
    }
  }, []);
  useEffect(() => void refresh(), [refresh]);
  return {
    unpricedOf: (models) => (known ? models.filter((name) => !known.names.has(priceName(name))) : []),
    ask: known?.ask ?? "",
    refresh,
  };
}
