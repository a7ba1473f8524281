import { mount } from "../view/mount.tsx";

const home = document.getElementById("tape");
if (home) mount(home, { get: () => undefined, on: () => undefined, send: () => undefined });
