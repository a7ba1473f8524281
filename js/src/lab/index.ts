/** The labextension's door: what the container hands to JupyterLab. One module for both, so that they share the hub. */
export { mime } from "./mime.ts";
export { plugin } from "./plugin.ts";
