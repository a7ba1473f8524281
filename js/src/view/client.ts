import type { Model } from "./protocol.ts";

interface Answer { type: "answer"; id: string; answer?: unknown; error?: string }
interface Tell { type: "tell"; about: string }
interface Waiting { resolve(answer: never): void; reject(error: Error): void }

/**
 * Asks and hears over a door's `Model`. Ids are unique per client, so that several views of one model, and a view that
 * is mounted again, each take their own answers only. What was not answered when the view goes is dropped: what counts
 * is in the kernel, and the next view asks for it.
 */
export class Client {
  readonly #model: Model;
  readonly #name = crypto.getRandomValues(new Uint32Array(2)).join("-");
  readonly #waiting = new Map<string, Waiting>();
  readonly #handlers = new Map<string, Set<(body: never) => void>>();
  #count = 0;

  constructor(model: Model) {
    this.#model = model;
    model.on("msg:custom", this.#hear);
  }

  /** The answer to a question of protocol.ts. Rejects with `Error(answer.error)`. */
  ask<T>(about: string, body: Record<string, unknown> = {}): Promise<T> {
    const id = `${this.#name}:${++this.#count}`;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#model.send({ ...body, type: "ask", id, about });
    });
  }

  /** Hear what the door tells of its own accord; returns the way off. */
  on<T>(tell: string, handler: (body: T) => void): () => void {
    const handlers = this.#handlers.get(tell) ?? new Set();
    this.#handlers.set(tell, handlers.add(handler));
    return () => handlers.delete(handler);
  }

  /** How many questions wait for an answer. */
  get waiting(): number {
    return this.#waiting.size;
  }

  close(): void {
    this.#model.off?.("msg:custom", this.#hear);
    this.#waiting.clear();
    this.#handlers.clear();
  }

  readonly #hear = (message: unknown): void => {
    if (is<Answer>(message, "answer")) {
      const waiting = this.#waiting.get(message.id);
      this.#waiting.delete(message.id);
      if (message.error === undefined) waiting?.resolve(message.answer as never);
      else waiting?.reject(new Error(message.error));
    } else if (is<Tell>(message, "tell")) {
      for (const handler of this.#handlers.get(message.about) ?? []) handler(message as never);
    }
  };
}

function is<T extends { type: string }>(message: unknown, type: T["type"]): message is T {
  return (message as Partial<T> | null | undefined)?.type === type;
}
