// Worker thread that answers read-only queries on the SQLite file, so that reports never stall the event loop, and
// folds the write-ahead log back into the file. Refuses to write rows: its query connection is opened read-only.
import { Database } from "bun:sqlite";
import type { SQLQueryBindings } from "bun:sqlite";

export interface ReaderRequest {
  path: string;
  /** A query, or the word "checkpoint": copies the write-ahead log instead. */
  text: string;
  params: unknown[];
}

export interface ReaderReply {
  rows: unknown[][];
  error?: string;
}

declare const self: Worker;

let client: Database | undefined;
let folder: Database | undefined;

self.onmessage = (event: MessageEvent<ReaderRequest>) => {
  const { path, text, params } = event.data;
  try {
    if (text === "checkpoint") {
      folder ??= new Database(path, { readwrite: true });
      folder.run("pragma wal_checkpoint(passive)");
      self.postMessage({ rows: [] } satisfies ReaderReply);
      return;
    }
    client ??= new Database(path, { readonly: true });
    const rows = client.query(text).values(...(params as SQLQueryBindings[]));
    self.postMessage({ rows } satisfies ReaderReply);
  } catch (error) {
    self.postMessage({ rows: [], error: String(error) } satisfies ReaderReply);
  }
};
