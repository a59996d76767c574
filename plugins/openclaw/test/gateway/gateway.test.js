import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { PARAMETERS } from "../../lib/parameters.js";
import { alive, until } from "../waiting.js";
import { Gateway } from "./gateway.js";
import { serveModel } from "./model.js";

const binary = process.env.RAYMOND_TEST_BINARY;
const openclaw = process.env.RAYMOND_TEST_OPENCLAW;
assert.ok(binary && openclaw, "these tests are run by: cargo xtask test openclaw");
const TIMEOUT_MS = 20_000;
const MINUTES = 60_000;

/** Calls the tool and returns its reply. Checks that the text and the details are the same. */
async function crayfish(gateway, args, options) {
  const { status, body } = await gateway.invoke({ action: "run", ...args }, options);
  assert.equal(status, 200, JSON.stringify(body));
  const { content, details } = body.result;
  assert.deepEqual(JSON.parse(content[0].text), details);
  return details;
}

/** Returns a step that adds a line to a file each time it runs. */
const count = (id) => ({ id, kind: "exec", shell: `echo ran >> ${id}.txt` });
/** Returns a step that runs long and writes the pids of its shell and its `sleep` to a file. */
const last = (id) => ({ id, kind: "exec", shell: `sleep 600 & echo $$ $! > ${id}.pids; wait` });
const ask = {
  id: "verdict",
  kind: "agent",
  prompt: "Return STRICT JSON {foo: string} only.",
  input: { x: 1 },
  schema: {
    type: "object",
    additionalProperties: false,
    required: ["foo"],
    properties: { foo: { type: "string" } },
  },
  retries: 3,
};

