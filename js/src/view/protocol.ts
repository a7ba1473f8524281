/**
 * What the view and a door say to each other. A door is an anywidget, the labextension's sidebar, a rendered output or
 * a standalone page; Python's side of it is `tape_jupyter/spans/` (the shapes) and `notebook/viewer.py` (the answers).
 *
 * The view asks (`send({type: "ask", id, about, ...})`), the door answers (`msg:custom` with `{type: "answer", id, ...}`
 * or `{type: "answer", id, error}`); the door may also tell of its own accord (`{type: "tell", about, ...}`). Every text
 * in here comes from a recording: it is data, and reaches the page as text nodes only.
 */

/** All that a door offers. anywidget's own model is one. */
export interface Model {
  get(key: string): unknown;
  on(event: string, handler: (...args: never[]) => void): void;
  off?(event: string, handler: (...args: never[]) => void): void;
  send(message: unknown): void;
}

/** What the door can do: buttons that it cannot honour are not drawn. */
export interface Able {
  modes: boolean;
  override: boolean;
  rerun: boolean;
  step: boolean;
  /** Whether cells of a notebook can be shown (clicking a span scrolls to its cell). */
  cells: boolean;
  /** Of a page: whether it holds how the changed calls of its take were recorded. */
  recorded?: boolean;
}

/** Keys of `Model.get`, all optional; each has `change:KEY`. */
export interface State {
  door: "widget" | "sidebar" | "output" | "page";
  able: Able;
  /** The first words: a notebook's name, for the window and for screen readers. */
  title: string;
  /** What to show when first mounted: a span's id, a cell. */
  span: string | null;
  /** A fixed height in px where the door needs one. */
  height: number;
  /** A widget's: the comm's id where the kernel hears it on its control channel, also while a cell runs; else "". */
  beside: string;
}

// ---------------------------------------------------------------- about: "session"

export interface Session {
  mode: "off" | "live" | "record" | "replay" | "once" | "new_episodes";
  /** Whether a cell set the mode (`%tape replay`), not a view. */
  typed?: boolean;
  cassettes: string[];
  cassette: string;
  /** "" is the recording itself. */
  take: string;
  takes: Take[];
  /** Whether the person made the take the one that replays without a word. */
  default_take: string;
  totals: Totals;
  /** A cell that is taped now. */
  running: Running | null;
  notes: string[];
  /** In answer to "discard": the cells that show what the take gave. */
  cells?: string[];
}
export interface Take { name: string; of: string; overrides: number; calls: number; at: string; stale: number }
export interface Totals {
  spans: number; calls: number; errors: number; seconds: number;
  tokens_in: number | null; tokens_out: number | null;
  /** US dollars at list price; `partial` where some model's price is not known. */
  cost: number | null; partial: boolean;
}
/** `waits`: what the calls that have begun and not ended go to. */
export interface Running { cell: string; mode: string; calls: number; seconds: number; waits?: string }

// ---------------------------------------------------------------- about: "spans" {cassette, take, from, limit}

export const KINDS = ["cell", "span", "model", "tool", "retrieval", "http"] as const;
export const MARKS = ["", "overridden", "error", "diverged", "stale", "running", "superseded", "retried"] as const;

/**
 * A page of spans, as columns, in tree order (a parent stands before its children): rows `from` to `from + length`.
 * `revision` changes when earlier rows do: then the view starts again at 0.
 */
export interface Page {
  revision: number; from: number; total: number;
  /** Ids: "RUN" of a cell run, "RUN/CALL" of a call, "RUN/#N" of a user span. */
  id: string[];
  depth: number[];
  /** Index into KINDS, MARKS. */
  kind: number[]; mark: number[];
  /** Seconds since the earliest span of the cassette; `first` is the first token or byte, null where there is none. */
  start: number[]; first: (number | null)[]; end: number[];
  /** What happened, first: `→ lookup_order`, `"negative"`, `429 rate_limit`, `[2] classify`. One line. */
  name: string[];
  /** The model, host or tool, dimmed after it. */
  note: string[];
  tokens: (number | null)[]; cost: (number | null)[];
  /** Which cell: the front end's id, else the first 12 digits of its source's hash. */
  cell: string[];
}

