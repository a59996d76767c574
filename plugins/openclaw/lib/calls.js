/**
 * The running calls, so that a gateway that stops can end them and wait for them.
 *
 * A gateway that is killed cannot end them. The binary notices by itself that its caller is gone.
 */

export class Calls {
  #running = new Set();

  /** Keeps a call until its process has ended. */
  add(call) {
    this.#running.add(call);
    call.gone.then(() => this.#running.delete(call));
  }

  /** Ends all calls, and waits until their processes have ended. */
  async endAll() {
    const calls = [...this.#running];
    for (const call of calls) call.giveUp("stopped");
    await Promise.all(calls.map((call) => call.gone));
  }
}
