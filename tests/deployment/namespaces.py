"""Hosts made of network namespaces on one bridge, for tests that run deployments without a cluster or a cloud."""

import os
import subprocess
import sys
import time

SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def run(*command):
    subprocess.run([str(word) for word in command], check=True)


def run_apart(main):
    """Runs main() in mount, network and process namespaces, which the kernel ends with it."""
    if os.geteuid() != 0:
        skip("hosts are made of namespaces, which needs root")
    if "--apart" not in sys.argv:
        apart = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if subprocess.run([*apart, "true"], stderr=subprocess.DEVNULL).returncode != 0:
            skip("no namespaces can be made here")
        sys.exit(subprocess.run([*apart, *sys.argv, "--apart"]).returncode)
    run("mount", "--make-rprivate", "/")
    run("mount", "-t", "tmpfs", "tmpfs", "/run")  # for the names of network namespaces
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "link", "set", "bridge", "up")
    main()


def add_host(namespace, address):
    inside = ("ip", "-n", namespace)
    run("ip", "netns", "add", namespace)
    run("ip", "link", "add", namespace, "type", "veth", "peer", "name", "eth0", "netns", namespace)
    run("ip", "link", "set", namespace, "master", "bridge", "up")
    run(*inside, "address", "add", f"{address}/24", "dev", "eth0")
    run(*inside, "link", "set", "eth0", "up")
    run(*inside, "link", "set", "lo", "up")


def eventually(holds, seconds=60):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.1)
    return False
