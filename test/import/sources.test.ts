// Where an import reads from: addresses as old programs have them, families by their columns, cells of three engines.
import { describe, expect, test } from "bun:test";
import { parseSource, sourceName, SourceRefused } from "../../src/import/dsn.ts";
import { familyOf } from "../../src/import/family.ts";
import { exactWhole, flagOf, jsonText, secondsOf, textOf } from "../../src/import/values.ts";

describe("an address", () => {
  test.each([
    [
      "oneapi:p@ss:w0rd@tcp(db.internal:3307)/one-api?charset=utf8mb4&parseTime=true",
      {
        engine: "mysql",
        username: "oneapi",
        password: "p@ss:w0rd",
        host: "db.internal",
        port: 3307,
        database: "one-api",
        tls: false,
      },
    ],
    [
      "root:x@unix(/run/mysqld/mysqld.sock)/newapi",
      {
        engine: "mysql",
        username: "root",
        password: "x",
        socket: "/run/mysqld/mysqld.sock",
        database: "newapi",
        tls: false,
      },
    ],
    [
      "root@tcp([::1]:3306)/n?tls=skip-verify",
      { engine: "mysql", username: "root", password: "", host: "::1", port: 3306, database: "n", tls: true },
    ],
    [
      "mysql://u:p%40ss@h/n",
      { engine: "mysql", username: "u", password: "p@ss", host: "h", port: 3306, database: "n", tls: false },
    ],
    [
      "postgres://u:p@h:5433/n?sslmode=disable",
      { engine: "postgres", url: "postgres://u:p@h:5433/n?sslmode=disable" },
    ],
    [
      "host=h user=u password='a b' dbname=n port=5433",
      { engine: "postgres", url: "postgres://u:a%20b@h:5433/n" },
    ],
  ])("%s is read as its program reads it", (text, address) => {
    expect(parseSource(text)).toEqual(address as never);
  });

  test("a file is one that is there, with or without the options of its driver", () => {
    expect(parseSource(`${import.meta.path}?_busy_timeout=5000`)).toEqual({
      engine: "sqlite",
      path: import.meta.path,
    });
    expect(() => parseSource("/no/such/one-api.db")).toThrow("neither a file");
  });

  test("no name of a source repeats its password", () => {
    const names = ["u:geheim@tcp(h)/n", "postgres://u:geheim@h/n"].map((text) =>
      sourceName(parseSource(text)),
    );
    expect(names).toEqual(["mysql h:3306/n", "postgres h:5432/n"]);
  });

  test.each([
    "postgres://u:ge/heim@h/n",
    "postgresql://u:geheim%@h/n",
    "mysql://u:ge#heim@h/n",
    "host=/run/postgresql user=u password=geheim dbname=n",
  ])("%s is refused with what to write instead, and without repeating it", (text) => {
    const refusal = (): unknown => {
      try {
        return parseSource(text);
      } catch (error) {
        return error;
      }
    };
    expect(refusal()).toBeInstanceOf(SourceRefused);
    expect(String(refusal())).toContain("%2F for /");
    expect(String(refusal())).not.toContain("heim");
  });
});

describe("a family", () => {
  const base: [string, string[]][] = [
    ["users", ["username", "quota"]],
    ["options", ["key"]],
  ];
  const sourceOf = (tokens: string[], channels: string[], logs: string[]) => {
    const tables = new Map(
      [
        ...base,
        ["tokens", ["key", ...tokens]] as const,
        ["channels", ["models", ...channels]] as const,
        ["logs", logs] as const,
      ].map(([table, columns]) => [table, new Set(columns)]),
    );
    const has = (table: string, column?: string) => {
      const columns = tables.get(table);
      return columns !== undefined && (column === undefined || columns.has(column));
    };
    return { tables, has };
  };

  test("is told by its columns", () => {
    expect(familyOf(sourceOf(["subnet", "models"], ["config"], ["elapsed_time"]))).toBe("one-api");
    expect(familyOf(sourceOf(["model_limits"], [], ["use_time"]))).toBe("new-api");
    expect(familyOf(sourceOf(["model_limits"], ["channel_info"], ["use_time"]))).toBe("new-api-v1");
  });

  test("is refused with what is missing, or as too old", () => {
    expect(() => familyOf({ tables: new Map(), has: () => false })).toThrow("users.username");
    expect(() => familyOf(sourceOf([], [], []))).toThrow("older than one-api");
  });
});

describe("a cell", () => {
  test("is the same value from every engine", () => {
    for (const value of [9007199254740991n, 9007199254740991, "9007199254740991"])
      expect(exactWhole({ value }, "value")).toEqual({ value: 9007199254740991, isCapped: false });
    for (const value of [9007199254740993n, "9007199254740993", "500000000000000000"])
      expect(exactWhole({ value }, "value")).toEqual({ value: Number.MAX_SAFE_INTEGER, isCapped: true });
    expect(exactWhole({ value: null }, "value", 7)).toEqual({ value: 7, isCapped: false });
    for (const value of [true, 1, 1n, "1", "t", Buffer.from([1])])
      expect(flagOf({ value }, "value")).toBe(true);
    for (const value of [false, 0, 0n, "0", "f", Buffer.from([0])])
      expect(flagOf({ value }, "value", true)).toBe(false);
    expect(flagOf({ value: null }, "value", true)).toBe(true);
  });

  test("loses padding and NUL, and JSON comes as text or parsed", () => {
    expect(textOf({ value: "key   " }, "value")).toBe("key");
    expect(textOf({ value: "a\0b" }, "value")).toBe("ab");
    expect(textOf({ value: null }, "value")).toBe("");
    expect(jsonText({ value: { a: 1 } }, "value")).toEqual({ text: '{"a":1}', isBroken: false });
    expect(jsonText({ value: '{"a":1}' }, "value")).toEqual({ text: '{"a":1}', isBroken: false });
    expect(jsonText({ value: "{a" }, "value")).toEqual({ text: "", isBroken: true });
  });

  test("holds a moment as Go, MySQL and PostgreSQL write it", () => {
    const expected = Date.UTC(2025, 5, 1, 10, 20, 30) / 1000;
    for (const value of [
      "2025-06-01 10:20:30.123456+00:00",
      "2025-06-01T10:20:30Z",
      new Date(expected * 1000),
      expected,
    ])
      expect(secondsOf({ value }, "value")).toBe(expected);
    expect(secondsOf({ value: null }, "value")).toBe(0);
  });
});
