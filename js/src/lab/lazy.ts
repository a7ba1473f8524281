/** What the labextension loads when it first has to do with a cell: finds, runs and marks them. See registry.ts. */
export { showCell, sourceHash } from "./cells.ts";
export { commsBeside } from "./comms.ts";
export { follow } from "./selectionSync.ts";
export { CellSigns } from "./cellSigns.ts";
export { runCell, Runner } from "./cellRunner.ts";
export { SidebarPage } from "./sidebarPage.ts";

const sheet = new CSSStyleSheet();
sheet.replaceSync(`
.tape-hint { padding: 12px; line-height: 1.6; color: var(--jp-ui-font-color1); font-size: var(--jp-ui-font-size1); }
.tape-hint code { padding: 1px 4px; background: var(--jp-layout-color2); font-family: var(--jp-code-font-family); font-size: var(--jp-code-font-size); white-space: nowrap; }
.tape-lit { animation: tape-lit 1.6s ease-out; }
@keyframes tape-lit { from, 40% { box-shadow: inset 3px 0 0 var(--jp-brand-color1), 0 0 0 1px var(--jp-brand-color1); } to { box-shadow: none; } }
@media (prefers-reduced-motion: reduce) { .tape-lit { animation: none; box-shadow: inset 3px 0 0 var(--jp-brand-color1); } }
.tape-live { margin-inline-start: calc(var(--jp-cell-prompt-width, 64px) + var(--jp-cell-collapser-width, 8px)); padding: 0 6px 0 4px; min-height: 24px; line-height: 24px; overflow-wrap: anywhere; font-size: var(--jp-code-font-size); font-family: var(--jp-code-font-family); font-variant-numeric: tabular-nums; color: var(--jp-content-font-color2); }
.tape-live b { font-weight: 400; color: var(--jp-content-font-color1); }
.tape-live .tape-unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.tape-stopped > .jp-Cell-inputWrapper { box-shadow: inset 3px 0 0 #d9a400; }
.tape-stopped > .jp-Cell-inputWrapper .jp-InputPrompt::after { content: "❚❚"; margin-inline-start: 4px; color: #b58900; font-size: 9px; }
.jp-Notebook .cm-line.tape-stopped-line { background: color-mix(in srgb, #d9a400 24%, transparent); box-shadow: inset 3px 0 0 #d9a400; }
`);
document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
