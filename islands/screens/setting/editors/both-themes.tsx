// The same thing twice, on the light page and on the dark one, whichever theme the reader has chosen.
import type { ReactNode } from "react";
import { useT } from "../../../lib/i18n.ts";

const THEMES = [
  ["paper", "editor.theme.light"],
  ["ink", "editor.theme.dark"],
] as const;

export function BothThemes({ children }: { children: ReactNode }) {
  const t = useT();
  return (
    <div className="mt-2 grid gap-3 lg:grid-cols-2">
      {THEMES.map(([theme, label]) => (
        <figure key={theme} className="min-w-0">
          <figcaption className="mb-1 text-xs text-muted">{t(label)}</figcaption>
          {/* The page's own muted colour was worked out at its root, for the reader's theme. */}
          <div
            data-theme={theme}
            role="group"
            aria-label={t(label)}
            className="max-h-80 overflow-auto rounded-box border border-base-300 bg-base-100 p-4 text-base-content [--color-muted:var(--muted)]"
            tabIndex={0}
          >
            {children}
          </div>
        </figure>
      ))}
    </div>
  );
}
