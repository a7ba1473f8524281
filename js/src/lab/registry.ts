/** What the plugin knows and a rendered output needs. One module, bundled once for ./extension and ./mimeExtension. */
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Contents } from "@jupyterlab/services";

import type { OpenEditor } from "../editor/types.ts";
import type { CardsModule } from "../view/edit/index.ts";
import type * as view from "../view/mount.tsx";
import type { Model } from "../view/protocol.ts";
import type * as late from "./lazy.ts";
import type * as saved from "./output.ts";
import type { Link } from "./kernelConnection.ts";

export const hub: {
  /** Null until the plugin is active, and in an application that has none. */
  contents: Contents | null;
  panels: Map<NotebookPanel, Link>;
} = { contents: null, panels: new Map() };

/** The notebook that holds a node; else (an output in a view of its own) the one of that path. */
export function panelOf(node: Node, path = ""): NotebookPanel | undefined {
  const panels = [...hub.panels.keys()];
  return panels.find((panel) => panel.node.contains(node)) ?? panels.find((panel) => path !== "" && panel.context.path === path);
}

const chunks: view.MountOptions = {
  loadEditor: async () => (await chunk<{ openEditor: OpenEditor }>(TAPE_EDITOR)).openEditor,
  loadCards: () => chunk<CardsModule>(TAPE_CARDS),
};

export interface Late {
  mounted?: () => void;
  onWork?: view.MountOptions["onWork"];
}

/** The view's code, loaded when the first list is drawn. Mount with its answer; taking away before it came is fine. */
export function mountLate(place: HTMLElement, model: Model, { mounted, onWork }: Late = {}): () => void {
  let unmount: (() => void) | null = null;
  let gone = false;
  chunk<typeof view>(TAPE_VIEW).then(
    ({ mount }) => {
      if (gone) return;
      unmount = mount(place, model, { ...chunks, onWork });
      mounted?.();
    },
    (error: unknown) => (place.textContent = `Tape: the view could not be loaded (${String(error)}). Reload the page.`),
  );
  return () => {
    gone = true;
    unmount?.();
  };
}

/** What runs and marks cells. */
export const loadLate = (): Promise<typeof late> => chunk(TAPE_LATE);

/** What stands behind an output that is opened. */
export const loadSaved = (): Promise<typeof saved> => chunk(TAPE_SAVED);

async function chunk<T>(file: string): Promise<T> {
  return (await import(/* @vite-ignore */ new URL(file, import.meta.url).href)) as T;
}
