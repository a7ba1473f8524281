/** The labextension's plugin: wires each notebook to its kernel, and to the sidebar, the bars and the commands. */
import { ICommandPalette, IToolbarWidgetRegistry, type CommandPalette, type ToolbarRegistry } from "@jupyterlab/apputils";
import type { FrontEnd } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel, type NotebookTracker } from "@jupyterlab/notebook";
import { IStatusBar, type StatusBar } from "@jupyterlab/statusbar";

import { ModeSwitch, StatusItem, Watch } from "./toolbars.ts";
import { hub, loadLate } from "./registry.ts";
import { icon } from "./icon.ts";
import { Link } from "./kernelConnection.ts";
import { ID, ROWS, STOP, Sidebar } from "./sidebar.ts";
import { addStyle } from "./style.ts";

const SHOW = "tape-jupyter:show";
const RERUN = "tape-jupyter:rerun-downstream";
const STEP = "tape-jupyter:step";
const MODES = ["record", "replay", "live", "off"];

class Tape {
  readonly #app: FrontEnd;
  readonly #tracker: NotebookTracker;
  readonly #sidebar = new Sidebar();
  readonly #status = new StatusItem(() => this.#show());
  readonly #watches = new Map<NotebookPanel, Watch>();
  /** A person asked to step, and nothing has stopped yet. */
  #stepped = false;

  constructor(app: FrontEnd, tracker: NotebookTracker) {
    this.#app = app;
    this.#tracker = tracker;
    hub.contents = app.serviceManager.contents;
    this.#commands();
    app.shell.add(this.#sidebar, "right", { rank: 900 });
    tracker.currentChanged.connect((_, panel) => this.#front(panel));
    tracker.widgetAdded.connect((_, panel) => this.watch(panel));
    tracker.forEach((panel) => this.watch(panel));
    this.#front(tracker.currentWidget);
  }

  /** The notebook's session; its line to the kernel is laid when first asked for. */
  watch(panel: NotebookPanel): Watch {
    const known = this.#watches.get(panel);
    if (known) return known;
    const link = new Link(panel, loadLate);
    const watch = new Watch(link);
    hub.panels.set(panel, link);
    this.#watches.set(panel, watch);
    this.#sidebar.add(panel, link, (how) => watch.stepCell(how));
    link.stepping = watch.stopped = () => this.#stops();
    link.watch(() => this.#app.commands.notifyCommandChanged(RERUN));
    panel.disposed.connect(() => {
      hub.panels.delete(panel);
      this.#watches.delete(panel);
      watch.dispose();
      link.dispose();
    });
    this.#front(this.#tracker.currentWidget);
    return watch;
  }

  offer(palette: CommandPalette | null, toolbars: ToolbarRegistry | null, status: StatusBar | null): void {
    for (const command of [SHOW, RERUN, STEP, ...MODES.map(modeCommand)]) palette?.addItem({ command, category: "Tape" });
    toolbars?.addFactory<NotebookPanel>("Notebook", "tape-mode", (panel) => new ModeSwitch(this.watch(panel), () => this.#app.commands.execute(STEP)));
    status?.registerStatusItem("tape-jupyter:status", { item: this.#status, align: "left", rank: 100 });
  }

  #commands(): void {
    const { commands } = this.#app;
    const here = () => this.#tracker.currentWidget;
    commands.addCommand(SHOW, { label: "Show the Tape", caption: "The recorded calls of this notebook", icon, execute: () => this.#show() });
    commands.addCommand(RERUN, {
      label: "Tape: Re-run What Depends on This Cell",
      caption: "Tape: plan the cells that depend on this one, and re-run them",
      icon,
      isVisible: () => this.#connected(here()),
      isEnabled: () => this.#connected(here()),
      execute: () => this.#plan(here()),
    });
    commands.addCommand(STEP, {
      label: "Tape: Step Through This Cell",
      caption: "Tape: run the selected cell, and stop before each of its calls",
      icon,
      isEnabled: () => here() !== null,
      execute: () => {
        const panel = here();
        if (!panel) return undefined;
        this.#stepped = true;
        return this.watch(panel).stepOrSay().then((did) => { this.#stepped &&= did; });
      },
    });
    for (const mode of MODES) {
      commands.addCommand(modeCommand(mode), {
        label: `Tape Mode: ${mode}`,
        isEnabled: () => here() !== null,
        execute: () => {
          const panel = here();
          return panel ? this.watch(panel).setMode(mode) : undefined;
        },
      });
    }
  }

  #show(): void {
    this.#reveal();
    this.#sidebar.focusOn(ROWS);
  }

  #connected(panel: NotebookPanel | null): boolean {
    return panel !== null && (hub.panels.get(panel)?.connected ?? false);
  }

  #plan(panel: NotebookPanel | null): void {
    const cell = panel?.content.activeCell;
    if (!panel || !cell) return;
    this.#reveal();
    this.#sidebar.tell(panel, "plan", { changed: cell.model.id });
  }

  #front(panel: NotebookPanel | null): void {
    this.#sidebar.front(panel);
    this.#status.follow((panel && this.#watches.get(panel)) ?? null);
    this.#app.commands.notifyCommandChanged(RERUN);
  }

  /** A cell is stepped: its keys act at once where a person began it by a command, else the focus stays where it is. */
  #stops(): void {
    this.#reveal();
    if (this.#stepped) this.#sidebar.focusOn(STOP);
    this.#stepped = false;
  }

  #reveal(): void {
    this.#app.shell.expandRight?.(ID);
    this.#app.shell.activateById(ID);
  }
}

function modeCommand(mode: string): string {
  return `tape-jupyter:mode-${mode}`;
}

export const plugin = {
  id: "tape-jupyter:plugin",
  description: "Records, shows, edits and replays the calls of a notebook's cells.",
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ICommandPalette, IToolbarWidgetRegistry, IStatusBar],
  activate(app: FrontEnd, tracker: NotebookTracker, palette: CommandPalette | null, toolbars: ToolbarRegistry | null, status: StatusBar | null): void {
    addStyle();
    new Tape(app, tracker).offer(palette, toolbars, status);
  },
};
