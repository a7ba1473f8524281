/** A page that shows one card over a fake door: `stage.html?card=plan`. Built by stage.mjs; a person, or a browser test, looks at it. */
import { render } from "preact";
import { openEditor } from "../../src/editor/index.ts";
import * as cards from "../../src/view/panels/index.tsx";
import cardsCss from "../../src/view/panels/cards.css";
import { EditPane } from "../../src/view/panels/pane.tsx";
import { editCss, TakeMenu, Work, WorkCards, type CardsModule } from "../../src/view/edit/index.ts";
import { Client } from "../../src/view/client.ts";
import type { Edit, Problem } from "../../src/view/protocol.ts";
import css from "../../src/view/view.css";
import { FakeDoor } from "../door.ts";
import { COMPARISON, DIVERGENCE, EDITABLE, PLAN, SESSION, VALUE } from "./samples.ts";

const ABLE = { modes: true, override: true, rerun: true, step: false, cells: true };
const asked = new URLSearchParams(location.search);
const card = asked.get("card") ?? "edit";

function problems(edit: Edit): Problem[] {
  const text = JSON.stringify(edit);
  return [
    ...(text.includes("lookup_invoice") ? [{ level: "warning" as const, path: "content[1].name", text: "No tool of this request is called lookup_invoice; lookup_order is." }] : []),
    ...(text.includes("end_turn") && edit.form === "fields" ? [{ level: "warning" as const, path: "stop_reason", text: "The message calls a tool, but does not stop for it." }] : []),
  ];
}

const door = new FakeDoor({}, {
  edit: () => (card === "value" ? VALUE : EDITABLE),
  check: ({ edit }) => ({ problems: problems(edit as Edit) }),
  override: ({ take }) => ({ take, session: SESSION, plan: PLAN }),
  plan: () => PLAN, rerun: () => ({ started: true }), cancel: () => ({}), resolve: () => ({}), adopt: () => PLAN,
  open: () => SESSION, keep: () => SESSION, discard: () => SESSION, undo: () => SESSION, default: () => SESSION,
});
const work = new Work(new Client(door), {
  loadCards: () => Promise.resolve(cards satisfies CardsModule),
  loadEditor: asked.has("plain") ? () => Promise.reject(new Error("no editor")) : () => Promise.resolve(openEditor),
});

const host = document.getElementById("stage") ?? document.body;
const home = host.attachShadow({ mode: "open" });
home.adoptedStyleSheets = [css, editCss, cardsCss].map((text) => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
});
const root = document.createElement("div");
root.className = "tape-view";
home.append(root);

function Stage() {
  if (card === "takes") return <div class="bar"><TakeMenu work={work} session={SESSION} able={ABLE} /></div>;
  if (["edit", "value", "fault"].includes(card)) {
    return <div class="detail" style={{ height: "100%" }}><button type="button" data-back="edit">Edit reply</button>
      <EditPane work={work} span={card} start={card === "fault" ? "fault" : undefined} onClose={() => render(<WorkCards work={work} able={ABLE} />, root)} /></div>;
  }
  return <WorkCards work={work} able={ABLE} />;
}
render(<Stage />, root);

Object.assign(globalThis, { door, work });
if (card === "plan") void work.plan("angry-customer");
if (card === "progress") door.tell("progress", { done: 1, total: 4, cell: "b", title: "[3] answer", state: "running" });
if (card === "divergence") door.tell("diverged", { ...DIVERGENCE });
if (card === "comparison") door.tell("done", { ...COMPARISON });
if (card === "differs") door.tell("done", { ...COMPARISON, stopped: "[7] report raised ValueError; what ran before it is kept.", proof: { state: "differs", text: "[8] also depends on this.", adopt: ["f"] } });