// ---------------------------------------------------------------- about: "detail" {span}

export interface Detail {
  id: string; kind: (typeof KINDS)[number]; title: string; cell: string; path: string; line: number;
  /** "decoded" as messages; empty where it is no conversation. */
  turns: Turn[];
  /** Sections as a person reads them: name and JSON or text, cut at `cut` characters (then `whole` is false). */
  request: Section; reply: Section;
  headers: { request: [string, string][]; reply: [string, string][] };
  status: number | null; ending: string; error: string | null;
  timing: { at: string; seconds: number; first: number | null; chunks: number; rate: number | null };
  usage: { tokens_in: number | null; tokens_out: number | null; cost: number | null; model: string };
  kit: [string, string][];
  tags: [string, string][];
  /** Sizes of the bodies in bytes, for the raw tab, which asks page by page. */
  raw: { request: number; reply: number };
  /** The take that overrides it, and what it was before. */
  overridden: { take: string; stale: boolean; note: string } | null;
  editable: "message" | "value" | "raw" | "no";
  source: string | null;
}
export interface Turn {
  role: "system" | "user" | "assistant" | "tool" | "thinking";
  parts: Part[];
}
export type Part =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | { type: "tool_use"; id: string; name: string; input: unknown }
  | { type: "tool_result"; id: string; text: string; error: boolean }
  | { type: "image"; media: string; bytes: number; data: string | null }
  | { type: "other"; name: string; value: unknown };
export interface Section { text: string; json: boolean; whole: boolean }

// about: "raw" {span, side: "request" | "reply", from, size} -> {text, hex: boolean, from, total}
export interface Raw { text: string; hex: boolean; from: number; total: number }
// about: "diff" {span, other: span id | "base"} -> {parts}; about: "candidates" {span} -> {spans: {id, name}[]}
export interface Diff { left: string; right: string; left_name: string; right_name: string }
// about: "find" {words, from: row}: calls in whose bodies all words stand, a stretch of rows at a time
export interface Found { spans: string[]; next: number | null; total: number }
// about: "source" {cell} -> {text}; tell "focus" {cell} (a cell was clicked), tell "changed" {revision, total, running}
// about: "select" {span}: the person clicked a span; the door shows its cell. about: "mode" {mode} -> Session
// about: "open" {take, cassette?} -> Session; about: "editor" -> {script} (the editor's module text; widget door only)

// ---------------------------------------------------------------- about: "edit" {span}: what may be edited

export interface Editable {
  span: string;
  form: "message" | "value" | "raw";
  api: string;
  /** JSON text of the assembled message or of the tool's value; as recorded, and as it stands in this take. */
  recorded: string; current: string;
  /** The same by field, where the form is "message": one a text, a tool call, the stop reason. */
  fields: Field[];
  raw: { status: number | null; headers: [string, string][]; body: string; json: boolean };
  faults: Fault[];
  /** A free name for the take. */
  take: string;
  limit: number;
}
export interface Field {
  /** Where in the message, as a JSON path: `content[0].text`, `choices[0].message.tool_calls[0].function.arguments`. */
  path: string; label: string; kind: "text" | "json" | "name" | "choice"; value: string; choices?: string[];
}
/** `name` goes back in an edit; `options` are what it takes, with their defaults. One that is a yes or no goes back as it was typed. */
export interface Fault { name: string; label: string; options: { name: string; label: string; value: boolean | number | string }[] }
export type FaultOptions = Record<string, boolean | number | string>;

/** One of these is an edit. `message` and `value` are JSON text. */
export type Edit =
  | { form: "message"; message: string }
  | { form: "fields"; fields: { path: string; value: string }[] }
  | { form: "value"; value: string }
  | { form: "raw"; status: number; headers: [string, string][]; body: string }
  | { form: "fault"; name: string; options: FaultOptions };

// about: "check" {span, edit} -> {problems}; about: "override" {span, edit, take, accept: boolean} -> {take, session, plan, notes?}
export interface Problem { level: "error" | "warning"; path: string; text: string }
// about: "undo" {take} -> Session; about: "keep" | "discard" | "default" {take} -> Session

// ---------------------------------------------------------------- about: "plan" {take, changed?}: before anything runs

