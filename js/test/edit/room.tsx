/** A card over a fake door, and the words a test uses of it. */
import { render, type ComponentChild } from "preact";
import { act } from "preact/test-utils";
import { afterEach, vi } from "vitest";
import type { OpenEditor } from "../../src/editor/types.ts";
import { Client } from "../../src/view/client.ts";
import * as cards from "../../src/view/panels/index.tsx";
import { Work } from "../../src/view/edit/store.ts";
import type { Session } from "../../src/view/protocol.ts";
import { FakeDoor } from "../door.ts";
import { EDITABLE, PLAN, SESSION } from "./samples.ts";

export const ABLE = { modes: true, override: true, rerun: true, step: false, cells: true };

export class Room {
  readonly place = document.body.appendChild(document.createElement("div"));
  readonly sessions: Session[] = [];
  readonly opened: string[] = [];
  readonly door: FakeDoor;
  readonly work: Work;

  constructor(answers: FakeDoor["answers"] = {}, loadEditor?: () => Promise<OpenEditor>) {
    this.door = new FakeDoor({}, {
      edit: () => EDITABLE, check: () => ({ problems: [] }), override: ({ take }) => ({ take, session: SESSION, plan: PLAN }),
      plan: () => PLAN, rerun: () => ({ started: true }), cancel: () => ({}), resolve: () => ({}), adopt: () => PLAN,
      open: () => SESSION, keep: () => SESSION, discard: () => SESSION, undo: () => SESSION, default: () => SESSION, ...answers,
    });
    this.work = new Work(new Client(this.door), {
      loadCards: () => Promise.resolve(cards), loadEditor, onSession: (session) => this.sessions.push(session), onOpenSpan: (span) => this.opened.push(span),
    });
    rooms.push(this);
  }

  async show(child: ComponentChild): Promise<void> {
    await this.do(() => render(child, this.place));
  }

  async close(): Promise<void> {
    await this.show(null);
    this.place.remove();
    this.work.close();
  }

  get text(): string {
    return this.place.textContent;
  }

  all<T extends Element = HTMLElement>(selector: string): T[] {
    return [...this.place.querySelectorAll<T>(selector)];
  }

  button(name: string): HTMLButtonElement {
    return found(this.all<HTMLButtonElement>("button"), name, (each) => each.textContent);
  }

  field(name: string): HTMLTextAreaElement {
    return found(this.all<HTMLTextAreaElement>("textarea, input, select"), name, (each) => each.getAttribute("aria-label") ?? each.labels[0]?.textContent ?? "");
  }

  async click(name: string): Promise<void> {
    await this.do(() => this.button(name).click());
  }

  async type(name: string, text: string): Promise<void> {
    const field = this.field(name);
    await this.do(() => {
      field.value = text;
      field.dispatchEvent(new Event(field.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
    });
  }

  async press(key: string, on: Element = document.activeElement ?? this.place): Promise<void> {
    await this.do(() => on.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true })));
  }

  async tell(about: string, body: object): Promise<void> {
    await this.do(() => this.door.tell(about, { ...body }));
  }

  /** Let `ms` of the clock go by: the timers are the test's own. */
  async wait(ms: number): Promise<void> {
    await this.do(() => vi.advanceTimersByTimeAsync(ms));
  }

  /** Do it, and see through what follows: an answer draws, what is drawn asks, and so on. */
  async do(what: () => unknown): Promise<void> {
    await act(async () => {
      await what();
      await settle();
    });
    for (let round = 0; round < 3; round++) await act(settle);
  }

  asked(about: string): Record<string, unknown>[] {
    return this.door.asked.filter((each) => each.about === about);
  }
}

const rooms: Room[] = [];
afterEach(async () => {
  for (const room of rooms.splice(0)) await room.close();
});

/** Answers come in microtasks; a few rounds of them see every chain through. */
async function settle(): Promise<void> {
  for (let round = 0; round < 12; round++) await Promise.resolve();
}

function found<T>(all: T[], name: string, of: (each: T) => string): T {
  const hit = all.find((each) => of(each).trim() === name) ?? all.find((each) => of(each).includes(name));
  if (!hit) throw new Error(`no "${name}" among: ${all.map(of).join(" | ")}`);
  return hit;
}
