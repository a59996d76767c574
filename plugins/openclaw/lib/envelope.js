/**
 * Replies, and their form for the host.
 *
 * A thrown error reaches the caller as a number without a message, so every failure is a reply.
 */

/** Returns a failure in the form that the binary uses for its own failures. */
export function failed(error, message, more = {}) {
  return { ok: false, error, message, results: {}, attempts: {}, ...more };
}

/** Returns the reply twice: as text for the model, and unchanged for programs. */
export function toolResult(reply) {
  return { content: [{ type: "text", text: JSON.stringify(reply) }], details: reply };
}

/** Returns the output of the binary if it is exactly one reply, otherwise undefined. */
export function parseReply(bytes) {
  try {
    const reply = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof reply?.ok === "boolean" ? reply : undefined;
  } catch {
    return undefined;
  }
}
