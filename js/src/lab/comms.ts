import type { Kernel } from "@jupyterlab/services";

import { control } from "../view/control.ts";

/** The kernel's comms of a target, asked for beside the cell that runs. */
export function commsBeside(kernel: Kernel, target: string): Promise<string[]> {
  return new Promise((resolve) => {
    const asked = control(kernel, "comm_info_request", { target_name: target }, true);
    asked.onReply = ({ content }) => resolve(Object.keys(content.comms ?? {}));
  });
}
