/**
 * A real OpenClaw gateway for tests. It has its own home, a token and the model of the test,
 * listens on loopback, and needs no API key.
 *
 * It packs the plugin, and installs it as a user would. RAYMOND_TEST_OPENCLAW is the folder with
 * OpenClaw and its Node.js, and RAYMOND_TEST_BINARY is the binary. `cargo xtask test openclaw` sets
 * both.
 */

import { execFile, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

const PLUGIN = resolve(import.meta.dirname, "../..");
const TOKEN = "token-of-a-test";
/** Limit for the start: the first start takes most of a minute on a small machine. */
const START_MS = 240_000;
const run = promisify(execFile);

export class Gateway {
  /** Installs the plugin in a new home, and starts the gateway there. */
  static async start({ binary, openclaw, settings, agents, model }) {
    const gateway = new Gateway();
    gateway.home = mkdtempSync(join(tmpdir(), "openclaw-"));
    gateway.openclaw = openclaw;
    gateway.port = await freePort();
    gateway.#configure((config) => Object.assign(config, gateway.#configuration(agents, model)));
    await gateway.#install();
    gateway.#configure((config) => {
      config.plugins.entries.raymond.config = { binary, ...settings };
    });
    await gateway.command("config", "validate");
    await gateway.#listen();
    return gateway;
  }

  workspace(agent) {
    return join(this.home, "workspaces", agent);
  }

  /** Calls the tool as any program can, and returns the status and the body. */
  async invoke(args, { agentId = "main", signal } = {}) {
    const response = await fetch(`http://127.0.0.1:${this.port}/tools/invoke`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ tool: "crayfish", agentId, args }),
      signal,
    });
    return { status: response.status, body: await response.json() };
  }

  /** Runs an OpenClaw command in this home, and returns its output. */
  async command(...args) {
    const { stdout } = await run(this.#node(), [this.#program(), ...args], {
      env: this.#environment(),
      cwd: this.home,
    });
    return stdout;
  }

  /** Kills the gateway as a crash would. */
  async kill() {
    this.child.kill("SIGKILL");
    await this.exit;
  }

  /** Returns all processes that have this home in their environment, with their command lines. */
  processes() {
    const isProcess = (name) => /^\d+$/.test(name);
    const read = (pid, file) => {
      try {
        return readFileSync(`/proc/${pid}/${file}`, "latin1").replaceAll("\0", " ");
      } catch {
        return "";
      }
    };
    const all = readdirSync("/proc")
      .filter(isProcess)
      .map((pid) => ({ pid: Number(pid), command: read(pid, "cmdline") }));
    return all.filter(({ pid }) => read(pid, "environ").includes(`HOME=${this.home} `));
  }

  /** Stops the gateway, kills leftover processes, and removes the home. */
  async stop() {
    this.child?.kill("SIGTERM");
    await this.exit;
    for (const { pid } of this.processes()) process.kill(pid, "SIGKILL");
    rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }

  #node() {
    return join(nodeFolder(this.openclaw), "node");
  }

  #program() {
    return join(this.openclaw, "node_modules/openclaw/openclaw.mjs");
  }

  /** Takes only PATH from this machine, because npm has to install the plugin. */
  #environment() {
    const folders = [nodeFolder(this.openclaw), ...(process.env.PATH ?? "").split(":")];
    return {
      HOME: this.home,
      PATH: folders.join(":"),
      TMPDIR: join(this.home, "tmp"),
      npm_config_cache: join(this.home, "npm"),
      npm_config_offline: "true",
      OPENCLAW_NO_RESPAWN: "1",
      OPENCLAW_NO_AUTO_UPDATE: "1",
      OPENCLAW_DISABLE_BONJOUR: "1",
      OPENCLAW_SKIP_CHANNELS: "1",
      OPENCLAW_SKIP_CRON: "1",
      OPENCLAW_SKIP_PROVIDERS: "1",
      GATEWAY_SECRET: "not for steps",
    };
  }

  #configuration(agents, model) {
    mkdirSync(join(this.home, "tmp"));
    const entries = Object.entries(agents).map(([agent, more]) => {
      mkdirSync(this.workspace(agent), { recursive: true });
      return [agent, { workspace: this.workspace(agent), ...more }];
    });
    return {
      gateway: { mode: "local", bind: "loopback", port: this.port, auth: { mode: "token", token: TOKEN } },
      agents: {
        ownership: "explicit",
        defaults: { model: { primary: "scripted/scripted" } },
        entries: Object.fromEntries(entries),
      },
      tools: { alsoAllow: ["crayfish"], toolSearch: false },
      plugins: { allow: ["raymond"] },
      logging: { file: join(this.home, "gateway.log") },
      models: {
        catalogRefresh: { enabled: false },
        providers: {
          scripted: {
            baseUrl: model.url,
            api: "anthropic-messages",
            apiKey: "no-key",
            models: [{ id: "scripted", name: "Scripted", contextWindow: 200_000, maxTokens: 8_000 }],
          },
        },
      },
      update: { checkOnStart: false },
    };
  }

  #configure(change) {
    const folder = join(this.home, ".openclaw");
    const file = join(folder, "openclaw.json");
    mkdirSync(folder, { recursive: true });
    const before = readdirSync(folder).includes("openclaw.json") ? JSON.parse(readFileSync(file)) : {};
    change(before);
    writeFileSync(file, JSON.stringify(before, undefined, 2));
  }

  async #install() {
    const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", this.home], {
      cwd: PLUGIN,
      env: this.#environment(),
    });
    const [pack] = JSON.parse(stdout);
    this.packed = pack.files.map(({ path }) => path).sort();
    const source = `npm-pack:${join(this.home, pack.filename)}`;
    await this.command("plugins", "install", source, "--accept-capabilities", "--force");
  }

  async #listen() {
    const args = [this.#program(), "gateway", "run", "--port", String(this.port)];
    const stdio = ["ignore", "pipe", "pipe"];
    this.child = spawn(this.#node(), args, { env: this.#environment(), cwd: this.home, stdio });
    this.exit = new Promise((gone) => this.child.once("exit", gone));
    const { promise, resolve, reject } = Promise.withResolvers();
    let said = "";
    const hear = (text) => {
      said += text;
      if (said.includes("[gateway] ready")) resolve();
    };
    this.child.stdout.setEncoding("utf8").on("data", hear);
    this.child.stderr.setEncoding("utf8").on("data", hear);
    this.exit.then(() => reject(new Error(`the gateway ended:\n${said}`)));
    const late = setTimeout(() => reject(new Error(`the gateway is not ready:\n${said}`)), START_MS);
    await promise.finally(() => clearTimeout(late));
  }
}

/** Returns the folder of the Node.js that is pinned beside OpenClaw for this platform. */
function nodeFolder(openclaw) {
  const modules = join(openclaw, "node_modules");
  const name = readdirSync(modules).find((folder) => /^node-(bin-)?(linux|darwin)-/.test(folder));
  return join(modules, name, "bin");
}

async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}
