/**
 * The work on a run that is under way in one view: what was typed and not saved, the editor once it is loaded, and the
 * card in front (plan, progress, divergence, comparison). One per mounted view; it outlives the cards.
 */
import type { OpenEditor } from "../../editor/types.ts";
import type { Client } from "../client.ts";
import { Told, useTold } from "../hooks.ts";
import type { Able, Comparison, Divergence, Edit, Plan, Progress, Session } from "../protocol.ts";
import type { Draft } from "../panels/draft.ts";
import type { Desk } from "../store.ts";
import type { Filter } from "../filter.ts";
import type { StepProps } from "../step/bar.tsx";
import type { StartProps } from "../step/start.tsx";
import type { Stepper } from "../step/stepper.ts";

export type Asks = Pick<Client, "ask" | "on">;
export type Policy = "stop" | "live" | "stale";

export type State =
  | { phase: "idle" }
  | { phase: "planning" }
  | { phase: "plan"; plan: Plan; notes: readonly string[]; changed: readonly string[] | undefined }
  | { phase: "running"; progress: Progress | null; divergence: Divergence | null; canceling: boolean }
  | { phase: "done"; comparison: Comparison }
  | { phase: "failed"; title: string; text: string; notes: readonly string[] };

export interface WorkOptions {
  /** Each is code of its own, loaded when first needed. */
  loadCards?: (() => Promise<CardsModule>) | undefined;
  loadEditor?: (() => Promise<OpenEditor>) | undefined;
  onSession?: ((session: Session) => void) | undefined;
  /** A span of the comparison was clicked. */
  onOpenSpan?: ((id: string) => void) | undefined;
}

/** Change one reply: stands in place of the detail's panel. */
export interface PaneProps {
  work: Work;
  span: string;
  /** Open at its faults. */
  start?: "fault" | undefined;
  /** A cell stands at this call: the edit is its answer, and is saved where the step's edits go. */
  serve?: ((edit: Edit, accept: boolean) => Promise<void>) | undefined;
  onClose: () => void;
}
export interface CardsProps { work: Work; able: Able }
export interface DetailProps { desk: Desk; work: Work; narrow: boolean }
export interface StopProps extends StepProps { work: Work }
export interface TakesProps extends CardsProps { session: Session; onClose: () => void }

export interface ChoicesProps { desk: Desk; filter: Filter }

/** What the bundle of the cards exports. Drawing again into the same place updates it. */
export interface CardsModule {
  drawCards: (place: HTMLElement, props: CardsProps) => void;
  /** All about one span. */
  drawDetail: (place: HTMLElement, props: DetailProps) => void;
  /** Between the list and what stands beside it. */
  drawDivider: (place: HTMLElement) => void;
  /** What the button of the takes opens. */
  drawTakes: (place: HTMLElement, props: TakesProps) => void;
  /** What the button of the filters opens. */
  drawChoices: (place: HTMLElement, props: ChoicesProps) => void;
  drawStepBar: (place: HTMLElement, props: StepProps) => void;
  drawStop: (place: HTMLElement, props: StopProps) => void;
  /** What the button beside Step opens. */
  drawStepStart: (place: HTMLElement, props: StartProps) => void;
  newStepper: (desk: Desk) => Stepper;
  /** Look for the words of the filter in bodies, too. */
  find: (desk: Desk) => Promise<void>;
  clear: (place: HTMLElement) => void;
}

/** `notes` say what followed from an edit by itself: the stop reason, a signature that was dropped. */
interface Saved { take: string; session: Session; plan: Plan | null; notes?: string[] }

interface Resumed { about?: "progress" | "diverged" | "done" | "failed"; told?: unknown }

export class Work extends Told {
  readonly drafts = new Map<string, Draft>();
  readonly #client: Asks;
  readonly #options: WorkOptions;
  readonly #offs: (() => void)[];
  /** The cards' code, and the editor's: each loaded once, and tried again where that failed. Rejects where there is none. */
  readonly cards: () => Promise<CardsModule>;
  readonly editor: () => Promise<OpenEditor>;
  #state: State = { phase: "idle" };
  /** What a person chose for all that is left of the re-run. */
  #rest: Divergence["choices"][number] | null = null;

