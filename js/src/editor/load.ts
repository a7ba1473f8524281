/** A module from its text, for doors that cannot name a file (a widget): imported from a Blob URL. */
export async function importScript<T>(script: string): Promise<T> {
  const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
  try {
    return (await import(/* @vite-ignore */ url)) as T;
  } finally {
    URL.revokeObjectURL(url);
  }
}
