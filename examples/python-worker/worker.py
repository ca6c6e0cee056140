"""A worker in Python: runs tasks of the handler `shout` for an orchestrator server. Needs nothing but Python 3."""
import json, os, socket, sys, threading, time, urllib.error, urllib.request

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000"
WORKER = {"worker": f"{socket.gethostname()}-{os.getpid()}", "handlers": ["shout"], "slots": 1}

def shout(payload):  # The work itself.
    return {"text": payload["text"].upper()}

def ask(path, body):
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    while True:
        try:
            return json.load(urllib.request.urlopen(request, timeout=90))
        except urllib.error.HTTPError as refused:  # 409: the lease is lost, such as when the job was cancelled.
            if refused.code < 500:
                return print(path, refused.read().decode(), file=sys.stderr)
        except OSError as error:  # The server is away: what is held stays held until its lease runs out.
            print(path, error, file=sys.stderr)
        time.sleep(1)

def keep(held, over):  # Says every few seconds that the task is still being worked on.
    while not over.wait(10):
        ask("/work/heartbeat", {"held": [held], "ttl": "30s"})

while True:
    for task in ask("/work/lease", {**WORKER, "wait": "30s", "ttl": "30s"})["tasks"]:
        held, over = {"task": task["task"], "attempt": task["counters"]["attempt"]}, threading.Event()
        threading.Thread(target=keep, args=(held, over), daemon=True).start()
        try:
            path, end = "/work/complete", {"output": shout(task["payload"])}
        except Exception as error:
            path, end = "/work/fail", {"message": repr(error), "retryable": False}
        ask(path, {**held, **end})
        over.set()
