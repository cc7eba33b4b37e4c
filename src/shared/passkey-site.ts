// What passkeys are bound to: a host name, and the address that browsers send along (WebAuthn 5.1.3).
// Refuses addresses that no browser binds one to: bare IP addresses, and http but for localhost.

export interface PasskeySite {
  /** The relying party's id. */
  id: string;
  origin: string;
}

/** What passkeys are bound to; undefined: ServerAddress is none that a browser binds them to. */
export function passkeySite(serverAddress: string): PasskeySite | undefined {
  const url = URL.parse(serverAddress);
  if (!url) return undefined;
  const isNamed = /[a-z]/i.test(url.hostname) && !url.hostname.startsWith("[");
  const isSafe = url.protocol === "https:" || url.hostname === "localhost";
  return isNamed && isSafe ? { id: url.hostname, origin: url.origin } : undefined;
}
