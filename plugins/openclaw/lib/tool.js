/**
 * The tool `crayfish` for one agent of the host: each call is one process of the binary.
 *
 * The configuration sets the binary, its limits and its environment. The host sets the workspace.
 * Callers choose none of them.
 */

import { stat } from "node:fs/promises";

import { environment, findBinary } from "./binary.js";
import { Call } from "./call.js";
import { failed, toolResult } from "./envelope.js";
import { DESCRIPTION, PARAMETERS } from "./parameters.js";

export const NAME = "crayfish";

/**
 * Returns the tool. `agent` is the host's context of the agent (`agentId`, `workspaceDir`).
 * `workspaceOf` returns the workspace of another configured agent. `calls` keeps the running calls.
 */
export function crayfish({ settings, calls, agent, workspaceOf }) {
  const answer = async (request, signal, onUpdate) => {
    if (settings.problem !== undefined) return failed("bad_config", settings.problem);
    const workspace = workspaceFor(request, { settings, agent, workspaceOf });
    if (workspace.error !== undefined) return workspace;
    if (!(await isDirectory(workspace.path))) {
      return failed("bad_workspace", `the workspace ${workspace.path} is not a directory`);
    }
    const program = await findBinary(settings.binary);
    if (program === undefined) {
      return failed(
        "engine_missing",
        `there is no program ${settings.binary}: see the plugin's setting binary`,
      );
    }
    const text = JSON.stringify(request ?? null);
    if (signal?.aborted) return failed("cancelled", "the caller cancelled the call");
    const call = new Call({
      program,
      args: ["crayfish", "--workspace", workspace.path],
      cwd: workspace.path,
      env: environment(settings.passEnv),
      limits: settings,
      onLine: (line) => tell(onUpdate, line),
    });
    return follow(call, calls, text, signal);
  };

  return {
    name: NAME,
    label: "Crayfish",
    description: DESCRIPTION,
    parameters: PARAMETERS,
    async execute(_id, request, signal, onUpdate) {
      try {
        return toolResult(await answer(request, signal, onUpdate));
      } catch (error) {
        return toolResult(failed("engine_failed", `the call could not be made: ${error.message}`));
      }
    },
  };
}

async function follow(call, calls, request, signal) {
  calls.add(call);
  const giveUp = () => call.giveUp("aborted");
  signal?.addEventListener("abort", giveUp, { once: true });
  call.send(request);
  try {
    return await call.answer;
  } finally {
    signal?.removeEventListener("abort", giveUp);
  }
}

/**
 * Returns the workspace of a call, or a failure. An agent works in its own workspace. A request
 * that names another agent uses the workspace of that agent, if the operator allows it.
 */
function workspaceFor(request, { settings, agent, workspaceOf }) {
  const wanted = request?.agentId;
  const own = wanted === undefined || typeof wanted !== "string" || wanted === agent.agentId;
  if (!own && !settings.agents.includes(wanted)) {
    const name = JSON.stringify(wanted);
    const message = `${name} is not the agent of this session, and the plugin's setting agents does not list it`;
    return failed("unknown_agent", message);
  }
  const path = own ? agent.workspaceDir : workspaceOf(wanted);
  if (path !== undefined) return { path };
  return own
    ? failed("bad_workspace", "the host names no workspace for this session")
    : failed("unknown_agent", `no agent ${JSON.stringify(wanted)} is configured`);
}

async function isDirectory(path) {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

/** Sends a progress line to the host. If the host cannot take it, the call continues. */
async function tell(onUpdate, line) {
  try {
    await onUpdate?.({ content: [{ type: "text", text: line }], details: { progress: line } });
  } catch {}
}
