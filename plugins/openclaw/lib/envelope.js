/**
 * Replies, and how the host is handed them.
 *
 * A thrown error reaches the caller as a number without words, so whatever fails is a reply.
 */

/** A failure in the form that the binary has for its own. */
export function failed(error, message, more = {}) {
  return { ok: false, error, message, results: {}, attempts: {}, ...more };
}

/** The reply twice: as text for the model, and as it is for programs. */
export function toolResult(reply) {
  return { content: [{ type: "text", text: JSON.stringify(reply) }], details: reply };
}

/** What the binary wrote, if it is one reply; else nothing. */
export function parseReply(bytes) {
  try {
    const reply = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    return typeof reply?.ok === "boolean" ? reply : undefined;
  } catch {
    return undefined;
  }
}