export interface Plan {
  take: string;
  total: number;
  cells: PlanCell[];
  /** Calls that the tape answers, and those that may go live. */
  from_tape: number; maybe_live: number; counted: string;
  /** Sentences about what cannot be decided: repeats of side effects, opaque values. */
  warnings: string[];
  /** Whether only a fresh kernel gets it right, and why. */
  hermetic: string | null;
  seconds: number | null;
}
export interface PlanCell {
  /** The entry of the execution history; its cell's id and prompt number. */
  entry: number; cell: string; number: number | null; title: string;
  /** "holds the changed reply", "reads `mood`, set by [2]". */
  reasons: string[];
  role: "changed" | "downstream" | "restores";
  ticked: boolean;
  /** Entries whose run this one needs: unticking one of them is said. */
  needs?: number[];
  /** Of its calls, how many may go live, and what these took when recorded: US dollars, null unknown. */
  asks?: number; cost?: number | null;
}

// about: "rerun" {take, entries, fresh, on_divergence, changed? as planned} -> {started}; about: "cancel" -> {}
// about: "adopt" {take, cells} -> Plan (the proof named cells that differ); "done" may come again, with the proof's end
// about: "resume" {} -> {about: "progress" | "diverged" | "done", told} of the newest re-run, or {}; "seen" {} (its end was closed); tell "gone" {text}: the kernel went
// tell "progress": Progress; tell "diverged": Divergence; about: "resolve" {divergence: its id, choice, reply?}; tell "done": Comparison; "cancelled" {}; "failed" {text}
export interface Progress { done: number; total: number; cell: string; title: string; state: "running" | "restoring" | "proving" }
export interface ChangedField { path: string; recorded: string; now: string }
export interface Divergence {
  id: string; cell: string; title: string;
  /** Fields that differ, the decisive one first. */
  fields: ChangedField[];
  asked: Section; recorded: Section | null;
  /** The recorded reply, from which one's own is written; `resolve`'s `reply` is text of the same form. */
  reply?: { text: string; json: boolean };
  /** What going live may cost, US dollars; null unknown. */
  cost: number | null;
  choices: ("live" | "write" | "stale" | "skip")[];
}
export interface Comparison {
  take: string; ran: number; skipped: string[]; stopped: string | null;
  /** What else there is to know, in sentences. */
  note?: string;
  cells: CellChange[];
  spans: { before: string | null; after: string | null; name: string; mark: "same" | "changed" | "added" | "gone"; note: string }[];
  variables: { name: string; before: string; after: string }[];
  proof: { state: "running" | "proved" | "differs" | "not provable"; text: string; adopt: string[] };
}
export interface CellChange { cell: string; number: number | null; title: string; same: boolean; outputs: OutputChange[] }
export interface OutputChange {
  kind: "text" | "table" | "image" | "error";
  /** Text, CSV of a table, or a data: URL of a PNG, JPEG; null where there was none. */
  before: string | null; after: string | null;
}

// ---------------------------------------------------------------- about: "step": a cell that stops before its calls
// "step" {} -> StepState | null (and the view is told from now on); tell "step": StepState; "step.do": StepDo -> {};
// "step.frames" {strand} -> StepFrame[]; "step.variables" {strand, frame} -> StepVariables; "step.compare" {a, b} ->
// StepCompared; "step.arm" {cell, breaks, record, take} -> {}; tell "step.probe" {id}: answered by "step.here" {id} -> {};
// "step.outputs" {} -> StepShown

