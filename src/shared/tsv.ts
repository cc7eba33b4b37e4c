// A block of cells as spreadsheets put it on the clipboard: lines of cells between tabs, quoted where a cell holds either.
// Files have commas or semicolons in place of the tabs.

/** Cells of a pasted text; the line break that spreadsheets end with is none of them. */
export function readBlock(text: string, separator: "\t" | "," | ";" = "\t"): string[][] {
  const rows: string[][] = [[]];
  let cell = "";
  let at = 0;
  const endCell = () => {
    rows.at(-1)?.push(cell);
    cell = "";
  };
  while (at < text.length) {
    const sign = text[at] ?? "";
    if (sign === '"' && cell === "") {
      const end = quotedEnd(text, at, separator);
      if (end > 0) {
        cell = text.slice(at + 1, end).replaceAll('""', '"');
        at = end + 1;
        continue;
      }
    }
    if (sign === separator) endCell();
    else if (sign === "\n" || sign === "\r") {
      endCell();
      if (sign === "\r" && text[at + 1] === "\n") at += 1;
      if (at + 1 >= text.length) return rows;
      rows.push([]);
    } else cell += sign;
    at += 1;
  }
  endCell();
  return rows;
}

/** Place of the quote that ends the cell which begins at `start`; -1 where the quote is a sign like any other. */
function quotedEnd(text: string, start: number, separator: string): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] !== '"') continue;
    if (text[at + 1] === '"') at += 1;
    else return ["", separator, "\n", "\r"].includes(text[at + 1] ?? "") ? at : -1;
  }
  return -1;
}

/** The same cells as text for the clipboard. */
export function blockText(rows: readonly (readonly string[])[]): string {
  const quoted = (cell: string) => (/["\t\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return rows.map((row) => row.map(quoted).join("\t")).join("\n");
}
