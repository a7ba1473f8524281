import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as cards from "../src/view/panels/index.tsx";
import { mount } from "../src/view/mount.tsx";
import type { StepState } from "../src/view/protocol.ts";
import { FakeDoor } from "./door.ts";
import { EDITABLE } from "./edit/samples.ts";
import { detailOf, pageOf, sessionOf, STORY } from "./rows.ts";
import { COMPARED, FRAMES, stateOf, strandOf, TWO, VARIABLES } from "./step/samples.ts";

const ABLE = { modes: true, override: true, rerun: true, step: true, cells: true };
let el: HTMLElement;
let unmount: () => void = () => undefined;

beforeEach(() => {
  el = document.body.appendChild(document.createElement("div"));
});
afterEach(() => {
  unmount();
  el.remove();
});

/** A view whose door has this state when it is asked. */
async function open(state: StepState | null = null, answers: FakeDoor["answers"] = {}, able = ABLE): Promise<FakeDoor> {
  const door = new FakeDoor({ able, title: "churn.ipynb" }, {
    session: () => sessionOf(), spans: () => pageOf(STORY), detail: ({ span }) => detailOf(String(span)), select: () => ({}),
    step: () => state, "step.do": () => ({}), "step.frames": () => FRAMES, "step.variables": () => VARIABLES, "step.compare": () => COMPARED,
    "step.cell": () => ({}), "step.arm": () => ({}), "step.here": () => ({}), edit: () => ({ ...EDITABLE, span: "r3/a" }), check: () => ({ problems: [] }), ...answers,
  });
  await does(() => {
    unmount = mount(el, door, { loadCards: () => Promise.resolve(cards) });
  });
  return door;
}

/** What is done, and all that follows from it: answers, drawing, what is asked because of it. */
async function does(what: () => void): Promise<void> {
  await act(what);
  for (let round = 0; round < 8; round++) await act(() => new Promise<void>((done) => setTimeout(done)));
}
const tell = (door: FakeDoor, state: StepState): Promise<void> => does(() => door.tell("step", { ...state }));
const all = (selector: string): HTMLElement[] => [...(el.shadowRoot?.querySelectorAll<HTMLElement>(selector) ?? [])];
const text = (selector: string): string => all(selector)[0]?.textContent ?? "";
/** A button's name as it is read out. */
const read = (node: HTMLElement): string => node.getAttribute("aria-label") ?? [...node.childNodes].filter((child) => !(child instanceof Element && child.getAttribute("aria-hidden"))).map((child) => child.textContent).join("");
function button(name: string): HTMLElement {
  const found = all("button").find((node) => read(node) === name);
  if (!found) throw new Error(`no "${name}" among: ${all("button").map((node) => node.textContent).join(" | ")}`);
  return found;
}
const click = (name: string): Promise<void> => does(() => button(name).click());
const press = (key: string): Promise<void> => does(() => all(".app")[0]?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true })));
const done = (door: FakeDoor): unknown[] => door.asked.filter(({ about }) => about === "step.do").map(({ do: word, strand, revision, span }) => [word, strand, revision, ...(span === undefined ? [] : [span])]);
const does_ = (name: string): boolean => button(name).getAttribute("aria-disabled") === "false";

test("a stop stands beside the list: the call, the reply it will get, where in the code", async () => {
  const door = await open();
  await tell(door, stateOf());
  expect(text(".step-says")).toBe("Stopped before call 3→ lookup_order");
  expect(text(".step-head")).toContain("call 3 · model call · answered from the tape");
  expect(text(".step-reply")).toContain("reply of r3/a");
  expect(text(".step-frames")).toContain("cell [3], line 4 in ask · 9 frames of libraries above");
  expect(text(".step-here")).toContain("claude.messages.create");
  expect(text(".step-variables")).toContain("'where is my order?'");
  expect(text(".step-where")).toContain("38 more are not shown.");
  expect(all(".row.is-stop .name b").map((node) => node.textContent)).toEqual(["→ lookup_order"]);
  expect(all(".row.is-stop .mark")[0]?.getAttribute("aria-label")).toBe("model call, stopped here");
  expect(all(".now b")).toHaveLength(1);
});

test("a stop that was there before the page is shown, and one that is over is not", async () => {
  await open(stateOf());
  expect(text(".step-says")).toContain("Stopped before call 3");
  unmount();
  await open(stateOf({ state: "over", strands: [] }));
  expect(all(".step-bar")).toHaveLength(0);
});

test("what is told while the page asks is newer than the answer", async () => {
  const door = await open(null, { step: undefined as never });
  await tell(door, stateOf({ revision: 5 }));
  await tell(door, stateOf({ revision: 6, state: "over", strands: [], note: "the cell ran to its end" }));
  await does(() => door.answer("step", () => stateOf({ revision: 4, state: "running", strands: [] })));
  expect(text(".step-says")).toBe("the cell ran to its end");
});

