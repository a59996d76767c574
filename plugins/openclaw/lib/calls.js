/**
 * The calls that run at the moment: a gateway that stops ends them, and waits.
 *
 * One that is killed cannot. The binary notices by itself that nobody waits for it any more.
 */

export class Calls {
  #running = new Set();

  /** Keeps a call until its process is gone. */
  add(call) {
    this.#running.add(call);
    call.gone.then(() => this.#running.delete(call));
  }

  /** Ends all calls, and waits until their processes are gone. */
  async endAll() {
    const calls = [...this.#running];
    for (const call of calls) call.giveUp("stopped");
    await Promise.all(calls.map((call) => call.gone));
  }
}
