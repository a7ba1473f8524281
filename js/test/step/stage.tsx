/** A page that shows the view of a stepped cell over a fake door: `stage.html?state=two`. Built by ../edit/stage.mjs. */
import { openEditor } from "../../src/editor/index.ts";
import * as cards from "../../src/view/panels/index.tsx";
import { mount } from "../../src/view/mount.tsx";
import type { StepState } from "../../src/view/protocol.ts";
import { FakeDoor } from "../door.ts";
import { EDITABLE } from "../edit/samples.ts";
import { detailOf, pageOf, sessionOf, STORY } from "../rows.ts";
import { COMPARED, FRAMES, stateOf, strandOf, TWO, VARIABLES } from "./samples.ts";

const LIVE = { would: "live" as const, span: "", reply: null, request_edit: '{\n  "model": "claude-sonnet-5",\n  "messages": []\n}', can: ["over", "model", "tool", "continue", "back", "answer", "refuse", "request", "stop"] as const };
const STATES: Record<string, StepState> = {
  stopped: stateOf(),
  edited: stateOf({ take: "step-1", edits: 1, strands: [strandOf({}, { edited: true })] }),
  two: stateOf({ strands: TWO, breaks: ["tool:lookup_order", "model"] }),
  record: stateOf({ mode: "record", strands: [strandOf({}, { ...LIVE, can: [...LIVE.can] })] }),
  missed: stateOf({ strands: [strandOf({}, { would: "refuse", span: "", reply: null, title: "POST /v1/messages", can: ["over", "back", "answer", "live", "refuse", "stop"] })] }),
  running: stateOf({ state: "running", strands: [] }),
  rewinding: stateOf({ state: "rewinding", strands: [] }),
  over: stateOf({ state: "over", strands: [], take: "step-1", edits: 2, note: "The cell was stopped before call 3. Variables are as they were before the cell; what was edited is kept." }),
};

const asked = new URLSearchParams(location.search);
const name = asked.get("state") ?? "stopped";
const able = { modes: true, override: true, rerun: true, step: true, cells: true };
const door = new FakeDoor({ able, title: "churn.ipynb", door: "sidebar" }, {
  session: () => sessionOf(), spans: () => pageOf(STORY), detail: ({ span }) => detailOf(String(span)), select: () => ({}),
  step: () => STATES[name] ?? null, "step.do": () => ({}), "step.frames": () => FRAMES, "step.compare": () => COMPARED, "step.cell": () => ({}),
  "step.variables": () => (asked.has("failing") ? new Error("this frame is gone: the cell has moved on") : VARIABLES),
  edit: () => ({ ...EDITABLE, span: "r3/a" }), check: () => ({ problems: [] }),
});
mount(document.getElementById("stage") ?? document.body, door, { loadCards: () => Promise.resolve(cards), loadEditor: () => Promise.resolve(openEditor) });
Object.assign(globalThis, { door, states: STATES });
