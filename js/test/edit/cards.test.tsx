/** Plan, progress, divergence, comparison and takes, over a fake door. */
import { beforeEach, expect, test, vi } from "vitest";
import { Front } from "../../src/view/panels/panelSwitch.tsx";
import { chain } from "../../src/view/panels/takes.tsx";
import { TakeMenu } from "../../src/view/edit/takes.tsx";
import type { Comparison, Plan } from "../../src/view/protocol.ts";
import { ABLE, Room } from "./room.tsx";
import { COMPARISON, DIVERGENCE, PLAN, SESSION } from "./samples.ts";

beforeEach(() => {
  vi.useFakeTimers();
});

const PROGRESS = { done: 1, total: 4, cell: "b", title: "[3] answer", state: "running" };

async function fronted(room = new Room(), able = ABLE): Promise<Room> {
  await room.show(<Front work={room.work} able={able} />);
  return room;
}

async function planned(plan: Plan = PLAN, able = ABLE): Promise<Room> {
  const room = await fronted(new Room({ plan: () => plan }), able);
  await room.do(() => room.work.plan("angry-customer"));
  return room;
}

async function compared(part: Partial<Comparison> = {}): Promise<Room> {
  const room = await fronted();
  await room.tell("done", { ...COMPARISON, ...part });
  return room;
}

test("the plan says which cells may ask anew, and at what price", async () => {
  const price = async (cost: number | null) => {
    const cells = PLAN.cells.map((cell) => cell.number === 3 ? { ...cell, asks: 1, cost } : cell);
    return (await planned({ ...PLAN, cells })).text;
  };
  expect(await price(0.0042)).toContain("may go live: 1 ($0.0042)");
  expect(await price(null)).toContain("may go live: 1 (price not known)");
  expect(await price(0)).toContain("may go live: 1 ($0)");
});

test("the plan says how many cells, what answers them, and why each", async () => {
  const room = await planned();
  expect(room.text).toContain("Re-run 4 of 9 cells");
  expect(room.text).toContain("recorded: 4 calls · may go live: 1 (asks first)");
  expect(room.all(".tape-plan li").map((row) => row.querySelector("small")?.textContent)).toContain("reads mood, set by [2]");
  expect(room.text).toContain("re-running repeats it");
});

test("the focus moves to the plan, and back to Edit when it goes", async () => {
  const room = new Room();
  const button = document.body.appendChild(document.createElement("button"));
  button.dataset.back = "edit";
  button.focus();
  await room.do(() => room.work.plan("angry-customer"));
  await room.show(<Front work={room.work} able={ABLE} />);
  button.blur();
  await room.show(null);
  expect(document.activeElement).toBe(button);
  button.remove();
});

test("a plan that opens takes the focus; a person at work in a cell keeps it", async () => {
  const room = await planned();
  expect(document.activeElement?.textContent).toContain("Re-run 4 of 9");
  const cell = document.body.appendChild(document.createElement("textarea"));
  cell.focus();
  await room.tell("done", COMPARISON);
  expect(document.activeElement).toBe(cell);
  cell.remove();
});

test("cells can be ticked out and in, and only those run", async () => {
  const room = await planned();
  await room.do(() => room.field("[7] report").click());
  expect(room.text).toContain("Re-run 3 of 9 cells");
  await room.click("Re-run");
  expect(room.asked("rerun")[0]).toMatchObject({ take: "angry-customer", entries: [1, 2, 4], fresh: false, on_divergence: "stop" });
});

test("a cell that is ticked out though another needs it: that is said", async () => {
  const room = await planned();
  await room.do(() => room.field("[3] answer").click());
  expect(room.field("[3] answer").closest("li")?.textContent).toContain("[7] needs it, and will read what is there now");
  await room.do(() => room.field("[7] report").click());
  expect(room.text).not.toContain("needs it");
});

test("who needs whom is read from the reasons where the plan does not say", async () => {
  const room = await planned({ ...PLAN, cells: PLAN.cells.map(({ needs: _, ...cell }) => cell) });
  await room.do(() => room.field("[2] classify").click());
  expect(room.field("[2] classify").closest("li")?.textContent).toContain("[3] needs it");
});

