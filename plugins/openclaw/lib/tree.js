/**
 * Finds all processes below one in the process table. The group of the binary is not enough,
 * because the binary gives each step its own group.
 */

import { readdirSync, readFileSync } from "node:fs";

/** Returns the descendants of a process, or an empty list if the system has no `/proc`. */
export function descendants(root) {
  const children = Map.groupBy(table(), ({ parent }) => parent);
  const found = [];
  const open = [root];
  while (open.length > 0) {
    for (const { pid } of children.get(open.pop()) ?? []) {
      found.push(pid);
      open.push(pid);
    }
  }
  return found;
}

function table() {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap(row);
  } catch {
    return [];
  }
}

/**
 * Parses one process. The program name is in parentheses and may contain any characters, so the
 * fields count from the last parenthesis: the parent is the second.
 */
function row(name) {
  try {
    const text = readFileSync(`/proc/${name}/stat`, "latin1");
    const parent = text.slice(text.lastIndexOf(")") + 2).split(" ")[1];
    return [{ pid: Number(name), parent: Number(parent) }];
  } catch {
    return [];
  }
}
