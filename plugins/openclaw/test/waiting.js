import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

/** Waits for what other processes bring about, at most half a minute. */
export async function until(holds) {
  const deadline = Date.now() + 30_000;
  while (!holds()) {
    assert.ok(Date.now() < deadline, `never: ${holds}`);
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

/** Whether a process runs. A dead one may be listed until its parent has looked. */
export function alive(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return !"ZX".includes(text[text.lastIndexOf(")") + 2]);
  } catch {
    return false;
  }
}
