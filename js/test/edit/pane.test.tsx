import { beforeEach, expect, test, vi } from "vitest";
import { EditPane } from "../../src/view/panels/pane.tsx";
import type { OpenEditor } from "../../src/editor/types.ts";
import { EDITABLE, MESSAGE, VALUE } from "./samples.ts";
import { Room } from "./room.tsx";

beforeEach(() => {
  vi.useFakeTimers();
});

const PAUSE = 300; // ms, more than the view waits for before it asks

async function opened(room: Room, span = "r-1/c-1", close: () => void = () => undefined): Promise<Room> {
  await room.show(<EditPane work={room.work} span={span} onClose={close} />);
  return room;
}

test("a message opens as one field a text, tool name, arguments and stop reason, with the first in focus", async () => {
  const room = await opened(new Room());
  expect(room.field("text").value).toContain("Sentiment: negative");
  expect(room.field("tool 1: name").value).toBe("lookup_order");
  expect(room.field("tool 1: arguments").value).toContain('"my order"');
  expect(room.field("stop reason").value).toBe("tool_use");
  expect(document.activeElement).toBe(room.field("text"));
});

test("what differs from the recording is marked as one types", async () => {
  const room = await opened(new Room());
  await room.type("text", "The customer sounds upset.\nSentiment: positive");
  expect(room.all("del").map((each) => each.textContent)).toEqual(["negative"]);
  expect(room.all("ins").map((each) => each.textContent)).toEqual(["positive"]);
});

test("nothing can be saved before something has changed", async () => {
  const room = await opened(new Room());
  expect(room.button("Save").disabled).toBe(true);
  await room.type("text", "calm");
  expect(room.button("Save").disabled).toBe(false);
  await room.click("as recorded");
  expect(room.button("Save").disabled).toBe(true);
});

test("an empty text is a reply too", async () => {
  const room = await opened(new Room());
  await room.type("text", "");
  await room.click("Save");
  expect(room.asked("override")[0]?.edit).toEqual({ form: "fields", fields: [{ path: "content[0].text", value: "" }] });
});

test("arguments that are no JSON are said beside their field, and hold Save back", async () => {
  const room = await opened(new Room());
  await room.type("tool 1: arguments", '{"query": ');
  expect(room.button("Save").disabled).toBe(true);
  const field = room.field("tool 1: arguments");
  expect(field.getAttribute("aria-invalid")).toBe("true");
  expect(field.closest(".tape-field")?.textContent).toContain("Not JSON");
});

test("a returned value that is no JSON cannot be saved", async () => {
  const room = await opened(new Room({ edit: () => VALUE }));
  await room.type("Returned value as JSON", "[1, 2");
  expect(room.text).toContain("Not JSON");
  expect(room.button("Save").disabled).toBe(true);
  await room.type("Returned value as JSON", "[1, 2]");
  await room.click("Save");
  expect(room.asked("override")[0]?.edit).toEqual({ form: "value", value: "[1, 2]" });
});

test("a breach of the tool's schema is said at its field, and is saved only with a tick", async () => {
  const problem = { level: "warning", path: "content[1].input", text: "limit: 3 expected a string" };
  const room = await opened(new Room({ check: () => ({ problems: [problem] }) }));
  await room.type("tool 1: arguments", '{"limit": 4}');
  await room.wait(PAUSE);
  expect(room.field("tool 1: arguments").closest(".tape-field")?.textContent).toContain("expected a string");
  expect(room.button("Save").disabled).toBe(true);
  await room.do(() => room.field("keep it as it is").click());
  await room.click("Save");
  expect(room.asked("override")[0]).toMatchObject({ accept: true });
});

test("a tick holds for what it was given to, not for what is typed after it", async () => {
  const problem = { level: "warning", path: "", text: "dangling tool call" };
  const room = await opened(new Room({ check: () => ({ problems: [problem] }) }));
  await room.type("text", "one");
  await room.wait(PAUSE);
  await room.do(() => room.field("keep it as it is").click());
  await room.type("text", "two");
  await room.wait(PAUSE);
  expect(room.button("Save").disabled).toBe(true);
});

test("a dangling tool call is said with its reason", async () => {
  const problem = { level: "error", path: "content[1].name", text: "The next request answers toolu_1, which this message no longer calls." };
  const room = await opened(new Room({ check: () => ({ problems: [problem] }) }));
  await room.type("tool 1: name", "other");
  await room.wait(PAUSE);
  expect(room.field("tool 1: name").closest(".tape-field")?.textContent).toContain("no longer calls");
  expect(room.button("Save").disabled).toBe(true);
});

test("Save pressed before the check came back waits for it, and a warning stops it", async () => {
  const problem = { level: "warning", path: "", text: "the stop reason does not fit" };
  const room = await opened(new Room({ check: () => ({ problems: [problem] }) }));
  await room.type("text", "calm");
  await room.click("Save");
  expect(room.asked("override")).toEqual([]);
  expect(room.text).toContain("does not fit");
});

