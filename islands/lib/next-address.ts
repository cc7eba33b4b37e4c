// Where to go after signing in: the page that sent the visitor here, or the API keys.
// Refuses other origins, programs' paths and the login page itself.

const LANDING = "/token";
const NOT_A_PAGE = ["/login", "/api", "/v1", "/pg", "/a"];

/** `next` as the query gives it. The path alone is taken over, so that no address leads off this site. */
export function nextAddress(next: string | undefined, origin: string): string {
  if (next === undefined || !next.startsWith("/")) return LANDING;
  let url: URL;
  try {
    url = new URL(next, origin);
  } catch {
    return LANDING;
  }
  if (url.origin !== origin) return LANDING;
  // "/.//host" resolves to a path that begins with two slashes: as an address of its own it names another host.
  if (url.pathname.startsWith("//")) return LANDING;
  if (NOT_A_PAGE.some((path) => url.pathname === path || url.pathname.startsWith(`${path}/`))) return LANDING;
  return url.pathname + url.search + url.hash;
}
