// A channel's address as it is kept and called, the same for console, imports and relay.
// Refuses to touch an address that is the whole one: there a slash at the end is part of it.

/** The type whose channels name the whole address of their calls. */
export const CUSTOM_TYPE = 8;

/** Without blanks around it and, where paths are put behind it, without slashes at its end. */
export function channelAddress(type: number, text: string): string {
  const address = text.trim();
  return type === CUSTOM_TYPE ? address : address.replace(/\/+$/, "");
}
