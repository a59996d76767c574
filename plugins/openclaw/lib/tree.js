/**
 * All processes below one, by the process table. The binary gives each step a group of its own, so its
 * own group is not all of it.
 */

import { readdirSync, readFileSync } from "node:fs";

/** The processes below that one; none where there is no such table. */
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

/** The name of a program stands in parentheses and may hold anything; the parent is the second after. */
function row(name) {
  try {
    const text = readFileSync(`/proc/${name}/stat`, "latin1");
    const parent = text.slice(text.lastIndexOf(")") + 2).split(" ")[1];
    return [{ pid: Number(name), parent: Number(parent) }];
  } catch {
    return [];
  }
}