export interface StepState {
  /** Grows with every change. */
  revision: number;
  state: "running" | "stopped" | "rewinding" | "over";
  cell: string; title: string; mode: "replay" | "record";
  cassette: string;
  /** The take that edits go to; "" while nothing was edited. */
  take: string;
  /** The take whose replies it gets; "" where it is the recording. */
  plays: string;
  edits: number;
  breaks: string[];
  /** Who stands at a call, in the order of arrival. */
  strands: StepStrand[];
  /** Calls of this pass that were made, the last ones (at most 500), oldest first; `made` counts all. */
  passed: StepPassed[]; made: number;
  /** What there is to know, a sentence; "" mostly. */
  note: string;
}
export interface StepStrand {
  /** "" is the cell itself. */
  strand: string;
  /** For people: "cell", "thread Thread-3 (ask)", "task Task-7". */
  name: string;
  call: StepCall;
  /** The user's innermost frame: file or cell, line. */
  at: string; line: number | null;
}
export interface StepPassed { place: string; span: string; title: string; kind: (typeof KINDS)[number]; edited: boolean }
export interface StepCall {
  place: string;
  /** 1 for the first call of the pass, in order of arrival. */
  nth: number;
  /** The recorded call that answers, "RUN/CALL"; "" where none does. */
  span: string;
  kind: (typeof KINDS)[number]; title: string; name: string;
  /** What becomes of it when the person steps over it. */
  would: "play" | "live" | "refuse";
  request: Section; reply: Section | null;
  /** Where it is not on the tape: how it differs from the nearest recorded call, the decisive field first. */
  fields: ChangedField[];
  /** The request's body or arguments, to be changed; null where that cannot be done. */
  request_edit: string | null;
  /** Why what goes out cannot be changed, a sentence; "" mostly. */
  unchangeable: string;
  /** Faults that it can be given where it is not on the tape; of one that is, they come with its edit. */
  faults: Fault[];
  edited: boolean;
  can: StepWord[];
}
export const STEP_WORDS = [
  "over", "model", "tool", "retrieval", "continue", "to", "jump", "back", "edit", "answer", "fault", "live", "refuse", "request", "stop",
] as const;
export type StepWord = (typeof STEP_WORDS)[number];
export interface StepDo {
  do: StepWord; strand?: string; revision?: number;
  span?: string; place?: string; edit?: Edit; accept?: boolean; text?: string;
  name?: string; options?: FaultOptions;
}
export interface StepFrame {
  index: number;
  /** "cell [3]", a path. */
  file: string; cell: string; function: string; line: number;
  /** Source around it; `first` is the number of its first line. */
  source: string[]; first: number;
  /** Frames of libraries and of ours between this one and the next inner one. */
  left_out: number;
}
export interface StepVariables { variables: { name: string; type: string; text: string; whole: boolean }[]; total: number }
/** What the cell has shown, as notebooks have it, for a page that was opened while it runs; `asked` is the message that asked for it. */
export interface StepShown { cell: string; asked: string; count: number | null; outputs: (Record<string, unknown> & { output_type: string; display_id?: string })[] }
export interface StepCompared { variables: { name: string; before: string; after: string }[]; note: string }

// ---------------------------------------------------------------- about: "export" {path?, redact?, allow_differences?}
// -> Exporting; with {look: true} how the last one stands; "export.stop" {} -> {}; tell "export": Exporting. The notebook
// is exported as it is saved: a door that can save it does so first.

/** A command that the kernel runs in a process of its own (long_command.py). */
export interface LongTask {
  state: "idle" | "running" | "done" | "failed";
  step: string; done: number; total: number;
  /** Of the end: what there is to read, and the file that was made. */
  text: string; path: string;
}
export interface Exporting extends LongTask {
  sha256: string;
  /** Cells differ: it is marked so, or was not made. */
  differs: boolean;
  /** It was not made, since a secret was found. */
  secret: boolean;
}

// ---------------------------------------------------------------- about: "import" {file}
// -> LongTask; with {look: true} how the last one stands, as Importing; "import.stop" {} -> {}; tell "import": LongTask.
// `path` is the notebook that was written, in the folder of this one.

/** files: names in the notebook's folder that may be meant; sent where one looks. */
export interface Importing extends LongTask { files?: string[] }

// ---------------------------------------------------------------- about: "why" {cassette, good, bad, check}
// -> Causing; with {look: true} how the last one stands; "why.stop" {} -> {}; tell "why": Causing. `good` and `bad` are takes
// of that cassette, "" the recording itself. The notebook is looked at as it is saved.

export interface Causing extends LongTask {
  /** The cause in sentences, the first above the others. */
  words: string[];
  layers: [string, string][];
  /** Code cells, and below each what was asked there or differs. `span` is a call's, "" where there is none. */
  tree: { id: string; span: string; title: string; depth: number; differs: boolean; culprit: boolean }[];
}
