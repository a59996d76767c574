/**
 * The calls that run at the moment, so that none outlives its gateway.
 *
 * A gateway that stops asks for their end and waits; one that exits without asking still signals them
 * on its way out; one that is killed is noticed by the binary itself.
 */

const running = new Set();
let listening = false;

export class Calls {
  #own = new Set();

  /** Keeps a call until its process is gone. */
  add(call) {
    listen();
    running.add(call);
    this.#own.add(call);
    call.gone.then(() => {
      running.delete(call);
      this.#own.delete(call);
    });
  }

  /** Ends all calls, and waits until their processes are gone. */
  async endAll() {
    const calls = [...this.#own];
    for (const call of calls) call.giveUp("stopped");
    await Promise.all(calls.map((call) => call.gone));
  }
}

function listen() {
  if (listening) return;
  listening = true;
  process.on("exit", () => {
    for (const call of running) call.signal("SIGTERM");
  });
}