  constructor(client: Asks, options: WorkOptions = {}) {
    super();
    this.#client = client;
    this.#options = options;
    this.cards = once(options.loadCards);
    this.editor = once(options.loadEditor);
    this.#offs = [
      client.on<Progress>("progress", (progress) => this.#running({ progress })),
      client.on<Divergence>("diverged", (divergence) => this.#diverged(divergence)),
      client.on<Comparison>("done", (comparison) => {
        // a proof that ends late: what is planned meanwhile stays in front
        if (!this.#state.phase.startsWith("plan")) this.#go({ phase: "done", comparison });
      }),
      client.on("cancelled", () => this.dismiss()),
      client.on<{ text: string }>("failed", ({ text }) => this.#failed(text)),
      client.on<{ text: string }>("gone", ({ text }) => {
        if (this.#state.phase === "running") this.#failed(text);
      }),
    ];
  }

  get state(): State {
    return this.#state;
  }

  ask<T>(about: string, body?: Record<string, unknown>): Promise<T> {
    return this.#client.ask<T>(about, body);
  }

  /** Go on with a re-run whose view is gone: its page was loaded again, its cell deleted. */
  async resume(): Promise<void> {
    const { about, told } = await this.ask<Resumed>("resume").catch((): Resumed => ({}));
    if (this.#state.phase !== "idle") return;
    if (about === "progress") this.#running({ progress: told as Progress });
    else if (about === "diverged") this.#running({ divergence: told as Divergence });
    else if (about === "done") this.#go({ phase: "done", comparison: told as Comparison });
  }

  /** Ask for the plan of a take (or of the recording, by its cassette's name) and show it. `changed` names spans or cells; without it, what the take overrides. */
  plan(take: string, changed?: readonly string[]): Promise<void> {
    return this.#plan("plan", { take, changed }, "No plan", [], changed);
  }

  /** Take in the cells that the proof named, and plan anew. */
  adopt(take: string, cells: readonly string[]): Promise<void> {
    return this.#plan("adopt", { take, cells }, "No plan", []);
  }

  async override(span: string, edit: Edit, take: string, accept: boolean): Promise<void> {
    const saved = await this.ask<Saved>("override", { span, edit, take, accept });
    const notes = saved.notes ?? [];
    this.drafts.delete(span);
    this.#options.onSession?.(saved.session);
    if (saved.plan) this.#go({ phase: "plan", plan: saved.plan, notes, changed: undefined });
    else void this.#plan("plan", { take: saved.take }, `Saved as take ${saved.take}`, notes);
  }

  async rerun(take: string, entries: readonly number[], fresh: boolean, policy: Policy): Promise<void> {
    const changed = this.#state.phase === "plan" ? this.#state.changed : undefined;
    this.#rest = null;
    await this.ask("rerun", { take, entries, fresh, on_divergence: policy, changed });
    if (this.#state.phase === "plan") this.#running({});
  }

  async cancel(): Promise<void> {
    this.#running({ canceling: true });
    await this.ask("cancel");
  }

  /** `rest`: and each later one of this re-run that can be. */
  async resolve(divergence: string, choice: Divergence["choices"][number], reply?: string, rest = false): Promise<void> {
    if (rest) this.#rest = choice;
    await this.ask("resolve", { divergence, choice, reply });
    if (this.#state.phase === "running" && this.#state.divergence?.id === divergence) this.#running({ divergence: null });
  }

  /** undo, keep, discard, default of a take; open another. */
  async take(about: "undo" | "keep" | "discard" | "default" | "open", body: Record<string, unknown>): Promise<Session> {
    const made = await this.ask<Session>(about, body);
    this.#options.onSession?.(made);
    return made;
  }

  openSpan(id: string): void {
    this.#options.onOpenSpan?.(id);
  }

  dismiss(): void {
    if (this.#state.phase === "done" || this.#state.phase === "failed") void this.ask("seen").catch(() => undefined);
    this.#go({ phase: "idle" });
  }

  close(): void {
    for (const off of this.#offs) off();
    this.tellNobody();
  }

  async #plan(about: "plan" | "adopt", body: { take: string; changed?: readonly string[] | undefined; cells?: readonly string[] }, title: string, notes: readonly string[], changed?: readonly string[]): Promise<void> {
    this.#go({ phase: "planning" });
    try {
      const plan = await this.ask<Plan>(about, body);
      if (this.#state.phase === "planning") this.#go({ phase: "plan", plan: { ...plan, take: body.take || plan.take }, notes, changed });
    } catch (error) {
      this.#go({ phase: "failed", title, text: (error as Error).message, notes });
    }
  }

  #diverged(divergence: Divergence): void {
    const rest = divergence.choices.find((choice) => choice === this.#rest);
    if (!rest) { this.#running({ divergence }); return; }
    this.resolve(divergence.id, rest).catch(() => this.#running({ divergence }));
  }

  #failed(text: string): void {
    this.#go({ phase: "failed", title: "The re-run stopped", text, notes: [] });
  }

  #running(part: Partial<Extract<State, { phase: "running" }>>): void {
    const now = this.#state.phase === "running" ? this.#state : { phase: "running" as const, progress: null, divergence: null, canceling: false };
    this.#go({ ...now, ...part });
  }

  #go(state: State): void {
    this.#state = state;
    this.tell();
  }
}

function once<T>(load: (() => Promise<T>) | undefined): () => Promise<T> {
  let loaded: Promise<T> | null = null;
  return () => {
    loaded ??= load ? load() : Promise.reject(new Error("This view cannot change a recording: open the notebook."));
    loaded.catch(() => (loaded = null));
    return loaded;
  };
}

export function useWork(work: Work): State {
  return useTold(work, () => work.state);
}
