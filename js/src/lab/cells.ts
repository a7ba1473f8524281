/** Cells of a notebook as spans name them, shown and watched. */
import type { Cell } from "@jupyterlab/cells";
import type { NotebookPanel } from "@jupyterlab/notebook";

const LIT = "tape-lit";
const LIT_MS = 1600;

/** The cell of a span: by the front end's id, else by the first digits of its source's hash. */
export async function findCell(panel: NotebookPanel, named: string): Promise<Cell | undefined> {
  const cells = panel.content.widgets;
  const known = cells.find(({ model }) => model.id === named);
  if (known || !/^[0-9a-f]{12}/.test(named)) return known;
  for (const cell of cells) {
    if (cell.model.type === "code" && named.startsWith(await sourceHash(cell))) return cell;
  }
  return undefined;
}

/** 12 digits of the source's hash, as the kernel's deck makes it: without the `%%tape` line, blank ends aside. */
export async function sourceHash(cell: Cell): Promise<string> {
  const source = cell.model.sharedModel.getSource().replace(/^\s*%%tape(?=\s|$).*(\n|$)/, "");
  const subtle = (globalThis.crypto as Partial<Crypto>).subtle; // not on a page served over plain http
  if (!subtle) return "-";
  const digest = new Uint8Array(await subtle.digest("SHA-256", new TextEncoder().encode(source.trim())));
  return [...digest.slice(0, 6)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Scroll to the span's cell and light it up for a moment; the focus stays where it is. */
export async function showCell(panel: NotebookPanel, named: string): Promise<void> {
  const cell = await findCell(panel, named);
  if (!cell) return;
  await panel.content.scrollToItem(panel.content.widgets.indexOf(cell), "smart");
  for (const lit of panel.content.node.querySelectorAll(`.${LIT}`)) lit.classList.remove(LIT);
  cell.node.classList.add(LIT);
  setTimeout(() => cell.node.classList.remove(LIT), LIT_MS);
}
