import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** Waits until other processes make a condition true, at most half a minute. */
export async function until(holds) {
  const deadline = Date.now() + 30_000;
  while (!holds()) {
    assert.ok(Date.now() < deadline, `never: ${holds}`);
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

/** Returns whether a process runs. A zombie does not count; its parent has not reaped it yet. */
export function alive(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !"ZX".includes(text[text.lastIndexOf(")") + 2]);
  } catch {
    return false;
  }
}
