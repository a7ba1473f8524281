/**
 * The line between one notebook's kernel and this page. Nothing is said to a kernel before it has said itself that the
 * extension is loaded there: it opens a comm (`tell`), on which only the kernel speaks. We answer by opening another
 * (`ask`), on which only the page speaks: ipykernel 7.4 sends a comm's messages to the thread that last published on
 * it, so a comm used both ways would wait behind a cell that runs. Ours goes over the control channel where the kernel
 * says that it listens there (the id of its comm), else over the subshell that both share by having one target.
 */
import { PageConfig } from "@jupyterlab/coreutils";
import type { NotebookPanel } from "@jupyterlab/notebook";
import type { Comm, Kernel } from "@jupyterlab/services";
import { UUID } from "@lumino/coreutils";

import { Beside } from "./controlChannel.ts";
import { isRecord } from "./model.ts";
import type { commsBeside } from "./comms.ts";
import type { Runner } from "./cellRunner.ts";

const TARGET = "tape-jupyter";
/** Begins the id of the kernel's comm, so that a page that comes later finds it. */
const TELL = "tape-tell-";
/** Follows it where the kernel hears us on the control channel. */
const BESIDE = "beside-";
/** ms after which a kernel that has not answered is taken for one that runs a cell. */
const BUSY_MS = 1000;
const SUBSHELL_MS = 5000;
const GONE = "the kernel is gone: run %load_ext tape_jupyter in the notebook again";

type Hear = (message: Record<string, unknown>) => void;

/** Loads what a line needs only later. */
type Loader = () => Promise<{ commsBeside: typeof commsBeside; Runner: typeof Runner }>;

/** One view's end of the line. */
export interface Wire {
  send(message: unknown): void;
  close(): void;
}

export class Link {
  readonly panel: NotebookPanel;
  readonly #load: Loader;
  readonly #client = UUID.uuid4();
  /** A cell is about to be stepped: somebody should see where it stops. */
  stepping: () => void = () => undefined;
  /** There is a new kernel, or the same one starts again: what is sent to it now runs before its first cell. */
  renewed: () => void = () => undefined;
  readonly #views = new Map<string, { hears: Set<Hear>; pending: Set<string> }>();
  readonly #watchers = new Set<() => void>();
  #runner: Promise<Runner> | null = null;
  #knocked = "";
  #kernel: Kernel | null = null;
  #tell: Comm | null = null;
  #ask: Pick<Comm, "open" | "send" | "close" | "isDisposed"> | null = null;

