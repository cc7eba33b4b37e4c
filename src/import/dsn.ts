// Where a site comes from, as its old program was told: a file, a Go DSN of MySQL, or an address of PostgreSQL.
// Refuses what names none of these, and never repeats a password.
import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";

export type SourceEngine = "sqlite" | "mysql" | "postgres";

export type SourceAddress =
  | { engine: "sqlite"; path: string }
  | { engine: "postgres"; url: string }
  | {
      engine: "mysql";
      username: string;
      password: string;
      database: string;
      /** TCP, or the path of a socket. */
      host?: string;
      port?: number;
      socket?: string;
      tls: boolean;
    };

/** What somebody wrote cannot be used; the sentence goes to them. */
export class SourceRefused extends Error {}

/** `user:pass@tcp(host:3306)/db?…`, `…@unix(/path)/db`, as github.com/go-sql-driver/mysql documents it. */
const GO_DSN = /^(?:([^:@]*)(?::(.*))?@)?(tcp|tcp6|unix)\(([^)]*)\)\/([^?]*)(?:\?(.*))?$/s;
const MYSQL_PORT = 3306;

function mysqlAddress(text: string): SourceAddress | undefined {
  const [, username = "", password = "", network = "", place = "", database = "", query = ""] =
    GO_DSN.exec(text) ?? [];
  if (network === "") return undefined;
  if (database === "") throw new SourceRefused("the address of the MySQL source names no database");
  const tls = new URLSearchParams(query).get("tls") ?? "false";
  const common = {
    engine: "mysql",
    username,
    password,
    database: plain(database),
    tls: tls !== "false",
  } as const;
  if (network === "unix") return { ...common, socket: place };
  const [, host = "", port = ""] = /^\[?([^\]]*?)\]?(?::(\d+))?$/.exec(place) ?? [];
  return { ...common, host: host === "" ? "127.0.0.1" : host, port: port === "" ? MYSQL_PORT : Number(port) };
}

/** Undefined where a percent sign stands for itself. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** Go's driver takes a database name as it is, or percent-encoded. */
const plain = (text: string): string => decoded(text) ?? text;

/** Whatever else takes a URL apart repeats it in its complaint, and the password with it. */
function soundUrl(text: string): string {
  const password = URL.parse(text)?.password;
  if (password === undefined || decoded(password) === undefined)
    throw new SourceRefused(
      "the address cannot be read as a URL: in a name or a password write %2F for /, %3F for ?, %23 for #, %40 for @ and %25 for %",
    );
  return text;
}

/** `mysql://…`, which people write though Go does not know it. */
function mysqlUrl(text: string): SourceAddress {
  const { username, password, hostname, port, pathname, searchParams } = new URL(soundUrl(text));
  const database = plain(pathname.slice(1));
  if (database === "") throw new SourceRefused("the address of the MySQL source names no database");
  return {
    engine: "mysql",
    username: plain(username),
    password: plain(password),
    database,
    host: hostname === "" ? "127.0.0.1" : hostname,
    port: port === "" ? MYSQL_PORT : Number(port),
    tls: (searchParams.get("tls") ?? "false") !== "false",
  };
}

/** `host=… user=… password=… dbname=…`, the other form that PostgreSQL's own library takes. */
function keywordUrl(text: string): string | undefined {
  const pairs = [...text.matchAll(/(\w+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S*))/g)];
  const values = new Map(
    pairs.map(([, key = "", quoted, plain = ""]) => [key, quoted?.replace(/\\(.)/g, "$1") ?? plain]),
  );
  if (!values.has("host") || !values.has("dbname")) return undefined;
  const part = (key: string): string => encodeURIComponent(values.get(key) ?? "");
  const query = values.has("sslmode") ? `?sslmode=${part("sslmode")}` : "";
  return `postgres://${part("user")}:${part("password")}@${values.get("host")}:${values.get("port") ?? "5432"}/${part("dbname")}${query}`;
}

/** Reads what the operator wrote; a file must exist. Throws SourceRefused. */
export function parseSource(written: string): SourceAddress {
  const text = written.trim();
  if (/^postgres(ql)?:\/\//.test(text)) return { engine: "postgres", url: soundUrl(text) };
  if (text.startsWith("mysql://")) return mysqlUrl(text);
  const mysql = mysqlAddress(text);
  if (mysql) return mysql;
  const keywords = keywordUrl(text);
  if (keywords !== undefined) return { engine: "postgres", url: soundUrl(keywords) };
  // Go's SQLite driver takes options behind the path.
  const path = resolve(text.replace(/^file:/, "").replace(/\?.*$/s, ""));
  if (!existsSync(path) || !statSync(path).isFile())
    throw new SourceRefused(
      "the source is neither a file that is there, nor user:password@tcp(host:3306)/database, nor postgres://…",
    );
  return { engine: "sqlite", path };
}

/** The source as people may read it. */
export function sourceName(address: SourceAddress): string {
  if (address.engine === "sqlite") return address.path;
  if (address.engine === "mysql")
    return `mysql ${address.socket ?? `${address.host}:${address.port}`}/${address.database}`;
  const { hostname, port, pathname } = new URL(address.url);
  return `postgres ${hostname}:${port === "" ? "5432" : port}${pathname}`;
}
