import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Calls } from "../lib/calls.js";
import { PARAMETERS } from "../lib/parameters.js";
import { register } from "../lib/register.js";
import { readSettings } from "../lib/settings.js";
import { crayfish } from "../lib/tool.js";
import { alive, until } from "./waiting.js";

const FAKE = join(import.meta.dirname, "fake-raymond");
const workspace = mkdtempSync(join(tmpdir(), "crayfish-"));
after(() => rmSync(workspace, { recursive: true }));

/** The results and attempts of a call that ran no step. */
const NOTHING = { results: {}, attempts: {} };

/** Returns the tool of the agent `main`, and the calls that it makes. */
function stage(config = {}, agent = {}) {
  const settings = readSettings({ binary: FAKE, ...config });
  const calls = new Calls();
  const context = { agentId: "main", workspaceDir: workspace, ...agent };
  const workspaceOf = (id) => ({ musk: tmpdir() })[id];
  return { calls, tool: crayfish({ settings, calls, agent: context, workspaceOf }) };
}

/** Returns the reply to a play of the fake. Checks that the text and the details are the same. */
async function play(name, { config, agent, request = {}, signal, onUpdate } = {}) {
  const { tool } = stage(config, agent);
  const result = await tool.execute("id", { vars: { play: name }, ...request }, signal, onUpdate);
  assert.deepEqual(JSON.parse(result.content[0].text), result.details);
  return result.details;
}

test("a call is one process, in the workspace of the agent", async () => {
  const request = { action: "run", workflow: { steps: [] }, agentId: "main", nonsense: [1] };
  const reply = await play("echo", { request });
  assert.deepEqual(reply.args, ["crayfish", "--workspace", workspace]);
  assert.equal(reply.cwd, workspace);
  assert.deepEqual(reply.request, { vars: { play: "echo" }, ...request });
});

test("what is no object is the binary's to refuse", async () => {
  const { tool } = stage();
  const { details } = await tool.execute("id", undefined);
  assert.equal(details.request, null);
});

test("only the usual variables and those that are passed reach a step", async () => {
  process.env.CRAYFISH_TEST_TOKEN = "secret";
  process.env.CRAYFISH_TEST_PASSED = "open";
  const { env } = await play("echo", { config: { passEnv: ["CRAYFISH_TEST_PASSED"] } });
  assert.equal(env.CRAYFISH_TEST_TOKEN, undefined);
  assert.equal(env.CRAYFISH_TEST_PASSED, "open");
  assert.equal(env.PATH, process.env.PATH);
});

test("a refusal of the binary is its own reply", async () => {
  assert.deepEqual(await play("refuse"), { ok: false, error: "bad_request", message: "no", results: {} });
});

for (const [name, pattern] of [
  ["babble", /exited with code 0, and this is not a reply: "hello"$/],
  ["mojibake", /not a reply/],
  ["scalar", /not a reply: "true\\n"$/],
  ["twice", /not a reply/],
  ["mute", /exited with code 101 without a reply; it said: panicked: no luck$/],
  ["murdered", /was ended by SIGKILL without a reply$/],
]) {
  test(`a binary that plays ${name} is a failure with words`, async () => {
    const { ok, error, message } = await play(name);
    assert.deepEqual({ ok, error }, { ok: false, error: "engine_failed" });
    assert.match(message, pattern);
  });
}

for (const [what, config] of [
  ["is not there", { binary: "/nowhere/raymond" }],
  ["is not in PATH", { binary: "raymond-of-nobody" }],
  ["is a directory", { binary: tmpdir() }],
  ["cannot be executed", { binary: import.meta.filename }],
]) {
  test(`a binary that ${what} is named`, async () => {
    const { ok, error, message } = await play("echo", { config });
    assert.deepEqual({ ok, error }, { ok: false, error: "engine_missing" });
    assert.match(message, new RegExp(config.binary));
  });
}

test("a script without its interpreter is a failure with words", async () => {
  const path = join(workspace, "broken");
  writeFileSync(path, "#!/nowhere/sh\n", { mode: 0o755 });
  const reply = await play("echo", { config: { binary: path } });
  assert.equal(reply.error, "engine_missing");
  assert.match(reply.message, /could not be started/);
});

test("a configuration that is wrong is told to every caller", async () => {
  const reply = await play("echo", { config: { timeoutMs: 5 } });
  const message = "timeoutMs must be a whole number from 1000 to 86400000";
  assert.deepEqual(reply, { ok: false, error: "bad_config", message, ...NOTHING });
});

test("a request that cannot be written is a failure with words", async () => {
  const loop = {};
  loop.loop = loop;
  const { error } = await play("echo", { request: { workflow: loop } }).catch((thrown) => ({
    error: thrown,
  }));
  assert.equal(error, "engine_failed");
});

test("another agent is unknown unless the operator lists it", async () => {
  const request = { agentId: "musk" };
  const { ok, error } = await play("echo", { request });
  assert.deepEqual({ ok, error }, { ok: false, error: "unknown_agent" });
  const allowed = await play("echo", { request, config: { agents: ["musk"] } });
  assert.equal(allowed.cwd, tmpdir());
});

