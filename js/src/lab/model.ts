/** A door of the labextension: the `Model` that a view is mounted on, and whoever stands behind it. */
import type { Model, State } from "../view/protocol.ts";

type Handler = (...args: never[]) => void;
type Behind = (message: Ask) => void;

/** A question of the view's; other keys depend on `about` (protocol.ts). */
export interface Ask extends Record<string, unknown> {
  type: "ask";
  id: string;
  about: string;
}

export class Door implements Model {
  readonly #state: Partial<State>;
  readonly #behind: Behind;
  readonly #handlers = new Map<string, Set<Handler>>();

  constructor(state: Partial<State>, behind: Behind) {
    this.#state = { ...state };
    this.#behind = behind;
  }

  get(key: string): unknown {
    return this.#state[key as keyof State];
  }

  set<K extends keyof State>(key: K, value: State[K]): void {
    this.#state[key] = value;
    this.#emit(`change:${key}`);
  }

  on(event: string, handler: Handler): void {
    this.#handlers.set(event, (this.#handlers.get(event) ?? new Set()).add(handler));
  }

  off(event: string, handler: Handler): void {
    this.#handlers.get(event)?.delete(handler);
  }

  send(message: unknown): void {
    if (isAsk(message)) this.#behind(message);
  }

  /** Hands a message to the view. */
  hear(message: unknown): void {
    this.#emit("msg:custom", message);
  }

  answer(ask: Ask, answer: unknown): void {
    this.hear({ type: "answer", id: ask.id, answer });
  }

  refuse(ask: Ask, error: string): void {
    this.hear({ type: "answer", id: ask.id, error });
  }

  tell(about: string, body: Record<string, unknown>): void {
    this.hear({ ...body, type: "tell", about });
  }

  #emit(event: string, ...args: unknown[]): void {
    for (const handler of [...(this.#handlers.get(event) ?? [])]) handler(...(args as never[]));
  }
}

function isAsk(message: unknown): message is Ask {
  return isRecord(message) && message.type === "ask" && typeof message.id === "string" && typeof message.about === "string";
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