test("Save names the take, hands the session on and shows the plan", async () => {
  let closed = 0;
  const room = await opened(new Room(), "r-1/c-1", () => closed++);
  await room.type("text", "calm");
  await room.type("as take", "calm-customer");
  await room.click("Save");
  expect(room.asked("override")[0]).toMatchObject({ span: "r-1/c-1", take: "calm-customer", accept: false });
  expect(room.sessions).toHaveLength(1);
  expect(room.work.state.phase).toBe("plan");
  expect(closed).toBe(1);
});

test.each(["", "../x", "Angry", "a b", "x".repeat(65)])("a take cannot be called %j", async (name) => {
  const room = await opened(new Room());
  await room.type("text", "calm");
  await room.type("as take", name);
  expect(room.button("Save").disabled).toBe(true);
  expect(room.text).toContain("a-z, 0-9 and -");
});

test("a refused override is said, and what was typed stays", async () => {
  const room = await opened(new Room({ override: () => new Error("another kernel has re-recorded this call (run r-9)") }));
  await room.type("text", "calm");
  await room.click("Save");
  expect(room.all('[role="alert"]').map((each) => each.textContent).join()).toContain("run r-9");
  expect(room.field("text").value).toBe("calm");
});

test("Escape and Cancel close and keep the draft; opening again shows it", async () => {
  let closed = 0;
  const room = await opened(new Room(), "r-1/c-1", () => closed++);
  await room.type("text", "half a thought");
  await room.press("Escape", room.field("text"));
  expect(closed).toBe(1);
  await room.show(null);
  await opened(room);
  expect(room.field("text").value).toBe("half a thought");
  await room.click("undo all changes");
  expect(room.field("text").value).toBe(EDITABLE.fields[0]?.value);
});

test("each span has its own draft", async () => {
  const room = await opened(new Room());
  await room.type("text", "of the first");
  await opened(room, "r-1/c-9");
  expect(room.field("text").value).toContain("negative");
  await opened(room, "r-1/c-1");
  expect(room.field("text").value).toBe("of the first");
});

test("a saved draft is gone", async () => {
  const room = await opened(new Room());
  await room.type("text", "calm");
  await room.click("Save");
  expect(room.work.drafts.size).toBe(0);
});

test("the JSON tab shows what was typed in the fields, and the fields what was typed there", async () => {
  const room = await opened(new Room());
  await room.type("text", 'say "hi"');
  await room.click("JSON");
  const json = room.field("Whole message as JSON");
  expect(json.value).toBe(MESSAGE.replace('"The customer sounds upset.\\nSentiment: negative"', '"say \\"hi\\""'));
  await room.type("Whole message as JSON", json.value.replace("lookup_order", "lookup_invoice"));
  await room.click("Message");
  expect(room.field("tool 1: name").value).toBe("lookup_invoice");
  await room.click("Save");
  const edit = room.asked("override")[0]?.edit as { form: string; message: string };
  expect(edit.form).toBe("message");
  expect(edit.message).toContain("12345678901234567890"); // a number that parsing would round
});

test("status, headers and body are edited on the raw tab", async () => {
  const room = await opened(new Room());
  await room.click("Raw");
  await room.type("Status", "20");
  expect(room.button("Save").disabled).toBe(true);
  await room.type("Status", "529");
  await room.type("Headers", "retry-after: 2");
  await room.type("Body", "busy");
  await room.click("Save");
  expect(room.asked("override")[0]?.edit).toEqual({ form: "raw", status: 529, headers: [["retry-after", "2"]], body: "busy" });
});

test("a header that would split the reply is refused", async () => {
  const room = await opened(new Room());
  await room.click("Raw");
  await room.type("Headers", "x y: 2");
  expect(room.button("Save").disabled).toBe(true);
});

test("a fault is chosen with its numbers and saved as an override", async () => {
  const room = new Room();
  await room.show(<EditPane work={room.work} span="r-1/c-1" start="fault" onClose={() => undefined} />);
  await room.do(() => room.field("the connection breaks midway").click());
  await room.type("after events", "soon");
  expect(room.button("Save").disabled).toBe(true);
  await room.type("after events", "5");
  await room.click("Save");
  expect(room.asked("override")[0]?.edit).toEqual({ form: "fault", name: "reset", options: { after: 5 } });
});

test("a fault's yes or no is a box to tick", async () => {
  const room = new Room();
  await room.show(<EditPane work={room.work} span="r-1/c-1" start="fault" onClose={() => undefined} />);
  await room.do(() => room.field("429, rate limit").click());
  const box: HTMLElement = room.field("its body breaks off halfway");
  expect(box.matches("[type=checkbox]:checked")).toBe(true);
  await room.do(() => box.click());
  await room.click("Save");
  expect(room.asked("override")[0]?.edit).toEqual({ form: "fault", name: "rate_limit", options: { partial: "false" } });
});

