import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as cards from "../src/view/panels/index.tsx";
import { mount } from "../src/view/mount.tsx";
import { Desk } from "../src/view/store.ts";
import { FakeDoor } from "./door.ts";
import { detailOf, type Made, pageOf, sessionOf, STORY } from "./rows.ts";

const ABLE = { modes: true, override: true, rerun: true, step: false, cells: true };
const answers = () => ({
  session: (): unknown => sessionOf(),
  spans: (): unknown => pageOf(STORY),
  detail: ({ span }: Record<string, unknown>): unknown => detailOf(String(span)),
  select: (): unknown => ({}),
  mode: ({ mode }: Record<string, unknown>): unknown => sessionOf({ mode: mode as "live" }),
});
let el: HTMLElement;
let unmount: () => void = () => undefined;

beforeEach(() => {
  el = document.createElement("div");
  document.body.append(el);
});
afterEach(() => {
  unmount();
  el.remove();
});

function open(door: FakeDoor): Promise<void> {
  return does(() => {
    unmount = mount(el, door, { loadCards: () => Promise.resolve(cards) });
  });
}
/** What is done, and all that follows from it: answers, drawing, what is asked because of it. */
async function does(what: () => void): Promise<void> {
  await act(what);
  for (let round = 0; round < 6; round++) await act(() => new Promise<void>((done) => setTimeout(done)));
}
function there<T>(found: T | null | undefined): T {
  if (found === null || found === undefined) throw new Error("not in the view");
  return found;
}
const view = (): ShadowRoot => there(el.shadowRoot);
const all = (selector: string): HTMLElement[] => [...view().querySelectorAll<HTMLElement>(selector)];
const rows = (): string[] => all("[role=treeitem] .name b").map((node) => node.textContent);
const text = (selector: string): string => view().querySelector(selector)?.textContent ?? "";
const focused = (): Element | null => view().activeElement;
const press = (key: string, at: Element | null = focused()): Promise<void> => does(() => at?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true })));
const row = (name: string): HTMLElement => there(all("[role=treeitem]").find((node) => node.textContent.includes(name)));
const button = (name: string): HTMLElement | undefined => all("button").find((node) => node.textContent.includes(name) || node.getAttribute("aria-label") === name);
const asked = (door: FakeDoor, about: string): Record<string, unknown>[] => door.asked.filter((one) => one.about === about);

test("the run is a tree: what happened first, the model after it", async () => {
  await open(new FakeDoor({ able: ABLE, title: "churn.ipynb" }, answers()));
  expect(rows()).toEqual(STORY.map(({ name }) => name));
  expect(row("negative").getAttribute("aria-level")).toBe("2");
  expect(row("negative").querySelector(".mark")?.getAttribute("aria-label")).toBe("model call, changed");
  expect(row("negative").querySelector(".mark")?.textContent).toBe("✎");
  expect(text("h1")).toBe("Tape of churn.ipynb");
  expect(text(".sums")).toContain("5\u00a0calls");
});

test("a clicked span opens its conversation, and its cell is shown", async () => {
  const door = new FakeDoor({ able: ABLE }, answers());
  await open(door);
  await does(() => row("shipped").click());
  expect(text(".panel")).toContain("reply of r3/d");
  expect(asked(door, "select")).toMatchObject([{ span: "r3/d", cell: "c3" }]);
});

test("arrows walk and fold, Enter opens, Escape closes and the focus is where it was", async () => {
  await open(new FakeDoor({ able: ABLE }, answers()));
  row("[2] classify").focus();
  await press("ArrowDown");
  expect(focused()?.textContent).toContain("negative");
  await press("ArrowLeft");
  await press("ArrowLeft");
  expect(rows()[1]).toBe("[3] answer");
  await press("ArrowRight");
  await press("ArrowDown");
  await press("Enter");
  expect(text(".panel")).toContain("reply of r2/a");
  await press("Escape");
  expect(view().querySelector(".detail")).toBeNull();
  expect(focused()?.textContent).toContain("negative");
});

test("a refresh takes neither the focus nor the open span", async () => {
  const door = new FakeDoor({ able: ABLE }, answers());
  await open(door);
  row("shipped").focus();
  await does(() => row("shipped").click());
  door.answers.spans = () => pageOf([{ id: "r0", kind: "cell", name: "[1] before", cell: "c1" }, ...STORY], { revision: 2 });
  await does(() => door.tell("changed", { revision: 2, total: 8, running: null, page: null }));
  expect(rows()[0]).toBe("[1] before");
  expect(focused()?.textContent).toContain("shipped");
  expect(text(".panel")).toContain("reply of r3/d");
});