test("a probe is answered at once", async () => {
  const door = await open();
  await does(() => door.tell("step.probe", { id: "p1" }));
  expect(door.asked.filter(({ about }) => about === "step.here")).toHaveLength(1);
});

test("buttons and keys do the same, each once until the cell has moved, with the revision that was seen", async () => {
  const door = await open(stateOf({ revision: 7 }));
  await press(".");
  await press(".");
  await click("Back");
  expect(done(door)).toEqual([["over", "", 7]]);
  await tell(door, stateOf({ revision: 8, strands: [strandOf({}, { place: ":4", nth: 4, span: "r3/d" })] }));
  await press(",");
  await tell(door, stateOf({ revision: 9 }));
  await click("Continue");
  await press("q"); // ends it, whatever else was asked
  expect(done(door)).toEqual([["over", "", 7], ["back", "", 8], ["continue", "", 9], ["stop", "", 9]]);
});

test("what a call cannot do is not offered", async () => {
  const door = await open(stateOf({ strands: [strandOf({}, { would: "refuse", span: "", reply: null, can: ["over", "answer", "stop"] })] }));
  expect(["Back", "Step", "Model", "Tool", "Continue", "To here", "Stop"].filter(does_)).toEqual(["Step", "Stop"]);
  expect(all(".step-reply button").map((node) => node.textContent)).toEqual(["Answer by hand…"]);
  expect(text(".step-reply h3")).toBe("Not on the tape");
  await press(",");
  expect(done(door)).toEqual([]);
});

test("a call that is not on the tape shows how it differs from the recorded one", async () => {
  const fields = [{ path: "messages[0].content", recorded: "the second order", now: "the lost order" }];
  await open(stateOf({ strands: [strandOf({}, { would: "refuse", span: "", reply: null, fields, can: ["over", "stop"] })] }));
  expect(all(".step-reply td").map((node) => node.textContent)).toEqual(["the second order", "the lost order"]);
  expect([text(".step-reply del"), text(".step-reply ins")]).toEqual(["second", "lost"]);
});

test("run to here goes to the call that is selected in the list", async () => {
  const door = await open(stateOf());
  await does(() => all("[role=treeitem]").find((row) => row.textContent.includes("Order #4421"))?.click());
  expect(all(".step-pane")).toHaveLength(0); // its detail is open instead
  await press("g");
  expect(done(door)).toEqual([["to", "", 1, "r3/d"]]);
  await tell(door, stateOf({ revision: 2, strands: [strandOf({}, { place: ":5", nth: 5, span: "r3/d", title: "answer" })] }));
  expect(text(".step-head h2")).toBe("answer");
});

test("of a state that was overtaken nothing is drawn", async () => {
  const door = await open(stateOf({ revision: 5 }));
  await tell(door, stateOf({ revision: 4, strands: [strandOf({}, { nth: 1 })] }));
  expect(text(".step-says")).toContain("before call 3");
});

test("while the cell runs to its next stop the last one stays, and nothing can be done twice", async () => {
  const door = await open(stateOf());
  await tell(door, stateOf({ revision: 2, state: "running", strands: [] }));
  expect(all(".step-pane")[0]?.getAttribute("aria-busy")).toBe("true");
  expect(does_("Step")).toBe(false);
  expect(does_("Stop")).toBe(true);
});

test("each strand is stepped by itself", async () => {
  const door = await open(stateOf({ strands: TWO }));
  expect(all(".step-strands [role=tab]").map((node) => node.getAttribute("aria-selected"))).toEqual(["true", "false"]);
  await does(() => all(".step-strands [role=tab]")[1]?.click());
  expect(text(".step-head h2")).toBe('lookup_order(query="my order")');
  expect(door.asked.filter(({ about }) => about === "step.frames").map(({ strand }) => strand)).toEqual(["0.1", "0.2"]);
  await press(".");
  expect(done(door)).toEqual([["over", "0.2", 1]]);
});

