/**
 * The parts of JupyterLab's interface that the labextension uses (JupyterLab 4.4 to 4.6, Notebook 7.4 to 7.6). The real
 * packages bring 100 MB of others for the sake of these few lines; tests/browser runs them against the real thing.
 */

/** File names of what is loaded (lab.mjs): the container's next, and what the door loads when it is first needed. */
declare const TAPE_DOOR: string;
declare const TAPE_VIEW: string;
declare const TAPE_EDITOR: string;
declare const TAPE_CARDS: string;
declare const TAPE_SAVED: string;
declare const TAPE_LATE: string;

declare module "@lumino/signaling" {
  export interface ISignal<S, A> {
    connect(slot: (sender: S, args: A) => void, that?: unknown): boolean;
    disconnect(slot: (sender: S, args: A) => void, that?: unknown): boolean;
  }
}

declare module "@lumino/widgets" {
  import { type ISignal } from "@lumino/signaling";
  export class Widget {
    constructor(options?: { node?: HTMLElement });
    readonly node: HTMLElement;
    readonly title: { label: string; caption: string; icon: unknown };
    readonly disposed: ISignal<this, undefined>;
    readonly isDisposed: boolean;
    readonly isVisible: boolean;
    readonly isAttached: boolean;
    protected onAfterAttach(): void;
    protected onAfterShow(): void;
    protected onBeforeDetach(): void;
    id: string;
    addClass(name: string): void;
    dispose(): void;
    setHidden(hidden: boolean): void;
  }
}

declare module "@lumino/coreutils" {
  export const UUID: { uuid4(): string };
}

declare module "@jupyterlab/services" {
  import { type ISignal } from "@lumino/signaling";
  export interface Comm {
    readonly commId: string;
    readonly commsOverSubshells?: string;
    readonly subshellStarted?: Promise<void>;
    readonly isDisposed: boolean;
    onMsg: (message: { content: { data: unknown } }) => void;
    onClose: () => void;
    open(data: object): unknown;
    send(data: object): unknown;
    close(): unknown;
  }
  export interface Kernel {
    readonly id: string;
    readonly status: string;
    readonly handleComms: boolean;
    readonly supportsSubshells?: boolean;
    readonly isDisposed: boolean;
    readonly info: Promise<{ language_info: { name: string } }>;
    readonly statusChanged: ISignal<Kernel, string>;
    /** Whatever is said on the line, in whoever's name. */
    readonly iopubMessage: ISignal<Kernel, IOPubMessage>;
    registerCommTarget(target: string, opened: (comm: Comm) => void): void;
    removeCommTarget(target: string, opened: (comm: Comm) => void): void;
    createComm(target: string, id?: string): Comm;
    requestCommInfo(content: { target_name: string }): Promise<{ content: { comms?: Record<string, unknown> } }>;
    requestExecute(content: { code: string; silent: boolean; store_history: boolean; stop_on_error?: boolean }): {
      done: Promise<{ content: { status: string; ename?: string; evalue?: string } }>;
    };
    readonly clientId: string;
    readonly username: string;
    sendControlMessage(message: object, expectReply?: boolean): { onReply: (reply: { content: { comms?: Record<string, unknown> } }) => void };
    interrupt(): Promise<void>;
  }
  export interface IOPubMessage {
    header: { msg_type: string };
    parent_header: { msg_id?: string };
    content: Record<string, unknown> & { transient?: { display_id?: string } };
  }
  export interface Contents {
    get(path: string, options: { type: "file"; format: "text"; content: true }): Promise<{ content: unknown }>;
    get(path: string, options: { content: false }): Promise<{ size?: number }>;
  }
}

declare module "@jupyterlab/cells" {
  import { type Widget } from "@lumino/widgets";
  export interface CellOutput extends Record<string, unknown> { output_type: string }
  export interface Cell extends Widget {
    readonly model: {
      readonly id: string;
      readonly type: string;
      readonly sharedModel: { getSource(): string };
      readonly outputs?: {
        readonly length: number;
        toJSON(): { output_type: string; ename?: string; evalue?: string }[];
        add(output: CellOutput): unknown;
        set(index: number, output: CellOutput): void;
        clear(wait?: boolean): void;
      };
      executionState?: string;
      executionCount?: number | null;
    };
    readonly inputArea: Widget | null;
    /** Its future is what this page has asked the kernel to run for it. */
    readonly outputArea?: { readonly future?: { readonly isDisposed: boolean } | null };
    /** JupyterLab's editor, around CodeMirror's view; none while the cell is out of sight. */
    readonly editor?: { readonly editor?: unknown } | null;
  }
}

