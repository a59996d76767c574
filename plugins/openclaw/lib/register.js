/**
 * Registers the tool for each agent, and ends its calls when the gateway stops.
 *
 * An agent in a sandbox gets no tool, because the binary would run its steps outside the sandbox.
 */

import { Calls } from "./calls.js";
import { readSettings } from "./settings.js";
import { crayfish, NAME } from "./tool.js";

export function register(api) {
  const settings = readSettings(api.pluginConfig);
  const calls = new Calls();
  const workspaceOf = (agentId) => workspaceOfAgent(api, agentId);
  const tool = (agent) => (agent.sandboxed ? null : crayfish({ settings, calls, agent, workspaceOf }));
  api.registerTool(tool, { name: NAME, optional: true });
  api.on("gateway_stop", () => calls.endAll());
}

/** Returns the workspace of a configured agent, or undefined for an unknown id. */
function workspaceOfAgent(api, agentId) {
  const config = api.runtime.config.current();
  const entries = config.agents?.entries ?? {};
  return Object.hasOwn(entries, agentId)
    ? api.runtime.agent.resolveAgentWorkspaceDir(config, agentId)
    : undefined;
}