test("run everything fresh runs every cell, in a new kernel", async () => {
  const room = await planned({ ...PLAN, hermetic: "`rows` is a generator: only a fresh kernel has it as it was." });
  expect(room.text).toContain("only a fresh kernel");
  await room.do(() => room.field("run everything fresh").click());
  expect(room.text).toContain("Re-run 9 of 9 cells");
  await room.type("where a request has changed", "stale");
  await room.click("Re-run");
  expect(room.asked("rerun")[0]).toMatchObject({ fresh: true, on_divergence: "stale" });
});

test("nothing runs before Re-run is pressed; Cancel and Escape leave all as it was", async () => {
  const room = await planned();
  await room.click("Cancel");
  expect(room.work.state.phase).toBe("idle");
  await room.do(() => room.work.plan("angry-customer"));
  await room.press("Escape", room.all("h2")[0]);
  expect(room.work.state.phase).toBe("idle");
  expect(room.asked("rerun")).toEqual([]);
});

test("a door that cannot run cells says which line does", async () => {
  const room = await planned(PLAN, { ...ABLE, rerun: false });
  expect(room.button("Re-run").disabled).toBe(true);
  expect(room.text).toContain("%tape rerun angry-customer");
});

test("a plan that cannot be made says why", async () => {
  const room = await fronted(new Room({ plan: () => new Error("no cell of this kernel holds the call") }));
  await room.do(() => room.work.plan("angry-customer"));
  expect(room.all('[role="alert"]')[0]?.textContent).toContain("no cell of this kernel");
});

test("what an edit brought about by itself is said above the plan", async () => {
  const notes = ["stop_reason is `end_turn` now", "usage is stale: it is that of the recorded reply"];
  const room = await fronted(new Room({ override: ({ take }) => ({ take, session: SESSION, plan: null, notes }) }));
  await room.do(() => room.work.override("r-1/c-1", { form: "fields", fields: [] }, "calm", false));
  expect(room.asked("plan")[0]).toMatchObject({ take: "calm" });
  expect(room.text).toContain("stop_reason is end_turn now");
  expect(room.text).toContain("Re-run 4 of 9 cells");
});

test("a take that is saved where no plan can be made: both are said", async () => {
  const room = await fronted(new Room({ override: ({ take }) => ({ take, session: SESSION, plan: null }), plan: () => new Error("this kernel ran none of its cells") }));
  await room.do(() => room.work.override("r-1/c-1", { form: "fields", fields: [] }, "calm", false));
  expect(room.text).toContain("Saved as take calm");
  expect(room.text).toContain("this kernel ran none of its cells");
});

test("what was planned from a cell is re-run from that cell", async () => {
  const room = await fronted();
  await room.do(() => room.work.plan("angry-customer", ["r-1/c-1"]));
  await room.click("Re-run");
  expect(room.asked("rerun")[0]).toMatchObject({ changed: ["r-1/c-1"] });
});

test("a re-run that fails on our side says so", async () => {
  const room = await fronted();
  await room.tell("progress", PROGRESS);
  await room.tell("failed", { text: "OSError: disk full" });
  expect(room.all('[role="alert"]')[0]?.textContent).toContain("disk full");
});

test("a refused re-run is said, and the plan stays", async () => {
  const room = await fronted(new Room({ rerun: () => new Error("the kernel is busy") }));
  await room.do(() => room.work.plan("angry-customer"));
  await room.click("Re-run");
  expect(room.text).toContain("the kernel is busy");
  expect(room.text).toContain("Re-run 4 of 9 cells");
});

test("a quick re-run shows no progress; a longer one shows each cell", async () => {
  const room = await fronted();
  await room.tell("progress", PROGRESS);
  expect(room.all("progress")).toEqual([]);
  await room.wait(250);
  expect(room.text).toContain("Re-running: 1 of 4");
  await room.tell("progress", { ...PROGRESS, done: 2, title: "[5] load rows", state: "restoring" });
  expect(room.text).toContain("putting values back for [5] load rows");
});

