/**
 * What the plugin tells its host: the tool for each agent, and what to do when the gateway stops.
 *
 * An agent in a sandbox gets no tool at all: the binary would run its steps outside.
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

/** The workspace of a configured agent; nothing for an id that nobody has. */
function workspaceOfAgent(api, agentId) {
  const config = api.runtime.config.current();
  const entries = config.agents?.entries ?? {};
  return Object.hasOwn(entries, agentId)
    ? api.runtime.agent.resolveAgentWorkspaceDir(config, agentId)
    : undefined;
}
