/** Tables of a comparison: read from CSV (RFC 4180), aligned by column name and by row. */
import { pairs } from "../words.ts";

export function parse(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  // A cell (quoted, with doubled quotes inside, or plain) and what ends it.
  for (const [, quoted, plain = "", end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === ",") continue;
    if (row.length > 1 || row[0] !== "" || end !== "") rows.push(row);
    row = [];
    if (end === "") break;
  }
  return rows;
}

export interface Cell { before: string | null; after: string | null }
export interface TableRow { mark: "same" | "changed" | "added" | "gone"; cells: Cell[] }
export interface Table { columns: Cell[]; rows: TableRow[] }

/** Both tables as one: each cell as it was and as it is; null where its row or column is not there. */
export function align(before: string, after: string): Table {
  const [[oldNames = [], ...oldRows], [newNames = [], ...newRows]] = [parse(before), parse(after)];
  const columns = pairs(oldNames, newNames).flatMap(({ same, before: old, after: now }): Cell[] => same
    ? old.map((name) => ({ before: name, after: name }))
    : [...old.map((name) => ({ before: name, after: null })), ...now.map((name) => ({ before: null, after: name }))]);
  const at = (row: string[] | undefined, names: string[], name: string | null) => (row && name !== null ? (row[names.indexOf(name)] ?? "") : null);
  const cells = (old: string[] | undefined, now: string[] | undefined) => columns.map((column) => ({ before: at(old, oldNames, column.before), after: at(now, newNames, column.after) }));
  const equal = (old: string[], now: string[]) => columns.every((column) => at(old, oldNames, column.before) === at(now, newNames, column.after));
  const rows = pairs(oldRows, newRows, equal).flatMap((pair): TableRow[] => Array.from({ length: Math.max(pair.before.length, pair.after.length) }, (_, index) => {
    const [old, now] = [pair.before[index], pair.after[index]];
    return { mark: pair.same ? "same" : !old ? "added" : !now ? "gone" : "changed", cells: cells(old, now) };
  }));
  return { columns, rows };
}
