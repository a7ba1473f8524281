// The card that exports the session: begun, watched, ended; what is in the way can be asked for all the same.
import { expect, test, vi } from "vitest";
import { Export } from "../../src/view/panels/exporting.tsx";
import type { Exporting } from "../../src/view/protocol.ts";
import { Room } from "./room.tsx";

const IDLE: Exporting = { state: "idle", step: "", done: 0, total: 0, text: "", path: "", sha256: "", differs: false, secret: false };
const RUNNING: Exporting = { ...IDLE, state: "running", step: "replaying without network", done: 1, total: 4 };

/** A kernel whose export stands as `states` say, one at each look. */
function kernel(...states: Exporting[]) {
  const asked: Record<string, unknown>[] = [];
  const room = new Room({
    export: (ask) => {
      asked.push(ask);
      return ask.look ? (states.length > 1 ? states.shift() : states[0]) : RUNNING;
    },
    "export.stop": (ask) => (asked.push(ask), {}),
  });
  return { room, asked };
}

test("it tells its steps and then the file and its digest", async () => {
  vi.useFakeTimers();
  try {
    const { room } = kernel(IDLE, RUNNING, { ...IDLE, state: "done", text: "/x/churn.tape.zip\n  sha256 ab" });
    await room.show(<Export work={room.work} />);
    await room.click("Export…");
    expect(room.text).toContain("replaying without network (1 of 4)");
    await room.do(() => vi.advanceTimersByTimeAsync(900));
    expect(room.text).toContain("Exported and checked");
    expect(room.text).toContain("/x/churn.tape.zip");
    expect(room.place.querySelector("pre")?.textContent).toBe("  sha256 ab");
  } finally {
    vi.useRealTimers();
  }
});

test("an export that another view began is seen here, and can be stopped", async () => {
  const { room, asked } = kernel(RUNNING);
  await room.show(<Export work={room.work} />);
  await room.click("Stop");
  expect(asked.at(-1)).toMatchObject({ about: "export.stop" });
});

test("a cell that differs and a secret each have their button, and no markup of theirs is markup here", async () => {
  const { room, asked } = kernel({ ...IDLE, state: "failed", text: "cell 3 differs <img src=x>", differs: true, secret: true });
  await room.show(<Export work={room.work} />);
  expect(room.place.querySelector("img")).toBeNull();
  expect(room.text).toContain("<img src=x>");
  await room.click("Mask the secrets");
  expect(asked.at(-1)).toMatchObject({ about: "export", redact: true });
});
