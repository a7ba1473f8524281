/**
 * Keys typed in the view never reach the notebook around it: `a`, `b`, `dd`, Shift+Enter would change its cells.
 * Lumino skips a target that has this attribute. It is set on each key, on window and while capturing: Notebook 7
 * listens on document in the capture phase, JupyterLab 4 in the bubbling one. Saving stays theirs.
 */
export function guard(root: HTMLElement): () => void {
  const listen = (event: KeyboardEvent): void => {
    if (!event.composedPath().includes(root) || !(event.target instanceof Element)) return;
    const saving = (event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "s";
    event.target.toggleAttribute("data-lm-suppress-shortcuts", !saving);
  };
  window.addEventListener("keydown", listen, true);
  return () => window.removeEventListener("keydown", listen, true);
}

/** Whether keys go into a field: then the view's own letters are text. */
export function typing(event: KeyboardEvent): boolean {
  const [inner] = event.composedPath();
  return inner instanceof Element && inner.closest("input, textarea, select, [contenteditable]") !== null;
}

export function plain(event: KeyboardEvent): boolean {
  return !event.ctrlKey && !event.metaKey && !event.altKey;
}

/** The focus goes back to the list's row. A narrow pane's list is out of reach until it is drawn anew: not any more. */
export function focusRow(root: ParentNode | undefined): void {
  const row = root?.querySelector<HTMLElement>('[role="tree"] [tabindex="0"]');
  row?.closest("[inert]")?.removeAttribute("inert");
  row?.focus();
}
