import { afterEach, expect, test } from "vitest";
import type { NotebookPanel } from "@jupyterlab/notebook";

import type { Link } from "../../src/lab/kernelConnection.ts";
import { Output } from "../../src/lab/output.ts";
import { hub, loadLate, panelOf } from "../../src/lab/registry.ts";
import type { Saved } from "../../src/lab/saved.ts";
import type { Session } from "../../src/view/protocol.ts";
import { pageOf } from "../rows.ts";

const TOTALS = { spans: 2, calls: 1, errors: 0, seconds: 1, tokens_in: null, tokens_out: null, cost: null, partial: false };
const SESSION: Session = {
  mode: "record", cassettes: ["main"], cassette: "main", take: "", takes: [], default_take: "", totals: TOTALS, running: null, notes: [],
};
const SAVED: Saved = {
  version: 1, title: "cell", cell: "a", mode: "record", path: "n.tapes/main.tape.yaml", cassette: "main", take: "",
  bytes: 0, sha256: "", session: SESSION, page: pageOf([]),
};

afterEach(() => hub.panels.clear());

/** A saved output in a notebook whose kernel answers every question about the session so. */
function outputBeside(session: Session): Output {
  const node = document.createElement("div");
  const panel = { node, context: { path: "n.ipynb" } } as unknown as NotebookPanel;
  const open: Link["open"] = (hear) => ({
    send: (message) => hear({ type: "answer", id: (message as { id: string }).id, answer: session }),
    close: () => undefined,
  });
  hub.panels.set(panel, { connected: true, open } as unknown as Link);
  return new Output(node, null, SAVED, { hub, loadLate, panelOf });
}

test("a cell that is over does not say that another cell records", () => {
  const output = outputBeside({ ...SESSION, totals: { ...TOTALS, calls: 9 }, running: { cell: "b", mode: "record", calls: 0, seconds: 283 } });
  const heard: unknown[] = [];
  output.door.on("msg:custom", (message: unknown) => heard.push(message));
  output.door.send({ type: "ask", id: "1", about: "session" });
  expect(heard).toContainEqual({ type: "answer", id: "1", answer: { ...SESSION, running: null } });
});
