/** What a kernel is told on its control channel, which it reads also while a cell runs. Its side is notebook/beside.py. */

/** A page's line to a kernel, as JupyterLab has it. */
export interface Line<Answer = unknown> {
  readonly clientId: string;
  readonly username: string;
  sendControlMessage(message: object, expectReply?: boolean): Answer;
}

export function control<Answer>(line: Line<Answer>, msg_type: string, content: object, expectReply?: boolean): Answer {
  const { clientId: session, username } = line;
  const msg_id = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const header = { date: new Date().toISOString(), msg_id, msg_type, session, username, version: "5.3" };
  return line.sendControlMessage({ channel: "control", header, parent_header: {}, metadata: {}, content, buffers: [] }, expectReply);
}
