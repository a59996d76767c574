/**
 * One process of the binary: reads one request, writes one reply, and has limits.
 *
 * The process leads its own group. To give up a call, the plugin sends SIGTERM first: the binary
 * then ends its steps and still replies with their results. After the grace period, the plugin
 * kills the process and all its descendants. The answer never comes before the process has ended.
 */

import { spawn } from "node:child_process";

import { failed, parseReply } from "./envelope.js";
import { descendants } from "./tree.js";

/** Limit for the end of stderr that the plugin keeps, in characters. */
const SAID_MAX = 2_000;
/** Limit for quoting an output that is not a reply, in characters. */
const WROTE_MAX = 200;

export class Call {
  #child;
  #limits;
  #onLine;
  #chunks = [];
  #size = 0;
  #said = "";
  #line = "";
  #why;
  #timers = [];
  #fault;

  /** Starts the program. `answer` resolves to the reply, and `gone` when the process has ended. */
  constructor({ program, args, cwd, env, limits, onLine }) {
    this.#limits = limits;
    this.#onLine = onLine;
    this.#child = spawn(program, args, { cwd, env, detached: true, stdio: "pipe" });
    this.gone = this.#follow();
    this.answer = this.gone.then((exit) => this.#reply(program, exit));
  }

  /** Writes the request and closes stdin, because the process reads nothing else. */
  send(request) {
    this.#child.stdin.end(request);
  }

  /**
   * Asks the process to end. `why` is `aborted`, `stopped`, `timed_out` or `too_large`; the first
   * reason counts.
   */
  giveUp(why) {
    if (this.#why !== undefined) return;
    this.#why = why;
    this.#signal("SIGTERM");
    this.#timers.push(setTimeout(() => this.#kill(), this.#limits.graceMs));
  }

  /** Signals the whole group. */
  #signal(name) {
    if (this.#child.pid !== undefined) send(-this.#child.pid, name);
  }

  /**
   * Kills the group and all descendants. After the exit, the process has no descendants, and
   * another process may get its pid.
   */
  #kill() {
    const { pid, exitCode, signalCode } = this.#child;
    const below = exitCode === null && signalCode === null ? descendants(pid) : [];
    this.#signal("SIGKILL");
    for (const pid of below) send(pid, "SIGKILL");
  }

  #follow() {
    const { promise, resolve } = Promise.withResolvers();
    const child = this.#child;
    child.on("error", (error) => {
      this.#fault = error;
      if (child.pid === undefined) resolve({});
    });
    child.on("exit", () => {
      this.#timers.push(setTimeout(() => this.#closePipes(), this.#limits.graceMs));
    });
    child.on("close", (code, signal) => resolve({ code, signal }));
    child.stdin.on("error", () => {}); // The process may answer without reading the request.
    child.stdout.on("data", (chunk) => this.#take(chunk));
    child.stderr.setEncoding("utf8").on("data", (text) => this.#hear(text));
    this.#timers.push(setTimeout(() => this.giveUp("timed_out"), this.#limits.timeoutMs));
    return promise.finally(() => this.#timers.forEach(clearTimeout));
  }

  /**
   * Closes pipes that another process keeps open: the binary, if a wrapper exited before it, or a
   * leftover process of a step.
   */
  #closePipes() {
    this.#kill();
    for (const pipe of this.#child.stdio) pipe?.destroy();
  }

  #take(chunk) {
    this.#size += chunk.length;
    if (this.#size <= this.#limits.maxReplyBytes) {
      this.#chunks.push(chunk);
    } else {
      this.#chunks = [];
      this.giveUp("too_large");
    }
  }

  /** Keeps the end of stderr, and reports the last complete line. */
  #hear(text) {
    this.#said = (this.#said + text).slice(-SAID_MAX);
    const lines = (this.#line + text).split("\n");
    this.#line = lines.pop().slice(-SAID_MAX);
    const last = lines.findLast((line) => line.trim() !== "");
    if (last !== undefined) this.#onLine(last.trim().slice(0, SAID_MAX));
  }

  #reply(program, exit) {
    if (this.#child.pid === undefined) {
      return failed("engine_missing", `${program} could not be started: ${this.#fault?.message}`);
    }
    const wrote = Buffer.concat(this.#chunks);
    const reply = parseReply(wrote);
    if (this.#why !== undefined) return this.#givenUp(reply);
    return reply ?? this.#noReply(program, exit, wrote.toString().slice(0, WROTE_MAX));
  }

  /**
   * Returns the reply of a call that still ended by itself. Otherwise returns the reason for giving
   * up, with the results so far.
   */
  #givenUp(reply) {
    if (reply !== undefined && reply.error !== "cancelled") return reply;
    const { ok, error, message, ...known } = reply ?? {};
    return { ...this.#reason(), ...known };
  }

  #reason() {
    const { timeoutMs, maxReplyBytes } = this.#limits;
    switch (this.#why) {
      case "timed_out":
        return failed("timed_out", `the call took longer than ${timeoutMs} ms`, {
          timedOut: true,
          timeoutMs,
        });
      case "too_large":
        return failed("too_large", `the reply is larger than ${maxReplyBytes} bytes`);
      case "stopped":
        return failed("cancelled", "the gateway stopped");
      default:
        return failed("cancelled", "the caller cancelled the call");
    }
  }

  #noReply(program, { code, signal }, wrote) {
    const how = signal ? `was ended by ${signal}` : `exited with code ${code}`;
    const what = wrote ? `, and this is not a reply: ${JSON.stringify(wrote)}` : " without a reply";
    const said = this.#said.trim();
    return failed("engine_failed", `${program} ${how}${what}${said && `; it said: ${said}`}`);
  }
}

/** Signals a process or a group. Ignores one that has ended or belongs to another user. */
function send(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {}
}