test("a re-run is cancelled at any moment, and what it put aside comes back", async () => {
  const room = await fronted();
  await room.tell("progress", PROGRESS);
  await room.wait(250);
  await room.click("Cancel");
  expect(room.asked("cancel")).toHaveLength(1);
  expect(room.text).toContain("putting everything back");
  await room.tell("cancelled", {});
  expect(room.work.state.phase).toBe("idle");
});

test("a divergence shows the field that differs, recorded beside now", async () => {
  const room = await fronted();
  await room.tell("diverged", DIVERGENCE);
  const row = room.all("tbody tr")[0];
  expect(row?.querySelector("th")?.textContent).toBe("messages[1].content");
  expect([...(row?.querySelectorAll("del") ?? [])].map((each) => each.textContent).join("|")).toContain("negative");
  expect(room.button("Go live").textContent).toContain("$0.004");
});

test.each([["Go live", "live"], ["Keep the recorded one", "stale"], ["Skip", "skip"]])("%s answers the divergence", async (name, choice) => {
  const room = await fronted();
  await room.tell("diverged", DIVERGENCE);
  await room.click(name);
  expect(room.asked("resolve")[0]).toMatchObject({ divergence: "d-1", choice });
  expect(room.text).not.toContain("the request has changed");
});

test("what was chosen for the rest of the re-run answers what comes after, where it can", async () => {
  const room = await fronted();
  await room.tell("diverged", DIVERGENCE);
  await room.do(() => room.field("the same for the rest of this re-run").click());
  await room.click("Keep the recorded one");
  await room.tell("diverged", { ...DIVERGENCE, id: "d-2" });
  expect(room.asked("resolve").map(({ divergence, choice }) => [divergence, choice])).toEqual([["d-1", "stale"], ["d-2", "stale"]]);
  expect(room.text).not.toContain("the request has changed");
  await room.tell("diverged", { ...DIVERGENCE, id: "d-3", choices: ["live"] });
  expect(room.text).toContain("the request has changed");
  expect(room.asked("resolve")).toHaveLength(2);
});

test("one's own reply starts from the recorded one, and must be of its form", async () => {
  const room = await fronted();
  await room.tell("diverged", DIVERGENCE);
  await room.click("Write the reply");
  expect(room.field("The reply").value).toBe(DIVERGENCE.reply?.text);
  await room.type("The reply", "{");
  expect(room.button("Give this reply").disabled).toBe(true);
  await room.type("The reply", '{"content": []}');
  await room.click("Give this reply");
  expect(room.asked("resolve")[0]).toMatchObject({ choice: "write", reply: '{"content": []}' });
});

test("a divergence offers only what can be done, and the way out", async () => {
  const room = await fronted();
  await room.tell("diverged", { ...DIVERGENCE, choices: ["live"], recorded: null, cost: null });
  expect(room.all("button").map((each) => each.textContent)).toEqual(["Go live (cost unknown)", "Cancel the re-run"]);
});

test("the comparison shows changed cells before and after, and names the others", async () => {
  const room = await compared();
  expect(room.text).toContain("4 cells ran, 2 changed");
  expect(room.text).toContain("The same as before: [5] load rows");
  expect(room.text).toContain("Not run: [9]");
  expect(room.all("ins").map((each) => each.textContent)).toContain("angry");
});

test("long stretches of the same lines are folded, and open", async () => {
  const room = await compared();
  expect(room.text).not.toContain("line 15");
  await room.click("lines that are the same");
  expect(room.text).toContain("line 15");
});

test("aligned calls say what became of each; a click opens one", async () => {
  const room = await compared();
  expect(room.all(".tape-aligned [role=img]").map((each) => each.getAttribute("aria-label"))).toEqual(["changed", "the same", "gone", "new"]);
  await room.click("refund");
  expect(room.opened).toEqual(["r-1/3"]);
});