test("what was sent again is folded below what ended it, once; a refresh leaves it open", async () => {
  const again: Made[] = [
    { id: "r1", kind: "cell", name: "[1] ask", cell: "c1" },
    { id: "r1/c", depth: 1, name: '"negative"', cell: "c1" },
    { id: "r1/a", depth: 2, name: "429", mark: "retried", cell: "c1" },
    { id: "r1/b", depth: 2, name: "500", mark: "retried", cell: "c1" },
  ];
  const door = new FakeDoor({ able: ABLE }, { ...answers(), spans: () => pageOf(again) });
  await open(door);
  expect(rows()).toEqual(["[1] ask", '"negative"']);
  row("[1] ask").focus();
  await press("ArrowDown");
  await press("ArrowRight");
  expect(rows()).toEqual(["[1] ask", '"negative"', "429", "500"]);
  door.answers.spans = () => pageOf([...again, { id: "r2", kind: "cell", name: "[2] on", cell: "c2" }], { revision: 2 });
  await does(() => door.tell("changed", { revision: 2, total: 5, running: null, page: null }));
  expect(rows()).toEqual(["[1] ask", '"negative"', "429", "500", "[2] on"]);
});

test("spans appear while a cell records, with what is going on", async () => {
  const door = new FakeDoor({ able: ABLE }, answers());
  await open(door);
  const running = { cell: "c9", mode: "record", calls: 1, seconds: 2 };
  const page = pageOf([{ id: "r9", kind: "cell", name: "[9] report", cell: "c9", mark: "running" }, { id: "r9/a", depth: 1, cell: "c9" }], { from: 7, total: 9 });
  await does(() => door.tell("changed", { revision: 1, total: 9, running, page }));
  expect(rows().slice(7)).toEqual(["[9] report", "r9/a"]);
  expect(text(".live")).toContain("recording [9] report");
  await does(() => door.tell("changed", { revision: 1, total: 9, running: null, page: null }));
  expect(view().querySelector(".live")).toBeNull();
});

test("search narrows as one types; what is left is summed; a chip of a cell clears it", async () => {
  const door = new FakeDoor({ able: ABLE }, answers());
  await open(door);
  row("[2] classify").focus();
  await press("/");
  const box = focused() as HTMLInputElement;
  expect(box.type).toBe("search");
  await does(() => {
    box.value = "shipped";
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
  });
  expect(rows()).toEqual(["[3] answer", '"Order #4421 is shipped."']);
  expect(text(".sums")).toContain("1\u00a0of\u00a07\u00a0spans");
  await press("Escape");
  await does(() => door.tell("focus", { cell: "c2" }));
  expect(rows()).toEqual(["[2] classify", '"negative"']);
  await does(() => there(all(".chip")[0]).click());
  expect(rows()).toHaveLength(7);
  await does(() => door.tell("focus", { cell: "c2" }));
  await does(() => door.tell("focus", { cell: "of-no-calls" }));
  expect(rows()).toHaveLength(7);
});

test("letters typed in a field are text", async () => {
  await open(new FakeDoor({ able: ABLE }, answers()));
  await does(() => row("shipped").click());
  await press("e", view().querySelector("[data-search]"));
  expect(view().querySelector(".tape-edit")).toBeNull();
});

test("keys typed in the view are kept from the notebook; saving is not", async () => {
  await open(new FakeDoor({ able: ABLE }, answers()));
  const key = (init: KeyboardEventInit): boolean => {
    const event = new KeyboardEvent("keydown", { bubbles: true, composed: true, ...init });
    let kept = false;
    // What the notebook's own listener finds where it looks: at the event's target.
    const listen = ({ target }: Event): void => void (kept = (target as Element).hasAttribute("data-lm-suppress-shortcuts"));
    window.addEventListener("keydown", listen, { once: true, capture: true });
    row("negative").dispatchEvent(event);
    return kept;
  };
  expect(key({ key: "d" })).toBe(true);
  expect(key({ key: "Enter", shiftKey: true })).toBe(true);
  expect(key({ key: "s", ctrlKey: true })).toBe(false);
});

test("an empty tape names the one command that fills it", async () => {
  await open(new FakeDoor({ able: ABLE }, { ...answers(), spans: () => pageOf([]) }));
  expect(text(".nothing code")).toBe("%%tape record");
});

