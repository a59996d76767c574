"""The halves of the tests in python.rs: each function plays one client against a server.

Called as `client.py FUNCTION JSON`, where the JSON has a workflow, and a list of servers with their
workspaces and the mode of the client for each. It prints one line when all went well.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

NAME, SETTINGS = sys.argv[1], json.loads(sys.argv[2])
MINIMAL = SETTINGS["minimal"]
# Seconds. Only a hanging program needs so long, even on a busy machine.
LIMIT = 600
ASKS = {"raymond/inputRequired": True}


class Play:
    """A server, and how it is talked to."""

    def __init__(self, settings):
        self.target, self.mode = settings["target"], settings["mode"]
        self.legacy = self.mode == "legacy"
        self.workspace = Path(settings["workspace"])


def connect(play, **callbacks):
    target = play.target
    if "url" in target:
        server = target["url"]
    else:
        command, *args = target["command"]
        server = StdioServerParameters(command=command, args=args)
    return Client(server, mode=play.mode, read_timeout_seconds=60, **callbacks)


def ran(play):
    return (play.workspace / "ran").read_text().split()


async def call(client, arguments, **more):
    result = await client.call_tool("crayfish", arguments, **more)
    envelope = result.structured_content
    assert json.loads(result.content[0].text) == envelope, result
    assert result.is_error == (not envelope["ok"]), result
    return envelope


async def needs_agent(play):
    """Stateless: everything is echoed."""
    async with connect(play) as client:
        request = {"workflow": MINIMAL}
        asked = await call(client, request)
        assert asked["status"] == "needs_agent", asked
        request |= {"results": asked["results"], "attempts": asked["attempts"]}
        request["agentOutputs"] = {"v": {"foo": 1}}
        again = await call(client, request)
        assert again["requests"][0]["attempt"] == 2, again
        assert again["requests"][0]["retryContext"]["validationErrors"], again
        request |= {"results": again["results"], "attempts": again["attempts"]}
        request["agentOutputs"] = {again["requests"][0]["requestId"]: {"foo": "bar"}}
        done = await call(client, request)
        assert done["status"] == "done", done
        assert done["results"]["v"]["json"] == {"foo": "bar"}, done
        assert ran(play) == ["pre", "post"], ran(play)
        # The flag alone changes nothing for a client that has no callbacks.
        flagged = await call(client, {"workflow": MINIMAL}, meta=ASKS)
        assert flagged["status"] == "needs_agent" and "runId" not in flagged, flagged


async def progress(play):
    reports = []

    async def tell(progress, total, message):
        reports.append((progress, message))

    async with connect(play) as client:
        steps = [{"id": f"s{n}", "kind": "exec", "shell": "true"} for n in range(3)]
        done = await call(client, {"workflow": {"steps": steps}}, progress_callback=tell)
        assert done["status"] == "done", done
    counts = [count for count, _ in reports]
    assert len(counts) >= 3 and counts == sorted(set(counts)), reports
    assert all(message for _, message in reports), reports


def lives(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def appears(path):
    deadline = time.monotonic() + LIMIT
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline, f"{path} does not appear"
        await asyncio.sleep(0.02)
    return path.read_text().split()


async def cancel(play):
    """A program and its child are gone soon after their call is given up."""
    shell = "sleep 300 & echo $$ $! > pids.new; mv pids.new pids; wait"
    step = {"id": "long", "kind": "exec", "shell": shell}
    async with connect(play) as client:
        task = asyncio.create_task(call(client, {"workflow": {"steps": [step]}}))
        pids = await appears(play.workspace / "pids")
        assert all(lives(pid) for pid in pids), pids
        task.cancel()
        try:
            await task
            raise AssertionError("it was cancelled")
        except asyncio.CancelledError:
            pass
        deadline = time.monotonic() + LIMIT
        while any(lives(pid) for pid in pids):
            assert time.monotonic() < deadline, f"{pids} live on"
            await asyncio.sleep(0.05)
        # The server is as good as before.
        done = await call(client, {"workflow": {"steps": []}})
        assert done["status"] == "done", done


async def sampling(play):
    asked = []

    async def sample(context, params):
        text = params.messages[0].content.text
        asked.append(json.loads(text[text.index("{"):]))
        answer = '{"foo": "bar"}' if "retryContext" in asked[-1] else "no JSON at all"
        content = types.TextContent(type="text", text=answer)
        return types.CreateMessageResult(role="assistant", content=content, model="test")

    async with connect(play, sampling_callback=sample) as client:
        done = await call(client, {"workflow": MINIMAL}, meta=ASKS)
        if play.legacy:
            assert done["status"] == "needs_agent" and not asked, done
            return
        assert done["status"] == "done" and done["runId"], done
        assert done["results"]["v"]["json"] == {"foo": "bar"}, done
        assert [one["task"]["attempt"] for one in asked] == [1, 2], asked
        assert asked[0]["instructions"] == "Return STRICT JSON {foo:string} only.", asked
        assert ran(play) == ["pre", "post"], ran(play)
        listed = await client.list_resources()
        assert listed.resources[0].name == done["runId"], listed


async def elicitation(play):
    answers = ["accept", "decline"]

    async def elicit(context, params):
        assert params.requested_schema["properties"]["foo"]["type"] == "string", params
        if answers.pop(0) == "accept":
            return types.ElicitResult(action="accept", content={"foo": "bar"})
        return types.ElicitResult(action="decline")

    async with connect(play, elicitation_callback=elicit) as client:
        done = await call(client, {"workflow": MINIMAL}, meta=ASKS)
        if play.legacy:
            assert done["status"] == "needs_agent" and len(answers) == 2, done
            return
        assert done["status"] == "done", done
        declined = await call(client, {"workflow": MINIMAL}, meta=ASKS)
        assert declined["status"] == "needs_agent" and declined["runId"], declined
        assert not answers, answers


async def handles(play):
    async def sample(context, params):
        raise AssertionError("nobody is asked here")

    async with connect(play, sampling_callback=sample) as client:
        if play.legacy:
            return
        first = await client.session.call_tool(
            "crayfish", {"workflow": MINIMAL}, meta=ASKS, allow_input_required=True
        )
        assert isinstance(first, types.InputRequiredResult), first
        state = first.request_state
        other = {"workflow": {"steps": []}}
        for arguments, handle, expected in [
            ({"workflow": MINIMAL}, state + "x", "not given out here"),
            ({"workflow": MINIMAL}, "x", "not given out here"),
            (other, state, "another workflow"),
            ({"workflow": MINIMAL, "runId": "other"}, state, "is of the run"),
        ]:
            try:
                await client.session.call_tool(
                    "crayfish", arguments, request_state=handle, allow_input_required=True
                )
                raise AssertionError(f"{expected}: it was taken")
            except MCPError as error:
                assert expected in str(error), error
        assert (play.workspace / ".raymond" / "mcp-key").stat().st_mode & 0o777 == 0o600


for settings in SETTINGS["plays"]:
    asyncio.run(globals()[NAME](Play(settings)))
print(f"{NAME}: fine {len(SETTINGS['plays'])} times")