  constructor(panel: NotebookPanel, load: Loader) {
    this.panel = panel;
    this.#load = load;
    panel.sessionContext.kernelChanged.connect((_, { newValue }) => this.#attend(newValue));
    panel.context.pathChanged.connect(() => this.#send(this.#where()));
    void panel.sessionContext.ready.then(() => this.#attend(panel.sessionContext.session?.kernel ?? null));
  }

  /** Whether the kernel has the extension loaded and hears us. */
  get connected(): boolean {
    return this.#ask !== null;
  }

  get kernel(): Kernel | null {
    return this.#kernel;
  }

  /** Calls `watcher` whenever `connected` or the kernel changes; returns the way off. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** One view's end. `shared`: of the one that the bars and the sidebar have in common, so that they show the same. */
  open(hear: Hear, shared = false): Wire {
    const view = shared ? this.#client : UUID.uuid4();
    const { hears, pending } = this.#views.get(view) ?? { hears: new Set(), pending: new Set() };
    this.#views.set(view, { hears: hears.add(hear), pending });
    return {
      send: (message) => {
        const id = isRecord(message) && typeof message.id === "string" ? message.id : "";
        if (!this.connected) { hear({ type: "answer", id, error: GONE }); return; }
        pending.add(id);
        this.#send({ type: "view", view, message });
      },
      close: () => {
        hears.delete(hear);
        if (hears.size || !this.#views.delete(view)) return;
        this.#send({ type: "unview", view });
      },
    };
  }

  dispose(): void {
    const ask = this.#ask;
    this.#drop();
    if (ask && !ask.isDisposed && this.#kernel?.isDisposed === false) ask.close();
    this.#attend(null);
    this.#watchers.clear();
  }

  #attend(kernel: Kernel | null): void {
    if (kernel === this.#kernel) return;
    this.#drop();
    const renewed = this.#kernel !== null && kernel !== null;
    if (this.#kernel && !this.#kernel.isDisposed) {
      this.#kernel.removeCommTarget(TARGET, this.#adopt);
      this.#kernel.statusChanged.disconnect(this.#status);
    }
    this.#kernel = kernel;
    this.#changed();
    if (!kernel?.handleComms) return;
    kernel.registerCommTarget(TARGET, this.#adopt);
    kernel.statusChanged.connect(this.#status);
    if (renewed) this.renewed();
    void this.#find(kernel).catch((error: unknown) => console.warn("tape-jupyter: no answer from the kernel:", error));
  }

  /** The kernel's comm, where it was opened before this page came. */
  async #find(kernel: Kernel): Promise<void> {
    const asked = kernel.requestCommInfo({ target_name: TARGET }).then(({ content }) => Object.keys(content.comms ?? {}));
    const late = new Promise<null>((resolve) => setTimeout(() => resolve(null), BUSY_MS));
    const found = (await Promise.race([asked, late])) ?? (await Promise.race([asked, this.#load().then(({ commsBeside }) => commsBeside(kernel, TARGET))]));
    const id = found.find((each) => each.startsWith(TELL));
    if (id !== undefined && kernel === this.#kernel && !this.#tell) this.#adopt(kernel.createComm(TARGET, id));
  }

  readonly #status = (_: unknown, status: string): void => {
    if (!/restarting|dead|terminating/.test(status)) return;
    this.#drop();
    if (status.endsWith("restarting")) queueMicrotask(() => this.renewed()); // once the page has forgotten what waited for the old one
  };

  readonly #adopt = (tell: Comm): void => {
    const kernel = this.#kernel;
    if (!kernel || !tell.commId.startsWith(TELL)) return;
    this.#drop();
    this.#tell = tell;
    tell.onMsg = ({ content }) => this.#receive(content.data);
    tell.onClose = () => this.#drop();
    // Kernel messages wait for this handler: the answer must not.
    void this.#answer(kernel, tell).catch((error: unknown) => console.warn("tape-jupyter: cannot reach the kernel:", error));
  };

  async #answer(kernel: Kernel, tell: Comm): Promise<void> {
    const ask = tell.commId.startsWith(TELL + BESIDE) ? new Beside(kernel, TARGET) : await besideOrBehind(kernel);
    if (this.#tell !== tell) return;
    ask.open({ client: this.#client });
    this.#ask = ask;
    this.#send(this.#where());
    this.#changed();
  }

  #receive(data: unknown): void {
    if (!isRecord(data) || data.client !== this.#client) return;
    if (typeof data.view === "string" && isRecord(data.message)) this.#toView(data.view, data.message);
    else if (data.type === "run" && typeof data.id === "string" && typeof data.cell === "string") this.#run(data.id, data.cell);
    else if (data.type === "cancel" && typeof data.id === "string") this.#cancel(data.id);
    else if (data.type === "stepping" && typeof data.id === "string") this.#knock(data.id);
  }

  #run(id: string, cell: string): void {
    this.#runner ??= this.#load().then(({ Runner }) => new Runner(this.panel, (told) => this.#send(told)));
    this.#runner.then((runner) => runner.run(id, cell), () => (this.#runner = null)); // the kernel asks elsewhere
  }

  #cancel(id: string): void {
    void this.#runner?.then((runner) => runner.cancel(id));
  }

  /** The kernel asks whether somebody is here, again and again until it is answered. */
  #knock(id: string): void {
    this.#send({ type: "stepping", id });
    if (id !== this.#knocked) this.stepping();
    this.#knocked = id;
  }

  #toView(name: string, message: Record<string, unknown>): void {
    const view = this.#views.get(name);
    if (typeof message.id === "string") view?.pending.delete(message.id);
    for (const hear of view?.hears ?? []) hear(message);
  }

  #where(): object {
    const { path, localPath } = this.panel.context;
    return { type: "path", path: localPath || path, root: PageConfig.getOption("serverRoot") };
  }

  #send(message: object): void {
    if (this.#ask && !this.#ask.isDisposed && this.#kernel?.isDisposed === false) this.#ask.send(message);
  }

  #drop(): void {
    const was = this.connected;
    this.#tell = this.#ask = null;
    void this.#runner?.then((runner) => runner.drop());
    for (const { hears, pending } of [...this.#views.values()]) {
      const said: Record<string, unknown>[] = [...pending].map((id) => ({ type: "answer", id, error: GONE }));
      pending.clear();
      if (was) said.push({ type: "tell", about: "gone", text: GONE });
      for (const hear of [...hears]) said.forEach(hear);
    }
    if (was) this.#changed();
  }

  #changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** A comm over a subshell, as soon as that is there: what is sent before waits behind the cell that runs. */
async function besideOrBehind(kernel: Kernel): Promise<Comm> {
  const comm = kernel.createComm(TARGET);
  if (!kernel.supportsSubshells || comm.commsOverSubshells === "disabled" || !comm.subshellStarted) return comm;
  const late = new Promise<void>((resolve) => setTimeout(resolve, SUBSHELL_MS));
  await Promise.race([comm.subshellStarted.catch(() => undefined), late]);
  return comm;
}
