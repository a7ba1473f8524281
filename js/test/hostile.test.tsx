/** Recorded text is data: whatever it says, it is shown as text. */
import { act } from "preact/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { pictureOf } from "../src/view/conversation.tsx";
import * as cards from "../src/view/panels/index.tsx";
import { mount } from "../src/view/mount.tsx";
import type { Part } from "../src/view/protocol.ts";
import { FakeDoor } from "./door.ts";
import { detailOf, pageOf, sessionOf } from "./rows.ts";

const PAYLOADS = [
  "<script>globalThis.pwned = 1</script>", "</script><script>globalThis.pwned = 1</script>", "<img src=x onerror=pwned=1>", "<svg onload=pwned=1>",
  "\"><img src=x onerror=pwned=1>", "'><svg/onload=pwned=1>", "javascript:pwned=1", "<iframe srcdoc='<script>parent.pwned=1</script>'>", "<a href=javascript:pwned=1>x</a>",
  "</style><script>pwned=1</script>", "<!--<script>pwned=1</script>-->", "<math><mtext></form><form><mglyph><style></math><img src onerror=pwned=1>", "${globalThis.pwned=1}",
  "{{constructor.constructor('pwned=1')()}}", "<details open ontoggle=pwned=1>", "<input autofocus onfocus=pwned=1>", "<body onload=pwned=1>", "<object data=javascript:pwned=1>",
  "\u2028<script>pwned=1</script>", "<scr\u0000ipt>pwned=1</scr\u0000ipt>", "data:text/html,<script>pwned=1</script>", "<base href=//evil.example/>", "<link rel=stylesheet href=//evil.example>",
  "<meta http-equiv=refresh content='0;url=javascript:pwned=1'>", "&lt;img src=x onerror=pwned=1&gt;", "<template><img src=x onerror=pwned=1></template>",
];
const TABS = ["", "request", "reply", "headers", "timing", "kit", "raw", "diff"];
let unmount: () => void = () => undefined;
afterEach(() => unmount());

async function shown(evil: string, tab: string): Promise<ShadowRoot> {
  const section = { text: evil, json: tab === "request", whole: true };
  const parts: Part[] = [
    { type: "text", text: evil }, { type: "thinking", text: evil }, { type: "tool_use", id: evil, name: evil, input: { [evil]: evil } },
    { type: "tool_result", id: evil, text: evil, error: true }, { type: "image", media: evil, bytes: 1, data: evil }, { type: "other", name: evil, value: evil },
  ];
  const row = { id: evil, kind: "cell", name: evil, note: evil, cell: evil } as const;
  const door = new FakeDoor({ title: evil, span: evil, able: { modes: true, override: true, rerun: true, cells: true } }, {
    session: () => sessionOf({ cassettes: [evil, "b"], cassette: evil, take: evil, notes: [evil], running: { cell: evil, mode: evil, calls: 1, seconds: 1 }, takes: [{ name: evil, of: evil, overrides: 1, calls: 0, at: evil, stale: 0 }] }),
    spans: () => pageOf([row, { ...row, id: "b", depth: 1, kind: "model" }]),
    detail: () => detailOf(evil, {
      title: evil, turns: [{ role: "assistant", parts }], request: section, reply: section, headers: { request: [[evil, evil]], reply: [[evil, evil]] }, error: evil, ending: evil,
      kit: [[evil, evil]], tags: [[evil, evil]], source: evil, overridden: { take: evil, stale: true, note: evil }, timing: { at: evil, seconds: 1, first: 0.5, chunks: 1, rate: 1 },
      usage: { tokens_in: 1, tokens_out: 1, cost: 1, model: evil },
    }),
    raw: () => ({ text: evil, hex: false, from: 0, total: evil.length }), candidates: () => ({ spans: [{ id: "b", name: evil }] }),
    diff: () => ({ left: evil, right: `${evil}!`, left_name: evil, right_name: evil }), select: () => new Error(evil),
  });
  const el = document.createElement("div");
  document.body.append(el);
  const took = mount(el, door, { loadCards: () => Promise.resolve(cards) });
  unmount = () => {
    took();
    el.remove();
  };
  const settle = async (): Promise<void> => {
    for (let round = 0; round < 4; round++) await act(() => new Promise<void>((done) => setTimeout(done)));
  };
  await settle();
  const root = el.shadowRoot ?? el.attachShadow({ mode: "open" });
  const turn = root.querySelector<HTMLElement>(`#tab-${tab}`);
  const more = root.querySelector<HTMLSelectElement>(".more");
  await act(() => {
    if (turn) turn.click();
    else if (tab && more) {
      more.value = tab;
      more.dispatchEvent(new Event("change", { bubbles: true }));
    }
  });
  await settle();
  return root;
}

test.each(TABS)("hostile text is shown as it is, on the tab %s", async (tab) => {
  vi.stubGlobal("pwned", undefined);
  for (const evil of PAYLOADS) {
    const root = await shown(evil, tab);
    expect(root.querySelectorAll("script, iframe, object, embed, link, meta, base, svg, math, img, form, a, style").length, evil).toBe(0);
    for (const node of root.querySelectorAll("*")) expect([...node.attributes].filter(({ name }) => name.startsWith("on")), evil).toEqual([]);
    expect(root.textContent).toContain(evil);
    unmount();
  }
  expect((globalThis as { pwned?: unknown }).pwned).toBeUndefined();
});

test("images are drawn of known types and from their own bytes only", () => {
  expect(pictureOf("image/png", "iVBORw0KGgo=")).toBe("data:image/png;base64,iVBORw0KGgo=");
  expect(pictureOf("image/png", "data:image/png;base64,iVBORw0KGgo=")).toBe("data:image/png;base64,iVBORw0KGgo=");
  for (const [media, data] of [["image/svg+xml", "PHN2Zz4="], ["text/html", "PHN2Zz4="], ["image/png", "https://evil.example/x.png"], ["image/png", "data:text/html;base64,PHN2Zz4="], ["image/png\" onerror", "iVBO"], ["image/png", null], ["image/png", ""]] as const) {
    expect(pictureOf(media, data)).toBeNull();
  }
});