test("an agent that is listed but not configured is unknown", async () => {
  const reply = await play("echo", { request: { agentId: "nobody" }, config: { agents: ["nobody"] } });
  assert.deepEqual(reply, { ok: false, error: "unknown_agent", message: 'no agent "nobody" is configured', ...NOTHING });
});

test("an agentId of another type is the binary's to refuse", async () => {
  const reply = await play("echo", { request: { agentId: 7 } });
  assert.equal(reply.request.agentId, 7);
});

test("a workspace that is not there is named", async () => {
  const reply = await play("echo", { agent: { workspaceDir: "/nowhere" } });
  assert.deepEqual(reply, {
    ok: false,
    error: "bad_workspace",
    message: "the workspace /nowhere is not a directory",
    ...NOTHING,
  });
  const none = await play("echo", { agent: { workspaceDir: undefined } });
  assert.equal(none.error, "bad_workspace");
});

test("a reply beyond the limit ends the process", async () => {
  const reply = await play("flood", { config: { maxReplyBytes: 65_536 } });
  assert.deepEqual(reply, { ok: false, error: "too_large", message: "the reply is larger than 65536 bytes", ...NOTHING });
});

test("progress is passed on by whole lines", async () => {
  const heard = [];
  const onUpdate = (update) => heard.push(update);
  await play("progress", { onUpdate });
  const update = (text) => ({ content: [{ type: "text", text }], details: { progress: text } });
  assert.deepEqual(heard, [update("one"), update("three"), update("four")]);
});

test("a host that fails at progress loses nothing else", async () => {
  const reply = await play("progress", { onUpdate: () => Promise.reject(new Error("no")) });
  assert.deepEqual(reply, { ok: true });
});

test("a call beyond its time keeps what its steps left", async () => {
  const reply = await play("wait", { config: { timeoutMs: 5_000 } });
  assert.deepEqual(reply, {
    ok: false,
    error: "timed_out",
    message: "the call took longer than 5000 ms",
    timedOut: true,
    timeoutMs: 5_000,
    results: { a: { ok: true } },
    attempts: {},
  });
});

test("a call that its caller gives up keeps what its steps left", async () => {
  const abort = new AbortController();
  const reply = await play("wait", { signal: abort.signal, onUpdate: () => abort.abort() });
  const message = "the caller cancelled the call";
  assert.deepEqual(reply, {
    ok: false,
    error: "cancelled",
    message,
    results: { a: { ok: true } },
    attempts: {},
  });
});

test("a call that came to its end when it was given up keeps its end", async () => {
  const abort = new AbortController();
  const reply = await play("late", { signal: abort.signal, onUpdate: () => abort.abort() });
  assert.deepEqual(reply, { ok: true, status: "done" });
});

test("a call that was given up before it began starts nothing", async () => {
  const reply = await play("murdered", { signal: AbortSignal.abort() });
  assert.deepEqual(reply, { ok: false, error: "cancelled", message: "the caller cancelled the call", ...NOTHING });
});

test("what ignores its end is killed after the grace, with all that is below it", async () => {
  const abort = new AbortController();
  let pids;
  const onUpdate = ({ details }) => {
    pids = details.progress.split(" ").slice(1).map(Number);
    abort.abort();
  };
  const reply = await play("stubborn", { config: { graceMs: 100 }, signal: abort.signal, onUpdate });
  assert.deepEqual(reply, { ok: false, error: "cancelled", message: "the caller cancelled the call", ...NOTHING });
  assert.equal(pids.length, 2);
  await until(() => !pids.some(alive));
});

test("what holds the pipes of a binary that is gone does not hold up its reply", async () => {
  let pids;
  const onUpdate = ({ details }) => (pids = details.progress.split(" ").slice(1).map(Number));
  const reply = await play("leave", { config: { graceMs: 200 }, onUpdate });
  assert.deepEqual(reply, { ok: true, status: "done" });
  await until(() => !pids.some(alive));
});

test("a gateway that stops ends its calls and waits for them", async () => {
  const { tool, calls } = stage();
  const { promise, resolve } = Promise.withResolvers();
  const call = tool.execute("id", { vars: { play: "wait" } }, undefined, resolve);
  await promise;
  await calls.endAll();
  const { details } = await call;
  assert.equal(details.message, "the gateway stopped");
});

test("the plugin registers an optional tool, and none for a sandbox", () => {
  const registered = [];
  const hooks = [];
  const api = { registerTool: (...tool) => registered.push(tool), on: (name) => hooks.push(name) };
  register(api);
  const [[make, options]] = registered;
  assert.deepEqual(options, { name: "crayfish", optional: true });
  assert.deepEqual(hooks, ["gateway_stop"]);
  assert.equal(make({ sandboxed: true, workspaceDir: workspace }), null);
  const { name, parameters } = make({ sandboxed: false, workspaceDir: workspace });
  assert.deepEqual({ name, parameters }, { name: "crayfish", parameters: PARAMETERS });
});
