// A call of the page as a curl command that works elsewhere: address, query and body, with placeholders for secrets.
// Refuses to carry a session, a key or anything that the shell could take for a command.
import { status, user } from "./boot.ts";

export interface CurlRequest {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  /** "/api/log/". */
  path: string;
  /** Empty values are left out. */
  query?: Record<string, string | number | undefined>;
  body?: unknown;
  /** Stands in the Authorization header; default: the system token of the account, for calls of /api. */
  placeholder?: string;
}

/** Between single quotes a shell reads everything as it stands, except the single quote itself. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

export function curlOf({ method = "GET", path, query = {}, body, placeholder }: CurlRequest): string {
  const site = status.peek().server_address || (typeof location === "undefined" ? "" : location.origin);
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") params.set(name, String(value));
  }
  const search = params.toString();
  const url = `${site.replace(/\/+$/, "")}${path}${search === "" ? "" : `?${search}`}`;
  const id = user.peek()?.id;
  const isConsole = path.startsWith("/api");
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${shellQuote(url)}`,
    `-H ${shellQuote(`Authorization: Bearer ${placeholder ?? (isConsole ? "<system access token>" : "<API key>")}`)}`,
    ...(isConsole && id !== undefined ? [`-H ${shellQuote(`New-Api-User: ${id}`)}`] : []),
    ...(body === undefined
      ? []
      : [`-H ${shellQuote("Content-Type: application/json")}`, `-d ${shellQuote(JSON.stringify(body))}`]),
  ];
  return lines.join(" \\\n  ");
}
