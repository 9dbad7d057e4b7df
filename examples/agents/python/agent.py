#!/usr/bin/env python3
"""A small agent for Bullpen, written from docs/protocol.md with nothing but Python's standard library.

It takes one work item at a time and does the work in work(), which is the part to replace. Everything else is the protocol: it
connects and connects again, sends heartbeats, repeats what was not answered, and survives being killed in the middle of a round.
The environment says whom it works for; see README.md.
"""

import json
import os
import queue
import random
import secrets
import signal
import sys
import threading
import time
from pathlib import Path

from websocket import LOST, Closed, WebSocket

VERSION = 3
RELEASE = "python-example 1"
AUTH_FAILED, REPLACED, VERSION_MISMATCH, AT_ONCE = 4401, 4409, 4426, 1012
STEP = float(os.environ.get("AGENT_STEP_SECONDS", "1"))


def work(run):
    """Do one round of what run.offer asks, and give the fields of its hand-back."""
    item, context = run.offer["workItem"], run.offer["context"]
    asked = context["journal"][0]["text"]
    run.session("session-" + item["id"])
    others = run.request("work_list", workItemId=item["id"])["items"]
    run.progress(f"one of {len(others)} items; counting the words of what is asked")
    words = asked.split()
    for n in range(1, len(words) + 1):
        run.pause(STEP)
        run.progress(f"counted {n} of {len(words)} words")
    run.journal(f"{len(words)} words in {item['title']!r}")
    result = run.folder / "words.txt"
    result.write_text(f"{len(words)}\n")
    return {
        "status": "done",
        "summary": f"What was asked has {len(words)} words.",
        "toReview": [f"the file {result}"],
        "usage": [{"session": run.session_id, "models": {"word-counter": {"inputTokens": len(words), "outputTokens": 1}}}],
    }


class Ended(Exception):
    """The round is not wanted any more."""


class Run:
    """One round of a work item, in a thread of its own. What it says goes through the agent's mail."""

    def __init__(self, agent, offer):
        self.agent, self.offer, self.id = agent, offer, offer["workItem"]["id"]
        self.session_id = offer.get("sessionId", "")
        self.folder = agent.home / "items" / self.id.replace("/", "_")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            result = work(self)
        except Ended:
            return
        except Exception as error:  # whatever it is, the round has failed
            self._say("fail", reason=f"{type(error).__name__}: {error}")
        else:
            self._say("handback", **{"links": [], **result})
        self.over.set()

    def _say(self, kind, **fields):
        if not self.over.is_set():
            self.agent.mail.put((kind, {"workItemId": self.id, **fields}, None))

    def progress(self, text):
        self._say("progress", text=text)

    def journal(self, text):
        self._say("journal", text=text)

    def session(self, session_id):
        self.session_id = self.session_id or session_id
        self._say("session", sessionId=self.session_id)

    def request(self, kind, **fields):
        """Ask the office, and wait for the answer, over lost connections if need be."""
        answer = queue.Queue()
        self.agent.mail.put((kind, fields, answer.put))
        while answer.empty():
            self.pause(0.05)
        kind, payload = answer.get()
        if kind == "error":
            raise RuntimeError(f"{payload['code']}: {payload['message']}")
        return payload

    def pause(self, seconds):
        """Wait. Raises Ended when the round is not wanted any more: work() calls it now and then."""
        if self.over.wait(seconds):
            raise Ended


