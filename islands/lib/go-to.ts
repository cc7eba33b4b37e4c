// The pages of the console as the browser needs them: palette entries and the "g d" shortcuts.
// Refuses pages that the role or the site's flags hide; the server checks again anyway.
import { NAV, isVisible } from "../../src/shared/navigation.ts";
import type { NavEntry } from "../../src/shared/navigation.ts";
import { status, user } from "./boot.ts";
import { registerShortcut } from "./keys.ts";

export function visiblePages(): NavEntry[] {
  const role = user.peek()?.role ?? 0;
  return NAV.flatMap((group) => group.entries).filter((entry) => isVisible(entry, role, status.peek()));
}

export function registerGoTo(): void {
  for (const entry of visiblePages()) {
    if (entry.key === undefined) continue;
    registerShortcut({
      keys: `g ${entry.key}`,
      label: entry.title,
      run: () => location.assign(entry.href),
    });
  }
}
