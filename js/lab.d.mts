interface Bundle { file: string; text: string }
/** The labextension's scripts; nothing is written. */
export function bundles(): Promise<{ container: Bundle; chunks: Bundle[] }>;