describe("a real gateway", { timeout: 10 * MINUTES }, () => {
  let gateway;
  let model;
  let answer = () => ({ type: "text", text: "ok" });
  const lines = (file) =>
    readFileSync(join(gateway.workspace("main"), file), "utf8")
      .trim()
      .split("\n");
  /** Waits until a step of `last` runs, and returns its pids. */
  const pidsOf = async (id, agent = "main") => {
    const file = join(gateway.workspace(agent), `${id}.pids`);
    await until(() => existsSync(file) && readFileSync(file, "utf8").endsWith("\n"));
    return readFileSync(file, "utf8").trim().split(" ").map(Number);
  };

  before(async () => {
    const agents = { main: {}, musk: {}, robo: {}, boxed: { sandbox: { mode: "all" } } };
    const settings = { timeoutMs: TIMEOUT_MS, agents: ["robo"] };
    model = await serveModel((...asked) => answer(...asked));
    gateway = await Gateway.start({ binary, openclaw, settings, agents, model });
  });
  after(async () => {
    await gateway?.stop();
    model?.close();
  });

  test("what is packed is what the host needs, and nothing else", () => {
    const library = [
      "binary",
      "call",
      "calls",
      "envelope",
      "parameters",
      "register",
      "settings",
      "tool",
      "tree",
    ];
    const files = ["LICENSE", "README.md", "index.js", "openclaw.plugin.json", "package.json"];
    assert.deepEqual(gateway.packed, [...files, ...library.map((name) => `lib/${name}.js`)].sort());
  });

  test("a workflow converges: needs_agent, invalid, retry, done", async () => {
    const workflow = { name: "convergence", steps: [count("pre"), ask, count("post")] };
    const asked = await crayfish(gateway, { workflow });
    const {
      status,
      requests: [request],
      results,
      attempts,
    } = asked;
    assert.deepEqual({ status, keys: Object.keys(results) }, { status: "needs_agent", keys: ["pre"] });
    assert.equal(request.attempt, 1);
    assert.deepEqual(request.input, ask.input);

    const wrong = { [request.requestId]: { foo: 7 } };
    const again = await crayfish(gateway, { workflow, results, attempts, agentOutputs: wrong });
    const [retry] = again.requests;
    assert.deepEqual([again.status, retry.attempt], ["needs_agent", 2]);
    assert.match(retry.retryContext.validationErrors.join(), /foo/);

    const right = { [retry.requestId]: { foo: "bar" } };
    const echoed = { results: again.results, attempts: again.attempts };
    const done = await crayfish(gateway, { workflow, ...echoed, agentOutputs: right });
    assert.deepEqual([done.ok, done.status], [true, "done"]);
    assert.deepEqual(done.results.verdict.json, { foo: "bar" });
    assert.deepEqual([lines("pre.txt"), lines("post.txt")], [["ran"], ["ran"]]);
  });

  test("an agent of the host does the same in a turn of its own", async () => {
    const workflow = { steps: [count("early"), ask, count("finally")] };
    const outputs = [undefined, { foo: 7 }, { foo: "bar" }];
    let shown;
    answer = (replies, tools) => {
      shown = tools.find(({ name }) => name === "crayfish").input_schema.required;
      const { status, requests, results, attempts } = replies.at(-1) ?? {};
      if (status === "done") return { type: "text", text: "it is done" };
      const agentOutputs = requests && { [requests[0].requestId]: outputs[replies.length] };
      const input = { action: "run", workflow, results, attempts, agentOutputs };
      return { type: "tool_use", id: `toolu_${replies.length}`, name: "crayfish", input };
    };
    const said = await gateway.command("agent", "--agent", "main", "--message", "Run it.", "--json");
    assert.match(said, /"it is done"/);
    assert.deepEqual(shown, PARAMETERS.required);
    assert.deepEqual([lines("early.txt"), lines("finally.txt")], [["ran"], ["ran"]]);
  });

  test("the host has loaded the plugin, and has nothing to say against it", async () => {
    const inspected = await gateway.command("plugins", "inspect", "raymond", "--runtime", "--json");
    const { plugin, tools, diagnostics } = JSON.parse(inspected);
    const expected = { status: "loaded", tools: [{ names: ["crayfish"], optional: true }], diagnostics: [] };
    assert.deepEqual({ status: plugin.status, tools, diagnostics }, expected);
  });

  test("the example of the README works as it is", async () => {
    const text = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");
    const fences = [...text.matchAll(/```json\n(.*?)```/gs)].map(([, fence]) => JSON.parse(fence));
    const request = fences.find(({ action }) => action === "run");
    const asked = await crayfish(gateway, request);
    assert.deepEqual(
      asked.requests.map(({ requestId }) => requestId),
      ["greeting-1:greet:1"],
    );
    const agentOutputs = { "greeting-1:greet:1": { text: "Hello!" } };
    const done = await crayfish(gateway, { ...request, agentOutputs });
    assert.deepEqual([done.status, done.results.print.stdout], ["done", "Hello!\n"]);
  });

  test("a timer or a script calls the tool with the host's own command", async () => {
    const params = {
      name: "crayfish",
      agentId: "main",
      args: { action: "run", workflow: { steps: [count("timer")] } },
    };
    const said = await gateway.command(
      "gateway",
      "call",
      "tools.invoke",
      "--json",
      "--params",
      JSON.stringify(params),
    );
    assert.match(said, /"status": "done"/);
    assert.deepEqual(lines("timer.txt"), ["ran"]);
  });

  test("with a runId no exec is repeated, whatever is called again", async () => {
    const workflow = { steps: [count("first"), { ...ask, id: "judge" }, count("second")] };
    const call = (more) => crayfish(gateway, { workflow, runId: "nightly-1", ...more });
    const asked = await call({});
    assert.equal(asked.runId, "nightly-1");
    assert.deepEqual(await call({}), asked);
    const agentOutputs = { [asked.requests[0].requestId]: { foo: "bar" } };
    const done = await call({ agentOutputs });
    assert.equal(done.status, "done");
    assert.equal((await call({})).status, "done");
    assert.deepEqual([lines("first.txt"), lines("second.txt")], [["ran"], ["ran"]]);
  });

  test("the arguments are those of the binary", () => {
    const schema = JSON.parse(execFileSync(binary, ["crayfish", "schema", "request"]));
    assert.deepEqual(Object.keys(PARAMETERS.properties).sort(), Object.keys(schema.properties).sort());
    assert.deepEqual(
      PARAMETERS.required.filter((key) => key !== "action"),
      schema.required.filter((key) => key !== "action"),
    );
  });

  for (const [what, args, error] of [
    ["no workflow", {}, "bad_request"],
    ["a workflow that is a text", { workflow: "{}" }, "bad_request"],
    ["an unknown argument", { workflow: { steps: [] }, binary: "/bin/sh" }, "bad_request"],
    ["another action", { workflow: { steps: [] }, action: "stop" }, "bad_request"],
    ["an agentId that is a number", { workflow: { steps: [] }, agentId: 7 }, "bad_request"],
    ["a step of no kind", { workflow: { steps: [{ id: "a", kind: "dance" }] } }, "invalid_workflow"],
  ]) {
    test(`${what} is answered with data`, async () => {
      const reply = await crayfish(gateway, args);
      assert.deepEqual([reply.ok, reply.error, typeof reply.message], [false, error, "string"]);
    });
  }

  test("every agent works in its own workspace", async () => {
    const where = { id: "where", kind: "exec", shell: "pwd" };
    const reply = await crayfish(gateway, { workflow: { steps: [where] } }, { agentId: "musk" });
    assert.equal(reply.results.where.stdout.trim(), gateway.workspace("musk"));
  });

  test("an agentId reaches into no other workspace than the operator lists", async () => {
    const workflow = { steps: [{ id: "where", kind: "exec", shell: "pwd" }] };
    const own = await crayfish(gateway, { workflow, agentId: "musk" }, { agentId: "musk" });
    assert.equal(own.results.where.stdout.trim(), gateway.workspace("musk"));
    const listed = await crayfish(gateway, { workflow, agentId: "robo" });
    assert.equal(listed.results.where.stdout.trim(), gateway.workspace("robo"));
    for (const agentId of ["musk", "nobody", "../main", "__proto__"]) {
      const { ok, error } = await crayfish(gateway, { workflow, agentId });
      assert.deepEqual({ ok, error }, { ok: false, error: "unknown_agent" }, agentId);
    }
  });

  test("an agent that the host does not know is refused by the host", async () => {
    const { status } = await gateway.invoke({ action: "run" }, { agentId: "nobody" });
    assert.equal(status, 400);
  });

  test("there is no tool for an agent in a sandbox", async () => {
    const { status, body } = await gateway.invoke(
      { action: "run", workflow: { steps: [] } },
      { agentId: "boxed" },
    );
    assert.equal(status, 404);
    assert.match(body.error.message, /crayfish/);
  });

  test("a step sees nothing of the gateway's environment but the usual", async () => {
    const workflow = { steps: [{ id: "environment", kind: "exec", shell: "env" }] };
    const { results } = await crayfish(gateway, { workflow });
    const { stdout } = results.environment;
    assert.match(stdout, new RegExp(`^HOME=${gateway.home}$`, "m"));
    assert.doesNotMatch(stdout, /GATEWAY_SECRET|OPENCLAW|npm_config/);
  });

  test("a call beyond its time ends with its steps, and says what they left", async () => {
    const workflow = { steps: [count("before"), last("slow")] };
    const [reply, pids] = await Promise.all([crayfish(gateway, { workflow }), pidsOf("slow")]);
    const { ok, error, timeoutMs } = reply;
    assert.deepEqual({ ok, error, timeoutMs }, { ok: false, error: "timed_out", timeoutMs: TIMEOUT_MS });
    assert.equal(reply.results.before.ok, true);
    assert.deepEqual(pids.filter(alive), []);
  });

  test("a caller that goes away ends its call with all its processes", async () => {
    const abort = new AbortController();
    const call = gateway.invoke(
      { action: "run", workflow: { steps: [last("gone")] } },
      { signal: abort.signal },
    );
    const pids = await pidsOf("gone");
    abort.abort();
    await assert.rejects(call, { name: "AbortError" });
    await until(() => !pids.some(alive));
    await until(() => !gateway.processes().some(({ command }) => command.includes("--workspace")));
  });

  test("a gateway that is killed leaves nothing behind", async () => {
    const call = gateway.invoke({ action: "run", workflow: { steps: [last("widow")] } });
    const pids = await pidsOf("widow");
    await Promise.all([gateway.kill(), assert.rejects(call)]);
    await until(() => !pids.some(alive) && gateway.processes().length === 0);
  });
});
