// The address that people are shown for this site: the operator's, else the one that this page was opened at.
// Refuses to ask the server for the second: a request's Host header is anybody's word.
import { useSyncExternalStore } from "react";
import { status } from "./boot.ts";

const never = () => () => {};

/** Without a slash at its end. Empty until the page has come alive, where the operator has set none. */
export function useSite(): string {
  const own = useSyncExternalStore(
    never,
    () => location.origin,
    () => "",
  );
  return (status.peek().server_address || own).replace(/\/+$/, "");
}
