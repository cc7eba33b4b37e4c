// A label above its input, where a form inside the editor's form has values of its own.
import { useId } from "react";
import type { ReactNode } from "react";

export function Labelled({ label, children }: { label: string; children: (id: string) => ReactNode }) {
  const id = useId();
  return (
    <div className="grid min-w-0 gap-0.5">
      <label className="text-xs text-muted" htmlFor={id}>
        {label}
      </label>
      {children(id)}
    </div>
  );
}