test("what was changed on another tab is kept, and is said not to be in this save", async () => {
  const room = await opened(new Room());
  await room.type("text", "calm");
  await room.click("Raw");
  await room.type("Status", "500");
  expect(room.text).toContain("changed on the Message tab is kept here, unsaved");
});

test("a paste of 10 MB is refused before it lands, and the limit is said", async () => {
  const room = await opened(new Room());
  const paste = new Event("paste", { bubbles: true, cancelable: true });
  Object.assign(paste, { clipboardData: { getData: () => "x".repeat(10 * 2 ** 20) } });
  await room.do(() => room.field("text").dispatchEvent(paste));
  expect(paste.defaultPrevented).toBe(true);
  expect(room.text).toContain("What you pasted is 10 MiB; an edit holds at most 4 MiB. Nothing was pasted.");
});

test("a text over 4 MiB cannot be saved", async () => {
  const room = await opened(new Room());
  await room.type("text", "é".repeat(2.1 * 2 ** 20));
  expect(room.text).toContain("an edit holds at most 4 MiB");
  expect(room.button("Save").disabled).toBe(true);
});

const HOSTILE = ['</script><img src=x onerror="globalThis.ran = 1">', "<svg onload=alert(1)>", '"><script>globalThis.ran = 1</script>', "javascript:alert(1)"];

test.each(HOSTILE)("hostile text stays text: %s", async (text) => {
  const field = { path: "content[0].text", label: text, kind: "text" as const, value: text };
  const choice = { path: "stop_reason", label: "stop reason", kind: "choice" as const, value: text, choices: [text] };
  const problem = { level: "warning", path: "content[0].text", text };
  const room = await opened(new Room({
    edit: () => ({ ...EDITABLE, fields: [field, choice], faults: [{ name: text, label: text, options: [{ name: text, label: text, value: text }] }] }),
    check: () => ({ problems: [problem] }), override: () => new Error(text),
  }));
  await room.type(text, `${text} more`);
  await room.wait(PAUSE);
  await room.do(() => room.field("keep it as it is").click());
  await room.click("Save");
  expect(room.all("img, script, svg, iframe, a")).toEqual([]);
  expect(room.text).toContain(text);
  expect((globalThis as { ran?: number }).ran).toBeUndefined();
});

test("without an editor, plain fields do the same, and it is said", async () => {
  const room = await opened(new Room({}, () => Promise.reject(new Error("blocked"))));
  expect(room.text).toContain("plain text field");
  await room.type("tool 1: arguments", '{"query": "yours"}');
  expect(room.all("ins").map((each) => each.textContent)).toContain("yours");
  await room.click("Save");
  expect(room.asked("override")).toHaveLength(1);
});

test("the editor, once loaded, holds what was typed meanwhile, and marks against the recorded text", async () => {
  let load: (open: OpenEditor) => void = () => undefined;
  const room = await opened(new Room({}, () => new Promise((resolve) => (load = resolve))));
  await room.type("tool 1: arguments", '{"query": "early"}');
  const got: { text: string; recorded: string | null }[] = [];
  let changed: (text: string) => void = () => undefined;
  await room.do(() => load((_, options) => {
    got.push(options);
    changed = options.changed;
    return { set: () => undefined, focus: () => undefined, close: () => undefined };
  }));
  expect(got).toMatchObject([{ text: '{"query": "early"}', recorded: EDITABLE.fields[2]?.value }]);
  await room.do(() => changed("{"));
  expect(room.button("Save").disabled).toBe(true);
});

test("what was chosen in the field is chosen in the editor that takes its place: the next letter replaces it", async () => {
  let load: (open: OpenEditor) => void = () => undefined;
  const room = await opened(new Room({}, () => new Promise((resolve) => (load = resolve))));
  const field = room.field("tool 1: arguments");
  field.focus();
  field.setSelectionRange(1, 8);
  const chosen: number[][] = [];
  await room.do(() => load(() => ({ set: () => undefined, focus: (from, to) => void chosen.push([from, to]), close: () => undefined })));
  expect(chosen).toEqual([[1, 8]]);
});

test("a span that cannot be edited says why", async () => {
  const room = await opened(new Room({ edit: () => new Error("this call is in another take") }));
  expect(room.all('[role="alert"]')[0]?.textContent).toContain("another take");
});

test("two panes on one page label their own fields: no id stands twice", async () => {
  const rooms = [await opened(new Room()), await opened(new Room())];
  const ids = rooms.flatMap((room) => room.all("[id]").map(({ id }) => id));
  expect(new Set(ids).size).toBe(ids.length);
  expect(rooms.map((room) => room.all("label").map((label) => (label as HTMLLabelElement).control === null))).not.toContain(true);
});
