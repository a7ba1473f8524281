/** The mode switch in a notebook's toolbar and the item in the status bar: both show one notebook's session. */
import { Notification } from "@jupyterlab/apputils";
import { Widget } from "@lumino/widgets";

import { many } from "../view/format.ts";
import type { Session, StepState } from "../view/protocol.ts";
import { isRecord } from "./model.ts";
import { loadLate } from "./registry.ts";
import type { Link, Wire } from "./kernelConnection.ts";
import type { CellSigns } from "./cellSigns.ts";

const MODES: [value: string, label: string, title: string][] = [
  ["off", "tape: off", "No recording, no replay"],
  ["record", "● record", "Every cell goes live and is recorded"],
  ["replay", "▶ replay", "Every cell is replayed; nothing goes out"],
  ["step", "❚❚ step", "Run the selected cell, and stop before each of its calls"],
];
/** Met when they are needed. */
const MORE: typeof MODES = [
  ["live", "live", "Every cell goes live and is shown, not recorded"],
  ["once", "once", "Replayed where it was recorded, else recorded"],
  ["new_episodes", "new episodes", "Known calls are replayed, others recorded"],
];
const LOAD = "%load_ext tape_jupyter";
/** As LOAD, but that the notebook's own LOAD does not say that it is loaded already. */
const QUIETLY = "__import__('tape_jupyter').load_ipython_extension(get_ipython())";

function say(error: string): void {
  Notification.error(`Tape: ${error}`, { autoClose: 8000 });
}

/** What the bars know of a notebook: its session, asked for again whenever the kernel tells of a change. */
export class Watch {
  readonly #link: Link;
  readonly #watchers = new Set<() => void>();
  readonly #unwatch: () => void;
  #wire: Wire | null = null;
  #count = 0;
  /** A mode that a person chose, until the kernel has said that it is set. */
  #wanted: string | null = null;
  /** The mode of this notebook, which outlives its kernel. */
  #kept: Pick<Session, "mode" | "typed"> | null = null;
  #signs: CellSigns | null = null;
  /** What is done with an answer, by the id of its question. */
  readonly #answers = new Map<string, (message: Record<string, unknown>) => unknown>();
  session: Session | null = null;
  step: StepState | null = null;
  /** A cell stands at a call, and this page did not see it come there. */
  stopped: () => void = () => undefined;

  constructor(link: Link) {
    this.#link = link;
    this.#unwatch = link.watch(() => this.#connect());
    link.renewed = () => this.#again();
    this.#connect();
  }

  get connected(): boolean {
    return this.#link.connected;
  }

  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** Set the session's mode; loads the extension first where the kernel has not. */
  async setMode(mode: string): Promise<void> {
    if (mode === "off" && !this.connected) { this.#changed(); return; }
    this.#wanted = mode;
    if (this.connected) this.#askMode();
    else await this.#load(); // set once the kernel has said that it is there
  }

  /** Run the selected cell, and stop before its calls. Rejects with what is in the way. */
  async stepCell(how: object = {}): Promise<void> {
    const { panel } = this.#link;
    const cell = panel.content.activeCell;
    if (cell?.model.type !== "code") throw new Error("Select a code cell to step through.");
    if (!this.connected) throw new Error(`The tape is not loaded in this notebook's kernel: run ${LOAD} first.`);
    const late = loadLate();
    await this.asked("step.arm", { breaks: [], record: false, take: "", ...how, cell: cell.model.id });
    void (await late).runCell(panel, cell);
  }

  /** Begin to step the selected cell; where one stands at a call, give it its reply and stop at the next. */
  async #stepOn(): Promise<void> {
    const { step } = this;
    if (step?.state !== "stopped") { if (!step) await this.stepCell(); return; }
    await this.asked("step.do", { do: "over", revision: step.revision, strand: step.strands[0]?.strand ?? "" });
  }

  /** Whether it did. */
  async stepOrSay(): Promise<boolean> {
    try {
      await this.#stepOn();
      return true;
    } catch (error) {
      say((error as Error).message);
      return false;
    }
  }

