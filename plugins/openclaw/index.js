/**
 * The entry point that OpenClaw loads: registers one optional tool, and ends its calls when the
 * gateway stops.
 *
 * The raymond binary does the work. See lib/tool.js for the calls of the binary.
 */

import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

import { register } from "./lib/register.js";

export default definePluginEntry({
  id: "raymond",
  name: "Raymond",
  description: "Crayfish workflows: steps that converge on schema-valid JSON with the agent that calls them",
  register,
});
