/**
 * The entry that OpenClaw loads: one optional tool, and an end for its calls when the gateway stops.
 *
 * The work is done by the raymond binary; see lib/tool.js for what happens around it.
 */

import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

import { register } from "./lib/register.js";

export default definePluginEntry({
  id: "raymond",
  name: "Raymond",
  description: "Crayfish workflows: steps that converge on schema-valid JSON with the agent that calls them",
  register,
});
