/**
 * The settings of the plugin, with their defaults and bounds.
 *
 * The host checks them against the manifest before it loads the plugin. The plugin checks them
 * again, because some ways to load a plugin skip that check, and a limit that is not a number has
 * no effect.
 */

const NUMBERS = {
  timeoutMs: { default: 1_800_000, minimum: 1_000, maximum: 86_400_000 },
  graceMs: { default: 10_000, minimum: 100, maximum: 60_000 },
  maxReplyBytes: { default: 33_554_432, minimum: 65_536, maximum: 268_435_456 },
};
const KEYS = ["binary", ...Object.keys(NUMBERS), "agents", "passEnv"];

/** Returns the settings, or `{ problem }`. Every call then fails with this problem. */
export function readSettings(config) {
  const given = config ?? {};
  try {
    const unknown = Object.keys(given).find((key) => !KEYS.includes(key));
    if (unknown !== undefined) throw new Error(`there is no setting ${unknown}`);
    return {
      binary: binary(given.binary ?? "raymond"),
      ...Object.fromEntries(Object.keys(NUMBERS).map((name) => [name, number(name, given[name])])),
      agents: strings("agents", given.agents ?? []),
      passEnv: strings("passEnv", given.passEnv ?? []),
    };
  } catch (error) {
    return { problem: error.message };
  }
}

/** Rejects relative paths, because they would select another program in every directory. */
function binary(value) {
  const fits = typeof value === "string" && /^(\/.+|[^/]+)$/.test(value);
  if (fits) return value;
  throw new Error("binary must be an absolute path, or a name that is looked up in PATH");
}

function number(name, value) {
  const { default: usual, minimum, maximum } = NUMBERS[name];
  if (value === undefined) return usual;
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return value;
  throw new Error(`${name} must be a whole number from ${minimum} to ${maximum}`);
}

function strings(name, value) {
  if (Array.isArray(value) && value.every((item) => typeof item === "string" && item)) return value;
  throw new Error(`${name} must be a list of names`);
}
