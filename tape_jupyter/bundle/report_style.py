"""Doors room: how the report of a replay looks. In light and dark, as the reader's system says; no script, no fonts."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2330; --soft: #5b6472; --line: #d9dde4; --paper: #fff; --pane: #f6f7f9;
  --good: #17743a; --bad: #b3261e; --warn: #8a5a00; --gone: #fdeceb; --new: #e7f6ec; --gone-ink: #8c1d18;
  --new-ink: #10602a; --good-pane: #dcf2e3; --bad-pane: #f9dedc; --warn-pane: #f7e8c8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ec; --soft: #a2aab6; --line: #363d49; --paper: #14171d;
  --pane: #1d2129; --good: #6fd08c; --bad: #ff9b92; --warn: #e8bd6a; --gone: #3a1f1f; --new: #16301f;
  --gone-ink: #ffb4ab; --new-ink: #9be2b1; --good-pane: #17351f; --bad-pane: #4a2320; --warn-pane: #3d3113; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { margin: 0 0 .75rem; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h1.good { color: var(--good); } h1.bad { color: var(--bad); }
h2 { margin: 1rem 0 .25rem; font: 600 .85rem ui-monospace, monospace; color: var(--soft); overflow-wrap: anywhere; }
h2 small { font: .85rem system-ui, sans-serif; color: var(--warn); }
.over { margin: 0; color: var(--soft); overflow-wrap: anywhere; }
dl { margin: 0; font-size: .9rem; } dl div { display: flex; gap: .75rem; padding: .1rem 0; }
dt { flex: 0 0 8.5rem; color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; min-width: 0; }
nav { display: flex; flex-wrap: wrap; gap: 3px; margin: 1.25rem 0; }
nav a { min-width: 2.2em; padding: .1rem .3rem; border-radius: 3px; text-align: center;
  font: .75rem ui-monospace, monospace; text-decoration: none; color: var(--soft); background: var(--pane); }
nav a.same { color: var(--good); background: var(--good-pane); }
nav a.differs, nav a.failed, nav a.missed { color: var(--bad); background: var(--bad-pane); font-weight: 700; }
nav a.not-run { color: var(--warn); background: var(--warn-pane); }
a:focus-visible, summary:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
.cell { border-top: 1px solid var(--line); padding: .5rem 0; scroll-margin-top: .5rem; }
.cell:target { background: var(--pane); }
section.cell { content-visibility: auto; contain-intrinsic-size: auto 2.6rem; }
summary { cursor: pointer; }
.number { color: var(--soft); font: .85rem ui-monospace, monospace; }
.title { font: .85rem ui-monospace, monospace; overflow-wrap: anywhere; unicode-bidi: isolate; }
.facts { color: var(--soft); font-size: .8rem; white-space: nowrap; }
.way { display: inline-block; padding: 0 .5rem; border-radius: 1rem; font-size: .8rem; color: var(--bad);
  background: var(--bad-pane); }
.way.same { color: var(--good); background: var(--good-pane); }
.way.not-run { color: var(--warn); background: var(--warn-pane); }
pre { margin: .25rem 0; padding: .6rem .75rem; overflow-x: auto; background: var(--pane); border-radius: 4px;
  font: .8rem/1.45 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; }
@media (max-width: 34rem) { dl div { display: block; padding: .25rem 0; } }
pre .gone, td.gone { background: var(--gone); color: var(--gone-ink); }
pre .new, td.new { background: var(--new); color: var(--new-ink); }
pre .where { color: var(--soft); }
pre.said { color: var(--bad); }
.note { color: var(--soft); font-size: .9rem; margin: .25rem 0; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font: .8rem ui-monospace, monospace; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; vertical-align: top; font-weight: 400;
  overflow-wrap: anywhere; unicode-bidi: isolate; }
thead th { color: var(--soft); }
.images { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; flex: 1 1 14rem; min-width: 0; }
figure img { max-width: 100%; background: #fff; border: 1px solid var(--line); }
figcaption { color: var(--soft); font-size: .8rem; }
.source { margin-top: .5rem; color: var(--soft); } .source pre { color: var(--ink); }
"""
