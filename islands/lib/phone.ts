// Whether the window is as narrow as a phone's, for what only the browser draws: the server does not know it.
import { useSyncExternalStore } from "react";

const PHONE = "(max-width: 639px)";

function followWidth(onChange: () => void): () => void {
  const query = matchMedia(PHONE);
  query.addEventListener("change", onChange);
  return () => query.removeEventListener("change", onChange);
}

export function useIsPhone(): boolean {
  return useSyncExternalStore(
    followWidth,
    () => matchMedia(PHONE).matches,
    () => false,
  );
}
