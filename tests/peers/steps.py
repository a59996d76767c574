"""Scripts one after the other, as a graph of LangGraph that keeps a checkpoint of every step in SQLite.

    steps.py N PROGRAM WORD…
"""

import os
import sqlite3
import subprocess
import sys
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class Run(TypedDict):
    number: int
    said: str


def main() -> None:
    n, command = int(sys.argv[1]), sys.argv[2:]

    def step(run: Run) -> Run:
        number = run["number"] + 1
        environment = os.environ | {"RAYMOND_VISIT": f"langgraph.main.{number}"}
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        return {"number": number, "said": done.stdout.decode()}

    graph = StateGraph(Run)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda run: "step" if "<goto>" in run["said"] else END, ["step", END])
    saver = SqliteSaver(sqlite3.connect("checkpoints.sqlite", check_same_thread=False))
    compiled = graph.compile(checkpointer=saver)
    settings = {"configurable": {"thread_id": "run"}, "recursion_limit": n + 10}
    run = compiled.invoke({"number": 0, "said": ""}, settings, durability="sync")
    (kept,) = saver.conn.execute("select count(*) from checkpoints").fetchone()
    assert kept > n, f"only {kept} checkpoints were kept"
    print(f"{run['number']} {run['said'].strip()}")


main()
