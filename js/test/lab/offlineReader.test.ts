import type { Contents } from "@jupyterlab/services";
import { expect, test } from "vitest";
import { Alone } from "../../src/lab/offlineReader.ts";

const SAVED = { path: "churn.tapes/main.tape.yaml", calls: [], sha256: "" };
const RESOLVER = { resolveUrl: (path: string) => Promise.resolve(`work/${path}`) };

/** What a reader says whose server answers with this status. */
async function said(status: number): Promise<string> {
  const error = Object.assign(new Error(`HTTP ${status}`), { response: { status } });
  const contents = { get: () => Promise.reject(error) } as unknown as Contents;
  const reader = new Alone(SAVED as never, RESOLVER, contents, () => undefined);
  return reader.answer({ type: "ask", id: "1", about: "spans" }).then(String, (why: unknown) => (why as Error).message);
}

test("a cassette that was not sent along is said in words, and where it should lie", async () => {
  expect(await said(404)).toBe("churn.tapes/main.tape.yaml is not here: the recording belongs beside the notebook, and was not moved along with it");
  expect(await said(500)).toBe("HTTP 500");
});
