import type { Desk } from "./store.ts";
import { exact, sentence } from "./format.ts";
import type { Found } from "./protocol.ts";

/** Look for the words of the filter in what was asked and answered, stretch by stretch, until other words are typed. */
export async function find(desk: Desk): Promise<void> {
  const { words } = desk.look.filter;
  if (!words.trim() || desk.look.finding) return;
  const all = new Set<string>();
  desk.set({ finding: "searching…" });
  try {
    for (let from: number | null = 0; from !== null; ) {
      const { spans, next, total }: Found = await desk.client.ask<Found>("find", { words, from });
      if (desk.look.filter.words !== words) return;
      for (const span of spans) all.add(span);
      const finding = next === null ? "" : `${exact(next)} of ${exact(total)} spans searched…`;
      desk.set(spans.length ? { found: new Set(all), finding } : { finding });
      from = next;
    }
  } catch (error) {
    if (desk.look.filter.words === words) desk.set({ finding: "", error: sentence(error) });
  }
}
