/** The view as an anywidget (`%tape view`): the widget's model is the door, Python's side of it is notebook/viewer.py. */
import type { OpenEditor } from "../editor/types.ts";
import { importScript } from "../editor/load.ts";
import { control, type Line } from "../view/control.ts";
import { Client } from "../view/client.ts";
import type { CardsModule } from "../view/edit/index.ts";
import { mount } from "../view/mount.tsx";
import type { Model } from "../view/protocol.ts";

const HEIGHT = 460;

/** anywidget's model of JupyterLab and Notebook, which show their line to the kernel. */
interface Widget extends Model { widget_manager?: { kernel?: Line | null } }

/** The model, heard by the kernel also while a cell runs, where both have a way beside the cell. */
function beside(model: Widget): Model {
  const comm_id = model.get("beside"), line = model.widget_manager?.kernel;
  return comm_id && line ? { ...model, send: (content) => control(line, "comm_msg", { comm_id, data: { method: "custom", content } }) } : model;
}

/** Code that travels only when it is needed: a widget's own module is sent with every widget that is shown. */
async function load<T>(model: Model, about: "editor" | "cards"): Promise<T> {
  const client = new Client(model);
  try {
    const { script } = await client.ask<{ script: string }>(about);
    return await importScript<T>(script);
  } finally {
    client.close();
  }
}

function render({ model: widget, el }: { model: Widget; el: HTMLElement }): () => void {
  const model = beside(widget);
  const height = model.get("height");
  el.classList.add("tape-door"); // its scroll bars and fields are of the notebook's theme (lab/style.ts)
  el.style.height = `${typeof height === "number" && height > 0 ? height : HEIGHT}px`; // no height, no virtual list
  return mount(el, model, {
    loadEditor: async () => (await load<{ openEditor: OpenEditor }>(model, "editor")).openEditor,
    loadCards: () => load<CardsModule>(model, "cards"),
  });
}

export default { render };
