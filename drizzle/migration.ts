// Shape of one migration, and the type of an SQL file imported as text; and which migrations a running older program bears.
// Refuses to take for harmless what it does not know: anything but new tables, columns and indexes is not.

export interface Migration {
  /** Position in the sequence, from 1; the database records the highest applied one. */
  version: number;
  tag: string;
  /** Programs whose last version is lower do not work on what this leaves: they are refused. */
  compatibleFrom: number;
  sql: string;
}

export const BREAKPOINT = "--> statement-breakpoint";

const CREATE_TABLE = /^CREATE TABLE [`"](\w+)[`"]/i;
const CREATE_INDEX = /^CREATE (UNIQUE )?INDEX [`"]\w+[`"] ON [`"](\w+)[`"]/i;
const ADD_COLUMN = /^ALTER TABLE [`"]\w+[`"] ADD (?:COLUMN )?[`"]\w+[`"]/i;

/**
 * Whether a program that does not know of the migration reads and writes on as before: it makes tables, indexes that refuse
 * nothing, and columns that need no value.
 */
export function onlyAdds(sql: string): boolean {
  const own = new Set<string>();
  return sql.split(BREAKPOINT).every((text) => {
    const statement = text.trim();
    const table = CREATE_TABLE.exec(statement)?.[1];
    if (table !== undefined) own.add(table);
    const [isIndex, isUnique, indexed = ""] = CREATE_INDEX.exec(statement) ?? [];
    if (statement === "" || table !== undefined) return true;
    if (isIndex) return !isUnique || own.has(indexed);
    return ADD_COLUMN.test(statement) && (!/ NOT NULL/i.test(statement) || / DEFAULT /i.test(statement));
  });
}
