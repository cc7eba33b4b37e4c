// Shape of one migration, and the type of an SQL file imported as text.

export interface Migration {
  /** Position in the sequence, from 1; the database records the highest applied one. */
  version: number;
  tag: string;
  sql: string;
}
