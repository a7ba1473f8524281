export interface Door { entry: string; file: string; format: "esm" | "iife" }
export const here: string;
export const DOORS: readonly Door[];
/** Bundles one door; without `outdir` nothing is written. */
export function build(door: Door, outdir?: string): Promise<string>;