declare module "@jupyterlab/notebook" {
  import { type Cell } from "@jupyterlab/cells";
  import { type Kernel } from "@jupyterlab/services";
  import { type ISignal } from "@lumino/signaling";
  import { type Widget } from "@lumino/widgets";
  export interface SessionContext {
    readonly session: { readonly kernel: Kernel | null } | null;
    readonly ready: Promise<void>;
    readonly kernelChanged: ISignal<SessionContext, { newValue: Kernel | null }>;
  }
  export interface Notebook extends Widget {
    readonly widgets: readonly Cell[];
    readonly activeCell: Cell | null;
    activeCellIndex: number;
    readonly activeCellChanged: ISignal<Notebook, Cell | null>;
    scrollToItem(index: number, align?: "auto" | "smart" | "center" | "start" | "end"): Promise<void>;
  }
  export interface NotebookPanel extends Widget {
    readonly content: Notebook;
    readonly context: {
      readonly path: string;
      readonly localPath: string; save(): Promise<void>;
      readonly ready: Promise<void>;
      readonly pathChanged: ISignal<unknown, string>;
    };
    readonly sessionContext: SessionContext;
  }
  export interface NotebookTracker {
    readonly currentWidget: NotebookPanel | null;
    readonly currentChanged: ISignal<NotebookTracker, NotebookPanel | null>;
    readonly widgetAdded: ISignal<NotebookTracker, NotebookPanel>;
    forEach(each: (panel: NotebookPanel) => void): void;
    find(test: (panel: NotebookPanel) => boolean): NotebookPanel | undefined;
  }
  export const INotebookTracker: unknown;
  export const NotebookActions: {
    runCells(notebook: Notebook, cells: readonly Cell[], session: SessionContext): Promise<boolean>;
  };
}

declare module "@jupyterlab/apputils" {
  import { type Widget } from "@lumino/widgets";
  export interface ToolbarRegistry {
    addFactory<T extends Widget>(area: string, name: string, make: (panel: T) => Widget): unknown;
  }
  export interface CommandPalette {
    addItem(item: { command: string; category: string }): unknown;
  }
  export const IToolbarWidgetRegistry: unknown;
  export const ICommandPalette: unknown;
  interface Said { autoClose: number | false; actions?: { label: string; callback: () => void }[] }
  export const Notification: Record<"error" | "info" | "warning", (text: string, options?: Said) => string>;
}

declare module "@jupyterlab/statusbar" {
  import { type Widget } from "@lumino/widgets";
  export interface StatusBar {
    registerStatusItem(id: string, item: { item: Widget; align: "left" | "right"; rank: number; isActive?: () => boolean }): unknown;
  }
  export const IStatusBar: unknown;
}

declare module "@jupyterlab/ui-components" {
  export class LabIcon {
    readonly name: string;
    constructor(options: { name: string; svgstr: string });
  }
}

declare module "@jupyterlab/coreutils" {
  export const PageConfig: { getOption(name: string): string };
}

declare module "@jupyterlab/application" {
  import { type Contents } from "@jupyterlab/services";
  import { type Widget } from "@lumino/widgets";
  export interface FrontEnd {
    readonly commands: {
      addCommand(
        id: string,
        command: { label: string; caption?: string; icon?: unknown; execute(): unknown; isVisible?(): boolean; isEnabled?(): boolean },
      ): unknown;
      execute(id: string): Promise<unknown>;
      notifyCommandChanged(id: string): void;
    };
    readonly shell: {
      add(widget: Widget, area: string, options: { rank: number }): void;
      activateById(id: string): void;
      expandRight?(id?: string): void;
    };
    readonly serviceManager: { readonly contents: Contents };
  }
}
