// A formula: as its source until the typesetter is there, or where it cannot be set.
import { useMemo } from "react";
import type { FormulaToken } from "./markdown-blocks.ts";
import { useLoaded } from "./use-loaded.ts";

export function Formula({ token: { raw, text, isBlock } }: { token: FormulaToken }) {
  const typesetter = useLoaded(true, () => import("./typeset.ts"));
  const set = useMemo(() => typesetter?.typeset(text, isBlock), [typesetter, text, isBlock]);
  if (isBlock) {
    return (
      <div className="max-w-full overflow-x-auto py-1 text-center" tabIndex={0}>
        {set ?? <code>{raw.trim()}</code>}
      </div>
    );
  }
  return set ?? <code>{raw}</code>;
}
