/**
 * A model for the agents of a gateway, behind the Messages API. A function of the test computes
 * each answer from the tool results so far.
 */

import { createServer } from "node:http";
import { json } from "node:stream/consumers";

/** Serves the model on a port of this machine. `answer` returns a text or a tool call. */
export async function serveModel(answer) {
  const server = createServer(async (request, response) => {
    const { model, messages, tools } = await json(request);
    const results = messages.flatMap(({ content }) => content).filter(({ type }) => type === "tool_result");
    const replies = results.map(({ content }) => JSON.parse(content[0].text ?? content));
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events(model, answer(replies, tools))) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

function events(model, block) {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    usage,
  };
  const isText = block.type === "text";
  const empty = isText ? { type: "text", text: "" } : { ...block, input: {} };
  const delta = isText
    ? { type: "text_delta", text: block.text }
    : { type: "input_json_delta", partial_json: JSON.stringify(block.input) };
  return [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: empty },
    { type: "content_block_delta", index: 0, delta },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: isText ? "end_turn" : "tool_use" }, usage },
    { type: "message_stop" },
  ];
}
