"""What somebody who means harm may have a model, a tool, a URL or a cell say: each would run, were it ever markup.

`globalThis.pwned` is set in the page by whatever runs. Every tag that runs something, in every place it may break out of.
"""

RUNS = "globalThis.pwned=1"
TAGS = [
    "<script>{}</script>", "<img src=x onerror={}>", "<svg onload={}>", "<svg><script>{}</script></svg>", "<body onload={}>",
    "<iframe srcdoc='<script>parent.{}</script>'></iframe>", "<iframe src='javascript:parent.{}'></iframe>", "<a href='javascript:{}'>x</a>",
    "<details open ontoggle={}>x</details>", "<input autofocus onfocus={}>", "<video><source onerror={}></video>", "<audio src=x onerror={}>",
    "<object data='javascript:{}'></object>", "<embed src='javascript:{}'>", "<marquee onstart={}>x</marquee>", "<style onload={}></style>",
    "<link rel=stylesheet href=x onerror={}>", "<math><mtext></form><form><mglyph><style></math><img src onerror={}>", "<template><img src=x onerror={}></template>",
    "<button popovertarget=x onclick={}>x</button>", "<select autofocus onfocus={}>", "<textarea autofocus onfocus={}>", "<meta http-equiv=refresh content='0;url=javascript:{}'>",
    "<base href='//evil.example/'><script src=x></script>",
]  # fmt: skip
AROUND = [
    "{}",
    "\"'>{}",
    "</script>{}",
    "</style></title></textarea>{}",
    "<!--{}-->",
    "]]>{}",
    "${{{}}}`",
    "\\u003c{}",
    "\u2028{}\u0000",
]
HOSTILE = [around.format(tag.format(RUNS)) for around in AROUND for tag in TAGS]
"""216 payloads; the first 24 are every tag once."""

WATCHED = """(() => {
  globalThis.came = [];
  const acts = ({ name, value }) => (value.includes("pwned") && (name.startsWith("on") || name === "srcdoc" || /javascript:/i.test(value)
    && ["href", "src", "data", "action", "formaction", "content", "xlink:href"].includes(name))) || value.includes("evil.example") && name === "href";
  const look = (node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const data = ["application/json", "text/plain"].includes(node.type);
    if (node.localName === "script" && !data && node.textContent.includes("pwned") || [...node.attributes].some(acts)) globalThis.came.push(node.outerHTML.slice(0, 300));
  };
  const watch = (root) => new MutationObserver((changes) => {
    for (const { target, addedNodes } of changes) {
      look(target);
      for (const node of addedNodes) for (const each of [node, ...(node.querySelectorAll?.("*") ?? [])]) look(each);
    }
  }).observe(root, { childList: true, subtree: true, attributes: true });
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (given) {
    const root = attach.call(this, given);
    watch(root);
    return root;
  };
  watch(document);
})()"""
"""Notes each element that a payload made, in the page and in all shadow roots; put into a page before it loads."""

SETTLED = """() => new Promise((done) => {
  const image = new Image();
  image.onerror = () => setTimeout(done);
  image.src = "data:,none";
})"""
"""When a picture that cannot be shown, asked for now, has failed: what payloads asked for before has failed as well."""

VISIT = """async (tree, opened) => {
  const root = tree.getRootNode(), end = performance.now() + 60_000;
  const turn = () => new Promise((done) => setTimeout(done));
  const until = async (find, what) => {
    for (let found = find(); ; found = find()) {
      if (found) return found;
      if (performance.now() > end) throw new Error(`waited too long for ${what}; ${root.textContent.slice(0, 400)}`);
      await turn();
    }
  };
  const active = () => root.querySelector("[role=tree] [role=treeitem][tabindex='0']");
  const press = async (key) => {
    active().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true, cancelable: true }));
    await turn();
  };
  const rows = new Set(), told = [], spans = [], tabs = new Set();
  const look = () => root.querySelectorAll("[role=treeitem]").forEach((row) => { if (!rows.has(row.dataset.row)) { rows.add(row.dataset.row); told.push(row.textContent); } });
  const panel = () => root.querySelector("[role=tabpanel]");
  const show = async (name, go) => {
    go();
    await turn();
    const shown = await until(() => panel()?.getAttribute("aria-label") === name && panel().textContent && panel(), `${name} of ${spans.at(-1)}`);
    shown.querySelectorAll("details").forEach((each) => { each.open = true; });
    shown.querySelectorAll("button[aria-expanded=false]").forEach((each) => each.click());
    await turn();
    tabs.add(name);
    told.push(panel().textContent);
  };
  await until(() => !root.querySelector(".sums")?.textContent.includes("spans…"), "all rows");
  await press("Home");
  await press("Enter");
  for (let number = 0; number < opened; number++) {
    if (number) await press("ArrowDown");
    await until(() => panel() || root.querySelector(".detail [role=alert]"), `row ${number}`);
    spans.push(active().dataset.row);
    told.push(root.querySelector(".detail").textContent);
    for (const tab of [...root.querySelectorAll("[role=tab]")]) await show(tab.textContent, () => tab.click());
    const more = root.querySelector(".detail select.more");
    for (const { value, textContent } of more ? [...more.options].filter((each) => each.value) : []) {
      await show(textContent, () => { const now = root.querySelector(".detail select.more"); now.value = value; now.dispatchEvent(new Event("change", { bubbles: true })); });
    }
  }
  await press("Escape");
  root.querySelector(".detail .close, .detail .back")?.click();
  await turn();
  await press("Home");
  const total = Math.round(parseFloat(root.querySelector(".rows").style.height) / 24);
  const list = root.querySelector("[role=tree]"), drawn = (at) => root.querySelector(`[role=treeitem][data-row="${at}"]`);
  for (let last = -1; last !== Number(active().dataset.row); await press("PageDown")) {
    last = Number(active().dataset.row);
    const first = () => Math.floor(list.scrollTop / 24), end = () => Math.min(total, Math.ceil((list.scrollTop + list.clientHeight) / 24));
    const inSight = () => Array.from({ length: end() - first() }, (_, number) => first() + number);
    await until(() => inSight().every(drawn), `rows ${first()} to ${end()}`);
    look();
  }
  return { rows: rows.size, total, spans, tabs: [...tabs], told };
}"""
"""Opens the first rows of a tree by its keys, at every tab, then draws all of them: what was seen."""


class Watch:
    """What a page does that no recorded text may have it do; looked at before it loads."""

    def __init__(self, page, home):
        self.page, self.home = page, home
        self.forget()
        page.add_init_script(WATCHED)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("console", lambda line: self.said.append(line) if line.type == "error" else None)
        page.on("dialog", lambda dialog: (self.boxes.append(dialog.message), dialog.dismiss()))

    def forget(self):
        self.asked, self.boxes, self.said = [], [], []
        self.page.evaluate("() => { delete globalThis.pwned; globalThis.came = []; }")

    def nothing_ran(self):
        """Raises AssertionError with what came or ran."""
        self.page.evaluate(SETTLED)
        found = {
            "elements": self.page.evaluate("globalThis.came"),
            "ran": [
                frame.url
                for frame in self.page.frames
                if frame.evaluate("globalThis.pwned") is not None
            ],
            "boxes": self.boxes,
            "asked": [
                url
                for url in self.asked
                if not url.startswith((self.home, "data:", "blob:", "about:"))
            ],
            "errors": [
                said for each in self.said if "tape" in (said := f"{each.text} {each.location}")
            ],
        }
        assert not any(found.values()), found
