/**
 * Finds the binary, and selects the variables of the gateway's environment that it may see.
 */

import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";

/**
 * Returns the path of the program, or undefined. Skips relative entries of PATH: the binary runs in
 * the workspace, where an agent may have put a program of that name.
 */
export async function findBinary(name, path = process.env.PATH ?? "") {
  const places = isAbsolute(name)
    ? [name]
    : path
        .split(":")
        .filter(isAbsolute)
        .map((folder) => join(folder, name));
  for (const place of places) {
    if (await isProgram(place)) return place;
  }
  return undefined;
}

async function isProgram(path) {
  try {
    await access(path, constants.X_OK);
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

const USUAL = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|TMPDIR|XDG_[A-Z_]+)$/;

/**
 * Returns the usual variables and those that the operator names. Leaves out all others, because the
 * gateway's environment contains its tokens and a step can print every variable that it sees.
 */
export function environment(passed, all = process.env) {
  const names = Object.keys(all).filter((name) => USUAL.test(name) || passed.includes(name));
  return Object.fromEntries(names.map((name) => [name, all[name]]));
}
