/**
 * One process of the binary: a request in, a reply out, within limits.
 *
 * It leads a group of its own. A call that is given up is asked to end first (SIGTERM), because the
 * binary ends its steps and still says what they left; what is there after the grace is killed with all
 * that is below it. The answer comes when the process is gone, never before.
 */

import { spawn } from "node:child_process";

import { failed, parseReply } from "./envelope.js";
import { descendants } from "./tree.js";

/** The most that is kept of the end of stderr, in characters. */
const SAID_MAX = 2_000;
/** The most that is shown of something that is no reply, in characters. */
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

  /** Starts the program; `answer` resolves to the reply, `gone` when the process is. */
  constructor({ program, args, cwd, env, limits, onLine }) {
    this.#limits = limits;
    this.#onLine = onLine;
    this.#child = spawn(program, args, { cwd, env, detached: true, stdio: "pipe" });
    this.gone = this.#follow();
    this.answer = this.gone.then((exit) => this.#reply(program, exit));
  }

  /** Writes the request, which is all that the process reads. */
  send(request) {
    this.#child.stdin.end(request);
  }

  /** Asks for the end: `aborted`, `stopped`, `timed_out` or `too_large`; the first reason counts. */
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

  /** Once the process has exited, nothing is below it, and its number may become another's. */
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
    child.stdin.on("error", () => {}); // It need not read its request to answer.
    child.stdout.on("data", (chunk) => this.#take(chunk));
    child.stderr.setEncoding("utf8").on("data", (text) => this.#hear(text));
    this.#timers.push(setTimeout(() => this.giveUp("timed_out"), this.#limits.timeoutMs));
    return promise.finally(() => this.#timers.forEach(clearTimeout));
  }

  /** Something else holds them open: a wrapper that was quicker than the binary, or what a step left. */
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

  /** Keeps the end of what was said, and passes the last whole line on. */
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

  /** A call that came to an end of its own keeps it; of the others, what they left so far is passed on. */
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

/** Signals what is there. A process that is gone, or became somebody else's, needs none. */
function send(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {}
}
