// Where a Valkey or Redis is, as REDIS_URL says it. Refuses what names no server, in a sentence without the password.

/** What a connection needs. */
export interface ValkeyAddress {
  /** As it was written: the client reads it again. */
  url: string;
  host: string;
  port: number;
  isTls: boolean;
  /** Empty: the server's default user. */
  user: string;
  /** Empty: none is asked for. */
  password: string;
  database: number;
}

const DEFAULT_PORT = 6379;
const MAX_DATABASE = 65_535;
const FORM =
  "must look like redis://[user:password@]host[:port][/number] (rediss:// with TLS, valkey:// and valkeys:// alike)";

/** Undefined for an empty text; a text answers why it cannot be read, to stand behind the variable's name. */
export function parseValkeyUrl(text: string): ValkeyAddress | string | undefined {
  if (text === "") return undefined;
  const scheme = /^(redis|valkey)(s?):\/\//.exec(text);
  const url = scheme ? URL.parse(text) : null;
  if (!scheme || !url || url.hostname === "") return FORM;
  const path = url.pathname.replace(/^\//, "");
  const database = Number(path);
  if (!/^\d*$/.test(path) || database > MAX_DATABASE)
    return "must end with the number of a database, as in redis://host:6379/1, or without one";
  try {
    return {
      url: text,
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? DEFAULT_PORT : Number(url.port),
      isTls: scheme[2] === "s",
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      database,
    };
  } catch {
    return "holds a % that begins no escape: write %25 for it in user and password";
  }
}
