/**
 * The few rules that stand outside a view's shadow root: what is lit up in the notebook, the bars, and Jupyter's messages,
 * which come up at the bottom right, over what is pressed in the sidebar.
 */
const RULES = `
.tape-sidebar { display: flex; flex-direction: column; min-width: 250px; background: var(--jp-layout-color1); color: var(--jp-ui-font-color1) }
.tape-sidebar-page { flex: 1; min-height: 0; display: flex; flex-direction: column }
.tape-sidebar-page[hidden] { display: none }
.tape-door { flex: 1; min-height: 0; position: relative }
[data-jp-theme-light="true"] .tape-door { color-scheme: light }
[data-jp-theme-light="false"] .tape-door { color-scheme: dark }
.tape-mode { display: flex; align-items: center }
.tape-mode .jp-HTMLSelect { position: relative }
.tape-mode .jp-HTMLSelect::after { content: "▾"; position: absolute; right: 6px; top: 50%; transform: translateY(-50%); pointer-events: none; color: var(--jp-ui-font-color2) }
.tape-mode select { font-size: var(--jp-ui-font-size1); padding-right: 22px }
.tape-mode[data-mode="record"] select { color: var(--jp-error-color1) }
.tape-mode[data-mode="replay"] select { color: var(--jp-brand-color1) }
.tape-status { padding: 0 6px; cursor: pointer; white-space: nowrap; font-variant-numeric: tabular-nums; font-size: var(--jp-ui-font-size1); line-height: 24px }
.tape-status:hover { background: var(--jp-layout-color3) }
.tape-output { width: 100%; overflow: hidden; position: relative; font-size: var(--jp-code-font-size) }
.tape-output .tape-door { border: 1px solid var(--jp-border-color2); border-radius: 2px }
.tape-line { all: unset; box-sizing: border-box; display: block; max-width: 100%; height: 24px; line-height: 24px; padding: 0 6px 0 4px; cursor: pointer; overflow: hidden; text-overflow: ellipsis; white-space: pre; color: var(--jp-content-font-color2); font-family: var(--jp-code-font-family) }
.tape-line::before { content: "▸"; display: inline-block; width: 16px }
.tape-line[aria-expanded="true"]::before { content: "▾" }
.tape-line:hover { color: var(--jp-content-font-color1); background: var(--jp-layout-color2) }
.tape-line:focus-visible { outline: 2px solid var(--jp-brand-color1); outline-offset: -2px }
.tape-summary, .tape-said { overflow-wrap: anywhere }
.tape-said { padding-left: 20px; white-space: pre-wrap; font-family: var(--jp-code-font-family); color: var(--jp-content-font-color2) }
.tape-said [data-mark="✗"] { color: var(--jp-error-color1) }
.tape-said [data-mark="!"] { color: var(--jp-warn-color0) }
body:has(#jp-right-stack .tape-sidebar:not(.lm-mod-hidden, .lm-mod-hidden *)) .jp-toastContainer { right: auto; left: 1em }
.tape-beside { width: auto; flex: none; margin: 4px 0 4px calc(var(--jp-cell-prompt-width, 64px) + var(--jp-cell-collapser-width, 8px)) }
`;

export function addStyle(): void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(RULES);
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
