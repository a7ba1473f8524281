/** Tables of a comparison: read from CSV (RFC 4180), aligned by column name and by row. */
import { pairs } from "../edit/labels.ts";

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

/** Where a column stands in either table. */
interface Place { old: number | null; now: number | null }

/** Both tables as one: each cell as it was and as it is; null where its row or column is not there. */
export function align(before: string, after: string): Table {
  const [[oldNames = [], ...oldRows], [newNames = [], ...newRows]] = [parse(before), parse(after)];
  const places = columnsOf(oldNames, newNames);
  const cells = (old: string[] | undefined, now: string[] | undefined) => places.map((place) => ({ before: at(old, place.old), after: at(now, place.now) }));
  const shared = places.filter((place) => place.old !== null && place.now !== null);
  const equal = (some: Place[]) => (old: string[], now: string[]) => some.every((place) => at(old, place.old) === at(now, place.now));
  const rows = pairs(oldRows, newRows, equal(shared)).flatMap((pair): TableRow[] => {
    if (pair.same) return pair.before.map((old, index) => ({ mark: "same", cells: cells(old, pair.after[index]) }));
    // Among changed rows, those with the same first cell are the same row; as many as before stand for one another.
    return pairs(pair.before, pair.after, equal(shared.slice(0, 1))).flatMap((rest): TableRow[] => rest.before.length === rest.after.length
      ? rest.before.map((old, index) => ({ mark: "changed", cells: cells(old, rest.after[index]) }))
      : [...rest.before.map((old): TableRow => ({ mark: "gone", cells: cells(old, undefined) })),
        ...rest.after.map((now): TableRow => ({ mark: "added", cells: cells(undefined, now) }))]);
  });
  return { columns: cells(oldNames, newNames), rows };
}

function columnsOf(oldNames: string[], newNames: string[]): Place[] {
  let [old, now] = [0, 0];
  return pairs(oldNames, newNames).flatMap(({ same, before, after }): Place[] => same
    ? before.map(() => ({ old: old++, now: now++ }))
    : [...before.map(() => ({ old: old++, now: null })), ...after.map(() => ({ old: null, now: now++ }))]);
}

function at(row: string[] | undefined, place: number | null): string | null {
  return row && place !== null ? (row[place] ?? "") : null;
}
