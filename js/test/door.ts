import type { Model } from "../src/view/protocol.ts";

interface Asked { type: string; id: string; about: string; [key: string]: unknown }
type Answering = (asked: Asked) => unknown;

/** A door for tests: it keeps what is asked, and answers by hand (`answer`) or at once (`answers`). */
export class FakeDoor implements Model {
  readonly asked: Asked[] = [];
  readonly answers: Record<string, Answering>;
  readonly #state: Record<string, unknown>;
  readonly #handlers = new Map<string, Set<(...args: never[]) => void>>();

  constructor(state: Record<string, unknown> = {}, answers: Record<string, Answering> = {}) {
    this.#state = state;
    this.answers = answers;
  }

  get(key: string): unknown {
    return this.#state[key];
  }

  on(event: string, handler: (...args: never[]) => void): void {
    this.#handlers.set(event, (this.#handlers.get(event) ?? new Set()).add(handler));
  }

  off(event: string, handler: (...args: never[]) => void): void {
    this.#handlers.get(event)?.delete(handler);
  }

  send(message: unknown): void {
    const asked = message as Asked;
    this.asked.push(asked);
    const answer = this.answers[asked.about];
    if (answer) queueMicrotask(() => this.#reply(asked, answer));
  }

  /** Answer all that was asked about this and has no answer yet. */
  answer(about: string, answer: Answering): void {
    for (const asked of this.asked.filter((one) => one.about === about)) this.#reply(asked, answer);
  }

  tell(about: string, body: Record<string, unknown> = {}): void {
    this.say({ type: "tell", about, ...body });
  }

  say(message: unknown): void {
    this.#fire("msg:custom", message);
  }

  set(key: string, value: unknown): void {
    this.#state[key] = value;
    this.#fire(`change:${key}`);
  }

  #reply({ id, ...asked }: Asked, answer: Answering): void {
    const made = answer({ id, ...asked });
    this.say(made instanceof Error ? { type: "answer", id, error: made.message } : { type: "answer", id, answer: made });
  }

  #fire(event: string, ...args: unknown[]): void {
    for (const handler of this.#handlers.get(event) ?? []) handler(...(args as never[]));
  }
}
