/** What the plugin knows and a rendered output needs. One module, bundled once for ./extension and ./mimeExtension. */
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Contents } from "@jupyterlab/services";

import type { OpenEditor } from "../editor/types.ts";
import type { Link } from "./link.ts";

export const hub: {
  editorUrl: string;
  /** Null until the plugin is active, and in an application that has none. */
  contents: Contents | null;
  panels: Map<NotebookPanel, Link>;
} = { editorUrl: "", contents: null, panels: new Map() };

/** The notebook that holds a node; else (an output in a view of its own) the one of that path. */
export function panelOf(node: Node, path = ""): NotebookPanel | undefined {
  const panels = [...hub.panels.keys()];
  return panels.find((panel) => panel.node.contains(node)) ?? panels.find((panel) => path !== "" && panel.context.path === path);
}

/** The editor's chunk, fetched once. */
export async function loadEditor(): Promise<OpenEditor> {
  const module = (await import(/* @vite-ignore */ hub.editorUrl)) as { openEditor: OpenEditor };
  return module.openEditor;
}