test("an edit is served to the cell that waits, without a take's name", async () => {
  const door = await open(stateOf());
  await press("e");
  expect(all(".tape-edit label").some((label) => label.textContent.includes("as take"))).toBe(false);
  const field = all("textarea")[0] as HTMLTextAreaElement;
  await does(() => {
    field.value = "Shipped.";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await click("Save and go on");
  const [asked] = door.asked.filter(({ about }) => about === "step.do");
  expect(asked).toMatchObject({ do: "edit", strand: "", accept: false, edit: { form: "fields" } });
  expect(JSON.stringify(asked)).toContain("Shipped.");
  expect(door.asked.some(({ about }) => about === "override")).toBe(false);
});

test("a call is answered by hand; what the kernel refuses is said where it was written", async () => {
  const door = await open(stateOf(), { "step.do": () => new Error("the call has moved on") });
  await click("Answer by hand…");
  const field = all(".tape-edit textarea")[0] as HTMLTextAreaElement;
  await does(() => {
    field.value = "No.";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await click("Answer with this");
  expect(door.asked.find(({ about }) => about === "step.do")).toMatchObject({ do: "answer", text: "No." });
  expect(text(".tape-edit [role=alert]")).toBe("the call has moved on");
});

test("while recording the request stands first, and can be changed or refused before it goes out", async () => {
  const door = await open(stateOf({ mode: "record", strands: [strandOf({}, { would: "live", span: "", reply: null, request_edit: '{"model":"x"}', can: ["over", "refuse", "request", "stop"] })] }));
  expect(text(".step-head")).toContain("goes out when you step");
  expect(all(".step-body > *")[0]?.className).toBe("step-request");
  await click("Change the request…");
  const field = all(".tape-edit textarea")[0] as HTMLTextAreaElement;
  await does(() => {
    field.value = '{"model":"y"}';
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await click("Change the request");
  expect(door.asked.find(({ about }) => about === "step.do")).toMatchObject({ do: "request", text: '{"model":"y"}' });
});

test("variables are asked for by frame, when it is looked at; what cannot be read is said", async () => {
  const door = await open(stateOf(), { "step.variables": ({ frame }) => (frame === 0 ? VARIABLES : new Error("this frame is gone")) });
  const frames = (): unknown[] => door.asked.filter(({ about }) => about === "step.variables").map(({ frame }) => frame);
  expect(frames()).toEqual([0]);
  await does(() => all(".step-frames [role=option]")[1]?.click());
  expect(frames()).toEqual([0, 1]);
  expect(text(".step-where [role=alert]")).toBe("this frame is gone");
});

test("the variables of two stops are compared", async () => {
  const door = await open(stateOf());
  expect(all(".step-compare")).toHaveLength(0);
  await tell(door, stateOf({ revision: 2, strands: [strandOf({}, { place: ":4", nth: 4, span: "r3/d" })] }));
  const choice = all(".step-compare select")[0] as HTMLSelectElement;
  await does(() => {
    choice.value = ":3";
    choice.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(door.asked.find(({ about }) => about === "step.compare")).toMatchObject({ a: ":3", b: ":4" });
  expect(all(".step-compare tbody tr").map((row) => row.querySelector("th")?.textContent)).toEqual(["answers", "mood"]);
});

test("the bar says which take is played, until edits go to another", async () => {
  const door = await open(stateOf({ plays: "angry" }));
  expect(text(".step-bar")).toContain("take: angry");
  await tell(door, stateOf({ revision: 2, plays: "step", take: "step", edits: 1 }));
  expect(text(".step-bar")).not.toContain("take: ");
  expect(text(".step-take")).toContain("step");
});

test("the end is said until it is put away", async () => {
  const door = await open(stateOf());
  await tell(door, stateOf({ revision: 2, state: "over", strands: [], take: "step", edits: 1, note: "the cell was stopped" }));
  expect(text(".step-says")).toBe("the cell was stopped");
  expect(text(".step-take")).toContain("1\u00a0edit".replace("\u00a0", " "));
  expect(all(".row.is-stop")).toHaveLength(0);
  await click("Close");
  expect(all(".step-bar")).toHaveLength(0);
});

test("Step runs the selected cell where there are cells; else the next one that runs", async () => {
  const door = await open();
  await press(".");
  expect(door.asked.at(-1)).toMatchObject({ about: "step.cell", breaks: [], record: false });
  unmount();
  const widget = await open(null, {}, { ...ABLE, cells: false });
  await click("Step the next cell");
  expect(widget.asked.at(-1)).toMatchObject({ about: "step.arm", cell: "" });
  expect(text(".step-says")).toBe("The next cell that you run stops at each call.");
});

test("hostile texts are text", async () => {
  const bad = '<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>';
  await open(stateOf({ note: bad, strands: [strandOf({ name: bad }, { title: bad, span: "", reply: { text: bad, json: false, whole: true } }), TWO[1] ?? strandOf()] }), {
    "step.frames": () => [{ ...FRAMES[0], file: bad, source: [bad, bad, bad, bad] }],
    "step.variables": () => ({ total: 1, variables: [{ name: bad, type: bad, text: bad, whole: true }] }),
  });
  expect(text(".step-variables")).toContain(bad);
  expect(all("img, script")).toHaveLength(0);
  expect((globalThis as { hit?: number }).hit).toBeUndefined();
});