test("what went wrong is said in its place, and can be tried again", async () => {
  const door = new FakeDoor({ able: ABLE }, { ...answers(), spans: () => new Error("main.tape.yaml:12: not a tape") });
  await open(door);
  expect(text("[role=alert]")).toContain("main.tape.yaml:12");
  door.answers.spans = () => pageOf(STORY);
  await does(() => there(button("Try again")).click());
  expect(rows()).toHaveLength(7);
  door.answers.detail = () => new Error("gone");
  await does(() => row("shipped").click());
  expect(text(".detail [role=alert]")).toContain("gone");
});

test("an error opens by itself, and says what it was above everything", async () => {
  const failed = [...STORY, { id: "r3/e", depth: 1, name: "429 rate_limit", mark: "error", cell: "c3" } as const];
  await open(new FakeDoor({ able: ABLE }, { ...answers(), spans: () => pageOf(failed), detail: ({ span }) => detailOf(String(span), { error: "RateLimitError: 429", turns: [] }) }));
  expect(text(".error")).toBe("RateLimitError: 429");
});

test("a door that cannot change or run anything draws no buttons for it", async () => {
  await open(new FakeDoor({}, answers()));
  await does(() => row("shipped").click());
  expect(text(".panel")).toContain("reply of");
  for (const name of ["Edit reply", "Fault", "Re-run", "Record"]) expect(button(name)).toBeUndefined();
});

test("a mode is asked for, and shown when the door says so", async () => {
  const door = new FakeDoor({ able: ABLE }, answers());
  await open(door);
  await does(() => there(button("Record")).click());
  expect(asked(door, "mode")).toMatchObject([{ mode: "record" }]);
  expect(button("Record")?.getAttribute("aria-pressed")).toBe("true");
});

test("record and replay stand in the bar, beside step; the other modes are one menu deeper", async () => {
  const door = new FakeDoor({ able: ABLE }, answers());
  await open(door);
  const names = [...view().querySelectorAll(".modes > button")].map((each) => each.textContent);
  expect(names).toEqual(["Record", "Replay"]);
  const more = there(view().querySelector<HTMLSelectElement>('select[aria-label="Other modes"]'));
  expect([...more.options].map(({ value }) => value)).toEqual(["", "off", "live", "once", "new_episodes"]);
  await does(() => {
    more.value = "live";
    more.dispatchEvent(new Event("change", { bubbles: true }));
  });
  expect(asked(door, "mode")).toMatchObject([{ mode: "live" }]);
});

test("a scroll draws when another row comes to the top, not at each of its steps", async () => {
  const many = Array.from({ length: 200 }, (_, at) => ({ id: `r${at}`, name: `row ${at}` }));
  await open(new FakeDoor({ able: ABLE }, { ...answers(), spans: () => pageOf(many) }));
  const list = there(view().querySelector(".scroll"));
  const drawn = vi.spyOn(Desk.prototype, "visible", "get");
  const scroll = (to: number): Promise<void> => does(() => {
    list.scrollTop = to;
    list.dispatchEvent(new Event("scroll"));
  });
  for (const to of [3, 9, 23]) await scroll(to);
  expect(drawn).not.toHaveBeenCalled();
  await scroll(24 * 100);
  expect(drawn).toHaveBeenCalled();
  drawn.mockRestore();
  expect(rows()).toContain("row 100");
});

test("tabs hold what there is of a span: arrows turn them", async () => {
  await open(new FakeDoor({ able: ABLE }, answers()));
  await does(() => row("shipped").click());
  const tab = (): HTMLElement => there(view().querySelector<HTMLElement>('[role=tab][aria-selected="true"]'));
  expect(tab().textContent).toBe("Conversation");
  tab().focus();
  await press("ArrowRight");
  expect(tab().textContent).toBe("Request");
  expect(focused()).toBe(tab());
  expect(text(".panel")).toContain('"model": "claude-sonnet-5"');
});

test("rows come page after page, the first ones at once", async () => {
  const many = Array.from({ length: 12_000 }, (_, at) => ({ id: `s${at}` }));
  const door = new FakeDoor({ able: ABLE }, { ...answers(), spans: ({ from, limit }) => pageOf(many.slice(Number(from), Number(from) + Number(limit)), { from: Number(from), total: 12_000 }) });
  await open(door);
  expect(asked(door, "spans").map(({ from }) => from)).toEqual([0, 5000, 10_000]);
  expect(all("[role=treeitem]").length).toBeLessThan(60);
});

test("a view that is mounted again asks again and shows the same", async () => {
  const door = new FakeDoor({ able: ABLE }, answers());
  await open(door);
  unmount();
  expect(view().childElementCount).toBe(0);
  await open(door);
  expect(rows()).toHaveLength(7);
});
