"""A service of its own for a test: the real program, with its default model, in a directory that is gone afterwards."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class Service:
    """`ripplemem serve`; it can be killed and started again with what it held, at the same address."""

    def __init__(self, binary=None):
        self.binary = binary or os.environ["RIPPLEMEM_BINARY"]
        self.home = Path(tempfile.mkdtemp(prefix="ripplemem-frameworks-"))
        self.address = "127.0.0.1:0"
        self.start()

    @property
    def url(self):
        return f"http://{self.address}"

    def start(self):
        """Starts it and waits until it listens."""
        log = self.home / "stderr"
        command = [self.binary, "serve", "--data", str(self.home / "data"), "--listen", self.address]
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr)
        end = time.monotonic() + 120
        while time.monotonic() < end:
            for line in log.read_text(encoding="utf-8").splitlines():
                if '"listening"' in line:
                    self.address = json.loads(line)["address"]
                    return
            if self.process.poll() is not None:
                raise RuntimeError(log.read_text(encoding="utf-8"))
            time.sleep(0.05)
        raise RuntimeError(f"{command} does not listen: {log.read_text(encoding='utf-8')}")

    def kill(self):
        """Ends it as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self):
        """Ends it, and removes what it held."""
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        shutil.rmtree(self.home, ignore_errors=True)