test.each([
  ["running", "", "proving in a fresh kernel…"], ["proved", "", "proved in a fresh kernel ✓"],
  ["not provable", "cell 3 needs the network", "not provable: cell 3 needs the network"], ["differs", "[8] also depends on this.", "a fresh kernel differs: [8] also depends on this."],
] as const)("the proof, %s, is said", async (state, text, said) => {
  const room = await compared({ proof: { state, text, adopt: [] } });
  expect(room.all(".tape-proof")[0]?.textContent).toContain(said);
});

test("what the proof found can be adopted, and is planned anew", async () => {
  const room = await compared({ proof: { state: "differs", text: "[8] also depends on this.", adopt: ["f"] } });
  await room.click("Plan with it");
  expect(room.asked("adopt")[0]).toMatchObject({ take: "angry-customer", cells: ["f"] });
  expect(room.text).toContain("Re-run 4 of 9 cells");
});

test("the end of the proof comes in without closing what is open", async () => {
  const room = await compared({ proof: { state: "running", text: "", adopt: [] } });
  await room.click("lines that are the same");
  await room.tell("done", COMPARISON);
  expect(room.text).toContain("proved in a fresh kernel ✓");
  expect(room.text).toContain("line 15");
});

test("a re-run that stopped says where, and shows what ran", async () => {
  const room = await compared({ stopped: "[7] report raised ValueError" });
  expect(room.all('[role="alert"]')[0]?.textContent).toContain("[7] report raised ValueError");
});

test.each([["Keep", "keep", ""], ["Make default", "default", "Make it the default"]])("%s is done to the take, and closes", async (name, about, confirm) => {
  const room = await compared();
  await room.click(name);
  if (confirm) {
    expect(room.asked(about)).toEqual([]);
    await room.click(confirm);
  }
  expect(room.asked(about)[0]).toMatchObject({ take: "angry-customer" });
  expect(room.sessions).toHaveLength(1);
  expect(room.work.state.phase).toBe("idle");
});

test("of a discarded take nothing is proved or shown, until it is taken back", async () => {
  const room = await compared({ proof: { state: "running", text: "", adopt: [] } });
  await room.click("Discard");
  expect(room.text).toContain("moved aside");
  expect(room.text).not.toMatch(/proving|show the original/);
  await room.click("Undo");
  expect(room.asked("undo")[0]).toMatchObject({ take: "angry-customer" });
  await room.tell("done", COMPARISON);
  expect(room.text).toContain("proved in a fresh kernel ✓");
  expect(room.text).toContain("show the original");
});

test("a proof that ends while the next re-run is planned leaves the plan in front", async () => {
  const room = await planned(PLAN);
  await room.tell("done", COMPARISON);
  expect(room.work.state.phase).toBe("plan");
});

test("the original is one click away", async () => {
  const room = await compared();
  await room.click("show the original");
  expect(room.asked("open")[0]).toMatchObject({ take: "" });
});

const HOSTILE = ['</script><img src=x onerror="globalThis.ran = 1">', "<svg onload=alert(1)>", "`<b>`<script>globalThis.ran = 1</script>"];

test.each(HOSTILE)("hostile text stays text in every card: %s", async (text) => {
  const room = await planned({ ...PLAN, warnings: [text], hermetic: text, cells: PLAN.cells.map((cell) => ({ ...cell, title: text, reasons: [text] })) });
  const bad = () => room.all("img, script, svg, iframe, b b");
  expect(bad()).toEqual([]);
  await room.tell("diverged", { ...DIVERGENCE, title: text, fields: [{ path: text, recorded: "x", now: text }], asked: { text, json: false, whole: true } });
  expect(bad()).toEqual([]);
  const outputs = (["text", "table", "error"] as const).map((kind) => ({ kind, before: "x", after: text }));
  await room.tell("done", {
    ...COMPARISON, stopped: text, skipped: [text], proof: { state: "differs", text, adopt: [text] },
    cells: [{ cell: "a", number: 1, title: text, same: false, outputs: [...outputs, { kind: "image", before: `data:image/svg+xml,${text}`, after: `https://example.test/${text}` }] }],
    spans: [{ before: null, after: text, name: text, mark: "added", note: text }], variables: [{ name: text, before: text, after: "x" }],
  });
  expect(bad()).toEqual([]);
  expect(room.text).toContain("a picture that cannot be shown");
  expect((globalThis as { ran?: number }).ran).toBeUndefined();
});