  /** The notebook's mode, in its new kernel; one that a cell set comes with that cell. */
  #again(): void {
    const { mode, typed } = this.#wanted === null ? (this.#kept ?? { mode: "off", typed: false }) : { mode: this.#wanted, typed: false };
    this.#wanted = this.#kept = null;
    if (mode === "off") return;
    if (!typed) {
      this.#kept = { mode, typed: false } as Session; // a kernel may start again before it answers
      void this.#load(`\n%tape ${mode}`);
      Notification.info(`Tape: the new kernel is set to ${mode} again.`, { autoClose: 6000 });
      return;
    }
    const actions = [{ label: `Set it to ${mode}`, callback: () => void this.setMode(mode) }];
    Notification.warning(`Tape: the new kernel is not in ${mode} mode until the cell with %tape ${mode} runs again.`, { autoClose: 15_000, actions });
  }

  async #load(then = ""): Promise<void> {
    const kernel = this.#link.kernel;
    if (!kernel) return;
    // What a new kernel is told stands before its first cell: nothing is waited for, and only a taped one is told.
    const language_info = then ? { name: "python" } : (await kernel.info).language_info;
    const { content } =
      language_info.name === "python"
        ? await kernel.requestExecute({ code: QUIETLY + then, silent: true, store_history: false }).done
        : { content: { status: "error", evalue: `this kernel runs ${language_info.name}` } };
    if (content.status === "ok") return;
    this.#wanted = this.#kept = null;
    say(`${LOAD} failed: ${content.evalue ?? content.status}. Install tape-jupyter in the kernel's environment.`);
    this.#changed();
  }

  dispose(): void {
    this.#unwatch();
    this.#wire?.close();
    this.#watchers.clear();
  }

  #connect(): void {
    this.#wire?.close();
    this.#wire = null;
    this.session = null;
    this.#stepped(null);
    if (this.connected) {
      this.#wire = this.#link.open((message) => this.#hear(message), true);
      void this.asked("step").then((state) => this.#stepped(state, true), () => undefined);
      if (this.#wanted === null) this.#ask("session");
      else this.#askMode();
    }
    this.#changed();
  }

  #askMode(): void {
    const mode = this.#wanted;
    void this.asked("mode", { mode }).then(
      () => { if (this.#wanted === mode) this.#wanted = null; },
      (error: unknown) => {
        if (!this.connected) return; // it is set in the next kernel
        this.#wanted = null;
        say((error as Error).message);
      },
    );
  }

  #ask(about: string, body: object = {}): string {
    const id = `bar-${about}-${++this.#count}`;
    this.#wire?.send({ ...body, type: "ask", id, about });
    return id;
  }

  /** The kernel's answer; rejects with its error. */
  asked(about: string, body: object = {}): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#answers.set(this.#ask(about, body), ({ error, answer }) => (typeof error === "string" ? reject(new Error(error)) : resolve(answer)));
    });
  }

  #stepped(step: unknown, late = false): void {
    const state = isRecord(step) && step.state !== "over" ? (step as unknown as StepState) : null;
    if (state === null && this.step === null) return;
    if (late && state) { // this page was opened while the cell runs
      if (state.state === "stopped") this.stopped();
      void loadLate().then(({ follow }) => follow(this.#link, (hear) => this.#answers.set(this.#ask("step.outputs"), hear)));
    }
    this.step = state;
    this.#changed();
  }

  /** What stands at the cell that runs; its code is loaded with the first. */
  #sign(): void {
    if (this.#signs) this.#signs.draw();
    else if (this.step ?? this.session?.running) void loadLate().then(({ CellSigns }) => (this.#signs ??= new CellSigns(this.#link.panel, this)).draw());
  }

  #hear(message: Record<string, unknown>): void {
    if (message.type === "tell" && message.about === "changed") this.#ask("session");
    if (message.type === "tell" && message.about === "step") this.#stepped(message);
    if (message.type !== "answer") return;
    this.#answers.get(String(message.id))?.(message);
    this.#answers.delete(String(message.id));
    const { answer } = message;
    const session = isRecord(answer) && isRecord(answer.session) ? answer.session : answer; // an edit's, too
    if (!isRecord(session) || !isRecord(session.totals)) return;
    this.session = this.#kept = session as unknown as Session;
    this.#changed();
  }

  #changed(): void {
    this.#sign();
    for (const watcher of [...this.#watchers]) watcher();
  }
}

/** The switch: a select, dressed as JupyterLab's own cell type menu beside it. */
export class ModeSwitch extends Widget {
  /** `step`: what the command for it does. */
  constructor(watch: Watch, step: () => Promise<unknown>) {
    super();
    this.addClass("tape-mode");
    const select = document.createElement("select");
    select.title = "Tape: how calls are handled";
    select.setAttribute("aria-label", "Tape mode");
    const option = ([value, label, title]: (typeof MODES)[number]) => Object.assign(document.createElement("option"), { value, label, title, textContent: label });
    const more = Object.assign(document.createElement("optgroup"), { label: "more" });
    more.append(...MORE.map(option));
    select.append(...MODES.map(option), more);
    select.addEventListener("change", () => {
      if (select.value !== "step") void watch.setMode(select.value);
      else void step().then(draw);
    });
    const box = document.createElement("div");
    box.className = "jp-HTMLSelect jp-DefaultStyle";
    box.append(select);
    this.node.append(box);
    const draw = () => {
      const { step, session } = watch;
      const mode = step ? "step" : (session?.running?.mode ?? session?.mode ?? "off"); // a cell may be taped by its own line
      if (session) select.title = statusText(session); // Notebook 7 has no status bar
      select.value = mode;
      this.node.dataset.mode = mode;
    };
    this.disposed.connect(watch.watch(draw));
    draw();
  }
}

export class StatusItem extends Widget {
  #unwatch: () => void = () => undefined;
  #watch: Watch | null = null;

  constructor(show: () => void) {
    super();
    this.addClass("tape-status");
    this.node.setAttribute("role", "button");
    this.node.tabIndex = 0;
    this.node.title = "Show the tape";
    this.node.addEventListener("click", show);
    this.node.addEventListener("keydown", ({ key }) => {
      if (key === "Enter" || key === " ") show();
    });
    this.follow(null);
  }

  follow(watch: Watch | null): void {
    this.#unwatch();
    this.#watch = watch;
    this.#unwatch = watch?.watch(() => this.#draw()) ?? (() => undefined);
    this.#draw();
  }

  #draw(): void {
    const session = this.#watch?.session ?? null;
    this.node.textContent = session ? statusText(session) : "";
    this.node.dataset.mode = session?.mode ?? "";
    this.setHidden(session === null);
  }
}

/** `replay · main · angry-customer · 5 calls`: those on the tape that is shown, as below its list; of a cell that is taped, its calls so far. */
export function statusText(session: Session): string {
  const { mode, cassette, take, running } = session;
  const calls = running?.calls ?? session.totals.calls;
  const counted = `${many(calls, "call")}${running ? " so far" : ""}`;
  const state = running ? `${SIGN[running.mode] ?? ""} ${running.mode}` : `${SIGN[mode] ?? ""} ${mode}`;
  return ["tape", state.trim(), cassette, take, counted].filter(Boolean).join(" · ");
}

const SIGN: Record<string, string> = { record: "●", replay: "▶" };
