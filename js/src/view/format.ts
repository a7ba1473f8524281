/** Numbers as people read them. `null` and NaN (not known) are an empty text. */

/** 0.34 -> "340 ms", 2.5 -> "2.5 s", 125 -> "2 m 05 s". */
export function duration(seconds: number): string {
  if (!(seconds >= 0)) return "";
  if (seconds < 0.0005) return "0 ms";
  if (seconds < 0.9995) return `${seconds < 0.00995 ? (seconds * 1000).toFixed(1) : Math.round(seconds * 1000)} ms`;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m ${pad(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${pad(Math.floor((whole % 3600) / 60))} m`;
}

/** A moment on an axis whose marks are `step` seconds apart, no two of which read the same: 9990 -> "2 h 46 m", "2:46:30" where they are 30 s apart. */
export function moment(seconds: number, step: number): string {
  const told = [1, 9.95, 3600].filter((least) => seconds >= least).length;
  if (step > ([0, 0.05, 0.5, 60][told] ?? 0)) return seconds === 0 ? "0" : duration(seconds).replace(/\.0(?= )/, "");
  const digits = Math.max(0, Math.ceil(-Math.log10(step)));
  const exact = Number(seconds.toFixed(digits));
  if (exact < 60) return `${exact} s`;
  const rest = `:${(exact % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0")}`;
  const minutes = Math.floor(exact / 60);
  return minutes < 60 ? `${minutes}${rest}` : `${Math.floor(minutes / 60)}:${pad(minutes % 60)}${rest}`;
}

/** 1204 -> "1.2 k", 2_500_000 -> "2.5 M"; below 1,000 as it is. */
export function short(count: number | null): string {
  if (count === null || Number.isNaN(count)) return "";
  if (count < 1000) return String(Math.round(count));
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"]] as const) if (count >= size * 0.9995) return `${three(count / size)} ${unit}`;
  return `${three(count / 1000)} k`;
}

/** 1204 -> "1,204". */
export function exact(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** US dollars: 0.0042 -> "$0.0042", 12.345 -> "$12.35". */
export function dollars(cost: number | null): string {
  if (cost === null || Number.isNaN(cost)) return "";
  if (cost === 0) return "$0";
  if (cost < 0.00005) return "<$0.0001";
  return `$${cost < 0.01 ? cost.toFixed(4) : cost < 1 ? cost.toFixed(3) : cost.toFixed(2)}`;
}

/** 512 -> "512 B", 20_480 -> "20 KB". */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  return size < 1e6 ? `${three(size / 1000)} KB` : `${three(size / 1e6)} MB`;
}

/** 1, "call" -> "1 call"; 3, "call" -> "3 calls". */
export function many(count: number, word: string): string {
  return `${exact(count)} ${word}${count === 1 ? "" : "s"}`;
}

/** What went wrong. */
export function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function three(value: number): string {
  return value < 9.95 ? value.toFixed(1) : String(Math.round(value));
}

function pad(value: number): string {
  return String(value).padStart(2, "0");
}
