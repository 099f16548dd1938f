"""Finds Java and downloads Kafka's jars for scripts/broker.

`fetch` returns the directory with the jars of broker_pom.xml and their dependencies, and downloads
them first when they are missing. The directory is always complete: one process at a time renames
it into place, after the jars matched the SHA-256 below. `Stop` ends the program.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

POM = Path(__file__).resolve().with_name("broker_pom.xml")
# The version in broker_pom.xml, and the SHA-256 of the list of its jars with their SHA-256.
VERSION = "4.3.0"
JARS_SHA256 = "5af464a09db60f23f719cd01c89dbc95cbd9e75ff2d9b782d50a4a6d26d5a3ce"

LEAST_JAVA = 17

# Loaded at import, since nothing may be loaded between fork and exec.
LIBC = ctypes.CDLL(None)


class Stop(Exception):
    """Ends the run with an exit code and a message."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- Java and the jars


def home_directory():
    given = os.environ.get("RIPPLEMEM_HOME")
    if given:
        return Path(given).absolute()
    data = os.environ.get("XDG_DATA_HOME", "")
    # The XDG rule: a relative path counts as unset.
    base = Path(data) if os.path.isabs(data) else Path(os.path.expanduser("~/.local/share"))
    return base / "ripplemem"


def java_directory():
    """The directory that holds java and keytool, of a version that Kafka runs on."""
    remedy = f"Java {LEAST_JAVA} or newer is needed (Debian: apt-get install openjdk-17-jdk-headless), on PATH or in JAVA_HOME"
    given = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(given, "bin")) if given else shutil.which("java")
    if not java:
        raise Stop(4, f"no java in {'JAVA_HOME ' + given if given else 'PATH'}: {remedy}")
    directory = Path(os.path.realpath(java)).parent
    with contextlib.suppress(OSError):
        shown = (directory.parent / "release").read_text(errors="replace")
        if found := re.search(r'^JAVA_VERSION="(\d+)', shown, re.M):
            return accepted(java, directory, found, remedy)
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError as error:
        raise Stop(4, f"{java} cannot be run ({error}): {remedy}") from error
    return accepted(java, directory, re.search(r'version "(\d+)', shown), remedy)


def accepted(java, directory, version, remedy):
    if not version or int(version[1]) < LEAST_JAVA:
        raise Stop(4, f"{java} is {'version ' + version[1] if version else 'not working'}: {remedy}")
    return directory


def jars_in_place(libs):
    """Whether `libs` holds the pinned jars. A directory that was renamed into place is complete."""
    try:
        listed = json.loads((libs / "jars.json").read_text())
        if listed["pinned"] != JARS_SHA256:
            return False
        return all((libs / name).stat().st_size == size for name, size in listed["bytes"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def fetch():
    """The directory of the jars, downloaded when missing."""
    home = home_directory()
    libs = home / "kafka" / VERSION
    if jars_in_place(libs):
        return libs
    if ":" in str(libs):
        raise Stop(7, f"{libs}: Java cannot read jars from a path with a colon; set RIPPLEMEM_HOME")
    java_directory()
    libs.parent.mkdir(parents=True, exist_ok=True)
    with (libs.parent / "fetch.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is downloading Kafka; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not jars_in_place(libs):
            for left in libs.parent.glob("partial-*"):
                shutil.rmtree(left, ignore_errors=True)
            work = Path(tempfile.mkdtemp(prefix="partial-", dir=libs.parent))
            try:
                download(work / "libs")
                shutil.rmtree(libs, ignore_errors=True)
                os.rename(work / "libs", libs)
            finally:
                shutil.rmtree(work, ignore_errors=True)
    return libs


def download(target):
    maven = shutil.which("mvn")
    if not maven:
        raise Stop(5, "Maven (mvn) is missing; it fetches Kafka's jars (Debian: apt-get install maven)")
    say(f"downloading Apache Kafka {VERSION} (44 MB)")
    command = [maven, "-B", "-q", "-C", "-f", str(POM), "-DoutputDirectory=" + str(target)]
    # Without a network Maven would retry for a long time.
    command += ["-Daether.connector.connectTimeout=15000", "-Dmaven.wagon.http.retryHandler.count=1"]
    command += ["dependency:copy-dependencies"]
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=die_with_parent,
                timeout=900,
                check=False,
            )
            failed = done.returncode != 0
        except subprocess.TimeoutExpired:
            failed = True
        output.seek(0)
        told = re.findall(r"\[ERROR\] (?!\[Help)(\S.*)", re.sub(r"\x1b\[[0-9;]*m", "", output.read()))
    if failed:
        shown = f"  mvn: {told[0][:500]}" if told else "  mvn: no answer within 15 minutes"
        by_hand = f"mvn -C -f {POM} dependency:copy-dependencies"
        raise Stop(5, f"Kafka's jars could not be downloaded\n{shown}\nCheck that Maven reaches Maven Central: {by_hand}")
    jars = sorted(target.glob("*.jar"))
    digest = hashlib.sha256()
    for jar in jars:
        digest.update(f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n".encode())
    if digest.hexdigest() != JARS_SHA256:
        raise Stop(6, f"the jars of {POM} have SHA-256 {digest.hexdigest()}, expected {JARS_SHA256}: not the pinned ones")
    listed = {"pinned": JARS_SHA256, "bytes": {jar.name: jar.stat().st_size for jar in jars}}
    (target / "jars.json").write_text(json.dumps(listed, indent=1) + "\n")


def die_with_parent():
    death_signal = 1  # PR_SET_PDEATHSIG
    LIBC.prctl(death_signal, signal.SIGKILL)
