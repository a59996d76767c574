import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { findBinary } from "../lib/binary.js";
import { readSettings } from "../lib/settings.js";

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, "../openclaw.plugin.json")));
const { properties } = manifest.configSchema;

test("the defaults are those of the manifest", () => {
  const defaults = Object.entries(properties).map(([name, { default: value }]) => [name, value]);
  assert.deepEqual(readSettings(undefined), Object.fromEntries(defaults));
});

test("the bounds are those of the manifest", () => {
  const numbers = Object.entries(properties).filter(([, { type }]) => type === "integer");
  assert.equal(numbers.length, 3);
  for (const [name, { minimum, maximum }] of numbers) {
    for (const value of [minimum, maximum]) assert.equal(readSettings({ [name]: value })[name], value);
    for (const value of [minimum - 1, maximum + 1, 1e3 + 0.5, "2000", null, NaN, Infinity]) {
      const problem = `${name} must be a whole number from ${minimum} to ${maximum}`;
      assert.deepEqual(readSettings({ [name]: value }), { problem });
    }
  }
});

for (const page of ["../README.md", "../../../docs/openclaw.md"]) {
  const text = readFileSync(join(import.meta.dirname, page), "utf8");

  test(`${page} lists every setting with its default`, () => {
    const rows = [...text.matchAll(/^\| `(\w+)` \| `?([^|`]+)`? \|/gm)].map(([, name, value]) => [
      name,
      value.trim(),
    ]);
    const listed = rows.filter(([name]) => name in properties);
    const shown = (value) => (Array.isArray(value) ? "none" : String(value));
    const expected = Object.entries(properties).map(([name, { default: value }]) => [name, shown(value)]);
    assert.deepEqual(listed, expected);
  });

  test(`${page} shows settings that are taken`, () => {
    const [, fence] = text.match(/```json[^\n]*\n(.*?)```/s);
    const { plugins } = JSON.parse(fence);
    assert.equal(readSettings(plugins.entries[manifest.id].config).problem, undefined);
  });
}

for (const [config, problem] of [
  [{ binary: "bin/raymond" }, "binary must be an absolute path, or a name that is looked up in PATH"],
  [{ binary: "./raymond" }, "binary must be an absolute path, or a name that is looked up in PATH"],
  [{ binary: "" }, "binary must be an absolute path, or a name that is looked up in PATH"],
  [{ binary: 7 }, "binary must be an absolute path, or a name that is looked up in PATH"],
  [{ agents: "musk" }, "agents must be a list of names"],
  [{ agents: [""] }, "agents must be a list of names"],
  [{ passEnv: [7] }, "passEnv must be a list of names"],
  [{ path: "/bin/sh" }, "there is no setting path"],
]) {
  test(`${JSON.stringify(config)} is refused`, () => assert.deepEqual(readSettings(config), { problem }));
}

test("a name is looked up in PATH, but never in a relative folder of it", async () => {
  assert.equal(
    await findBinary("fake-raymond", `/nowhere:${import.meta.dirname}`),
    join(import.meta.dirname, "fake-raymond"),
  );
  assert.equal(await findBinary("fake-raymond", ".::test:plugins/openclaw/test"), undefined);
});
