import { expect, test } from "vitest";
import { Client } from "../src/view/client.ts";
import { FakeDoor } from "./door.ts";

test("an answer reaches the one who asked, and nobody else", async () => {
  const door = new FakeDoor();
  const [one, two] = [new Client(door), new Client(door)];
  const asked = [one.ask("detail", { span: "a" }), two.ask("detail", { span: "b" })];
  door.answer("detail", ({ span }) => `of ${String(span)}`);
  expect(await Promise.all(asked)).toEqual(["of a", "of b"]);
});

test("a refused question carries the door's sentence", async () => {
  const door = new FakeDoor();
  const asked = new Client(door).ask("raw");
  door.answer("raw", () => new Error("churn.tapes/main.tape.yaml:12: not a tape"));
  await expect(asked).rejects.toThrow("main.tape.yaml:12");
});

test("what a door tells is heard until one turns away", () => {
  const door = new FakeDoor();
  const client = new Client(door);
  const heard: unknown[] = [];
  const off = client.on<{ cell: string }>("focus", ({ cell }) => heard.push(cell));
  door.tell("focus", { cell: "c1" });
  off();
  door.tell("focus", { cell: "c2" });
  expect(heard).toEqual(["c1"]);
});

test("a view that is mounted again takes no answer of the one before it", async () => {
  const door = new FakeDoor();
  const before = new Client(door);
  let answered = false;
  void before.ask("session").then(() => (answered = true));
  before.close();
  const after = new Client(door).ask("session");
  door.answer("session", () => "now");
  expect(await after).toBe("now");
  expect(answered).toBe(false);
});

test("messages of no known form are let pass", () => {
  const door = new FakeDoor();
  const client = new Client(door);
  for (const message of [null, 3, "x", [], { type: "answer", id: "none" }, { type: "tell", about: "none" }]) door.say(message);
  expect(client.waiting).toBe(0);
});