class Agent:
    """The agent: its memory, its connection, and what it does about each message."""

    # What must reach the office is kept until it is answered; the rest is worth nothing later.
    KEPT = {"accept", "session", "journal", "handback", "fail", "act_result", "report_posted"}

    def __init__(self, environment):
        self.url = "{BULLPEN_OFFICE_URL}/v1/teams/{BULLPEN_NAMESPACE}/{BULLPEN_TEAM}/agent".format(**environment)
        self.person = environment["BULLPEN_PERSON"]
        self.token_file, self.ca_file = Path(environment["BULLPEN_TOKEN_FILE"]), environment.get("BULLPEN_CA_FILE")
        self.home = Path(environment["HOME"])
        self.mail = queue.Queue()  # (type, payload, who hears the answer) from runs
        self.asked = {}  # id of a request to its type, its payload, and who hears the answer
        self.run = None
        self.stopping = threading.Event()
        self.prefix, self.count = secrets.token_hex(4), 0  # ids are never used twice, also after a restart
        self.file = self.home / "agent.json"
        # offers by item, kept messages in order, answers to acts by their id, ids of reports that were posted
        self.state = {"offers": {}, "outbox": [], "acts": {}, "reports": []}
        if self.file.exists():
            self.state = json.loads(self.file.read_text())

    def save(self):
        """Put the memory on disk before anything is said that rests on it."""
        new = self.file.with_suffix(".new")
        with new.open("w") as f:
            json.dump(self.state, f)
            f.flush()
            os.fsync(f.fileno())
        new.rename(self.file)

    # Connections

    def serve(self):
        """Stay connected until told to stop, or until the office says that this agent is not wanted. Gives the exit status."""
        tries, short = 0, 0
        while True:
            token, begun, code = self.token_file.read_text().strip(), time.monotonic(), None
            try:
                code = self.converse(WebSocket(self.url, self.ca_file), token)
            except OSError as error:
                log(f"the office cannot be reached: {error}")
            except Closed as closed:
                log(str(closed))
                code = closed.code
            if self.stopping.is_set():
                return 0
            if code in (REPLACED, VERSION_MISMATCH):
                self.end_run()
                return 1
            if code == AUTH_FAILED:
                while self.token_file.read_text().strip() == token and not self.stopping.wait(1):
                    pass
                continue
            if time.monotonic() - begun > 10:
                tries, short = 0, 0
            short += 1
            if code == AT_ONCE and short <= 3:
                continue
            self.stopping.wait(random.uniform(0, min(30, 0.25 * 2**tries)))
            tries = min(tries + 1, 10)

    def converse(self, socket, token):
        """Use one connection until it ends, which is told by Closed; or until there is nothing left to do: gives 1000."""
        self.socket, self.beat = socket, 10.0
        beaten, welcomed = 0.0, False
        self.say("hello", {"person": self.person, "token": token, "protocolVersion": VERSION, "agentVersion": RELEASE})
        while True:
            text = socket.receive(timeout=0.1)
            if text is not None:
                frame = json.loads(text)
                welcomed = welcomed or frame["type"] == "welcome"
                self.on_frame(frame["type"], frame.get("payload") or {}, frame)
            if time.monotonic() - socket.heard > 2 * self.beat:
                socket.socket.close()
                raise Closed(LOST, "the office is silent")
            if not welcomed:
                continue
            self.deliver()
            if time.monotonic() - beaten > self.beat / 2:
                beaten = time.monotonic()
                self.say("heartbeat", {"workItemId": self.run.id} if self.run and not self.run.over.is_set() else {})
            if self.stopping.is_set():
                self.interrupt()
                if not self.state["outbox"]:
                    socket.close(1000)
                    return 1000

    def new_id(self):
        self.count += 1
        return f"{self.prefix}-{self.count}"

    def send(self, id, kind, payload):
        self.socket.send(json.dumps({"id": id, "type": kind, "payload": payload}))

    def say(self, kind, payload, hear=None):
        """Send a request; what must not be lost goes into the outbox first."""
        id = self.new_id()
        self.asked[id] = (kind, payload, hear)
        if kind in self.KEPT:
            self.state["outbox"].append({"id": id, "type": kind, "payload": payload})
            self.save()
        self.send(id, kind, payload)

    def deliver(self):
        """Send what the run has to say. Of progress only the latest line matters."""
        mail = [self.mail.get() for _ in range(self.mail.qsize())]
        lines = [n for n, (kind, _, _) in enumerate(mail) if kind == "progress"]
        for n, (kind, payload, hear) in enumerate(mail):
            if n not in lines[:-1]:
                self.say(kind, payload, hear)

    # What the office says

    def on_welcome(self, welcome):
        self.beat = welcome["heartbeatMs"] / 1000
        resume = welcome["resume"]
        log(f"welcome; to go on with: {resume}")
        ending = {m["payload"].get("workItemId") for m in self.state["outbox"] if m["type"] in ("handback", "fail")}
        if self.run and self.run.id not in resume:
            self.end_run()
        for message in self.state["outbox"]:
            self.send(message["id"], message["type"], message["payload"])
        self.asked = {id: asked for id, asked in self.asked.items() if asked[2]}
        for id, (kind, payload, _) in self.asked.items():  # what only reads, and is waited for, is asked anew
            self.send(id, kind, payload)
        accepting = {m["payload"]["workItemId"] for m in self.state["outbox"] if m["type"] == "accept"}
        for item in list(self.state["offers"]):
            if item not in resume and item not in accepting and item not in ending:
                del self.state["offers"][item]
        self.save()
        for item in resume:
            if item in ending or (self.run and self.run.id == item):
                continue
            if item in self.state["offers"]:
                self.start(item)
            else:
                self.say("fail", {"workItemId": item, "reason": "the agent has lost its memory of this item"})
        for act in welcome.get("acts", []):
            self.on_act(act)
        for report in welcome.get("reports", []):
            self.on_report(report)

    def on_frame(self, kind, payload, frame):
        if kind == "welcome":
            self.on_welcome(payload)
        elif frame.get("replyTo"):
            self.on_answer(frame["replyTo"], kind, payload)
        elif kind == "offer":
            self.on_offer(payload)
        elif kind == "ping":
            self.socket.send(json.dumps({"id": self.new_id(), "replyTo": frame["id"], "type": "pong", "payload": {}}))
        elif kind == "act":
            self.on_act(payload)
        elif kind == "reports":
            for report in payload["reports"]:
                self.on_report(report)
        elif kind == "error":
            log(f"the office says {payload['code']}: {payload['message']}")
        # All else is from a newer office, or not for this agent.

    def on_answer(self, id, kind, payload):
        asked, about, hear = self.asked.pop(id, (None, {}, None))
        if hear:
            hear((kind, payload))
        if kind == "error":
            log(f"the office answered {payload['code']}: {payload['message']}")
            if payload["code"] == "failed":
                return  # nothing was kept; it is sent again after the next welcome
            if asked in ("heartbeat", "progress", "session", "journal") and self.run and about.get("workItemId") == self.run.id:
                self.end_run()  # the office ended the round
        at = next((n for n, m in enumerate(self.state["outbox"]) if m["id"] == id), None)
        if at is None:
            return
        message = self.state["outbox"].pop(at)
        item = message["payload"].get("workItemId")
        if message["type"] == "accept":
            if kind == "ack":
                self.start(item)
            else:
                self.state["offers"].pop(item, None)
        elif message["type"] in ("handback", "fail"):
            self.state["offers"].pop(item, None)
            if self.run and self.run.id == item:
                self.run = None
        self.save()

    def on_offer(self, offer):
        item = offer["workItem"]["id"]
        if self.stopping.is_set() or (self.run and self.run.id != item):
            self.say("decline", {"workItemId": item, "reason": "the agent is busy or stops"})
            return
        self.state["offers"][item] = offer
        self.say("accept", {"workItemId": item, "runtime": "example", "model": ""})

    def on_act(self, act):
        """Make changes elsewhere. This agent has no tracker, so it says that it cannot; and the same if it is asked again."""
        answer = {"id": act["id"], "ok": False, "results": [], "error": "this agent has no tracker to make changes in"}
        answer = self.state["acts"].setdefault(act["id"], answer)
        self.say("act_result", answer)

    def on_report(self, report):
        """Tell whoever asked for the work. This agent has no chat, so it prints; once for each report."""
        if report["id"] not in self.state["reports"]:
            print(f"report on {report['workItemId']}: {report['text']}", flush=True)
            self.state["reports"].append(report["id"])
        self.say("report_posted", {"workItemId": report["workItemId"], "id": report["id"]})

    # Runs

    def start(self, item):
        if self.run is None or self.run.id != item:
            log(f"working on {item}")
            self.run = Run(self, self.state["offers"][item])

    def end_run(self):
        if self.run:
            log(f"ending the run of {self.run.id}")
            self.run.over.set()
            self.run.thread.join()
            self.run = None

    def interrupt(self):
        """Hand back what runs, because this agent stops."""
        if self.run and not self.run.over.is_set():
            self.run.over.set()
            self.say("handback", {"workItemId": self.run.id, "status": "interrupted", "summary": "the agent was stopped", "links": []})


def log(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main():
    wanted = ["HOME"] + ["BULLPEN_" + name for name in ("OFFICE_URL", "NAMESPACE", "TEAM", "PERSON", "TOKEN_FILE")]
    if missing := [name for name in wanted if not os.environ.get(name)]:
        sys.exit(f"set {', '.join(missing)}: see README.md")
    agent = Agent(os.environ)
    signal.signal(signal.SIGTERM, lambda *_: agent.stopping.set())
    sys.exit(agent.serve())


if __name__ == "__main__":
    main()
