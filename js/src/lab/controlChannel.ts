/**
 * Says things to a kernel on its control channel, which it reads also while a cell runs: a comm that only this page
 * speaks on. The kernel's side is notebook/beside.py. JupyterLab's own comms go over the shell channel, or a subshell
 * that a page which was opened while a cell runs does not know of yet.
 */
import type { Kernel } from "@jupyterlab/services";
import { UUID } from "@lumino/coreutils";

import { control } from "../view/control.ts";

export class Beside {
  readonly #kernel: Kernel;
  readonly #target: string;
  readonly #id = UUID.uuid4();
  isDisposed = false;

  constructor(kernel: Kernel, target: string) {
    this.#kernel = kernel;
    this.#target = target;
  }

  open(data: object): void {
    this.#say("comm_open", { target_name: this.#target, data });
  }

  send(data: object): void {
    this.#say("comm_msg", { data });
  }

  close(): void {
    this.isDisposed = true;
    this.#say("comm_close", { data: {} });
  }

  #say(kind: string, content: object): void {
    control(this.#kernel, kind, { comm_id: this.#id, ...content });
  }
}
