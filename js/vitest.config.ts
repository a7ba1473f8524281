import { defineConfig } from "vitest/config";

export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: { environment: "happy-dom", include: ["test/**/*.test.{ts,tsx}"], testTimeout: 60_000 },
});