async function takes(session = SESSION, able = ABLE, answers = {}): Promise<Room> {
  const room = new Room(answers);
  await room.show(<TakeMenu work={room.work} session={session} able={able} />);
  await room.click("▾");
  return room;
}

test("the menu shows the recording first, and each take below what it was made from", async () => {
  expect(chain(SESSION.takes).map(({ take, depth }) => [take.name, depth])).toEqual([["angry-customer", 1], ["angry-customer-2", 2], ["calm", 1]]);
  const room = await takes();
  expect(room.all("li")[0]?.textContent).toContain("the original, never changed");
  expect(room.all("li[aria-current]")[0]?.textContent).toContain("angry-customer-2");
  expect(room.all("li")[2]?.textContent).toContain("of angry-customer");
});

test("takes that name each other in a ring do not hang the menu", () => {
  const [one, two] = SESSION.takes;
  if (!one || !two) throw new Error("two takes are needed");
  expect(chain([{ ...one, of: two.name }, { ...two, of: one.name }])).toEqual([]);
});

test("one click opens the recording", async () => {
  const room = await takes();
  await room.click("the recording");
  expect(room.asked("open")[0]).toMatchObject({ cassette: "main", take: "" });
  expect(room.sessions).toHaveLength(1);
  expect(room.all("li")).toEqual([]);
});

test("the open take is re-run, put aside, made default or stepped back", async () => {
  const room = await takes();
  await room.click("Make default");
  await room.click("Leave it");
  expect(room.asked("default")).toEqual([]);
  await room.click("Make default");
  expect(room.text).toContain("The recording stays; Not the default, among the takes, takes it back.");
  await room.click("Make it the default");
  expect(room.asked("default")[0]).toMatchObject({ take: "angry-customer-2" });
  await room.click("Undo last change");
  expect(room.asked("undo")[0]).toMatchObject({ take: "angry-customer-2" });
  await room.click("Put aside");
  expect(room.asked("discard")[0]).toMatchObject({ take: "angry-customer-2" });
  expect(room.text).toContain("the recording is as it was");
});

test.each([[["c2", "c5"]], [[]]])("putting aside asks of the cells that show what the take gave: %j", async (cells) => {
  const room = await takes(SESSION, ABLE, { discard: () => ({ ...SESSION, cells }) });
  await room.click("Put aside");
  expect(room.text.includes("The cells of the notebook still show what the take gave.")).toBe(cells.length > 0);
  if (!cells.length) return;
  await room.click("Re-run them on the recording");
  expect(room.asked("plan")[0]).toMatchObject({ take: SESSION.cassette, changed: cells });
});

test("Re-run in the menu opens the plan", async () => {
  const room = await takes();
  await room.click("Re-run…");
  expect(room.asked("plan")[0]).toMatchObject({ take: "angry-customer-2" });
});

test("a default can be taken back", async () => {
  const room = await takes({ ...SESSION, take: "calm" });
  await room.click("Not the default");
  expect(room.asked("default")[0]).toMatchObject({ take: "" });
});

test("a door that cannot change anything offers no change", async () => {
  const room = await takes(SESSION, { ...ABLE, override: false, rerun: false });
  expect(room.all(".tape-actions")).toEqual([]);
});

test("Escape closes the menu and gives the focus back to its button", async () => {
  const room = await takes();
  await room.press("Escape", room.button("the recording"));
  expect(room.all("li")).toEqual([]);
  expect(document.activeElement).toBe(room.button("▾"));
});

test("what a take's action refuses is said", async () => {
  const room = await takes(SESSION, ABLE, { default: () => new Error("the folder is read-only") });
  await room.click("Make default");
  await room.click("Make it the default");
  expect(room.all('[role="alert"]').map((each) => each.textContent).join()).toContain("read-only");
});
