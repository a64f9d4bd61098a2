"""Pods of Kubernetes' manifests as processes of this machine: network, name, user, volumes and commands are those
of the manifest, without a cluster."""

import os
import re
import signal
import subprocess
from pathlib import Path

from namespaces import add_host, run


class Node:
    """One machine: an image, secrets, and the names that a headless Service gives to pods."""

    def __init__(self, folder, image, secrets):
        self.folder, self.image, self.secrets = folder, image, secrets
        self.hosts = folder / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.pods = 0

    def name(self, name, pod):
        """From now on `name` is the pod's address, for all pods."""
        self.hosts.write_text(f"127.0.0.1 localhost\n{pod.address} {name}\n")

    def volume(self, volume, group):
        """The folder of a volume as the kubelet makes it for a pod with that fsGroup. A claim outlives its pod."""
        folder = self.folder / (volume["claim"] if "claim" in volume else f"{volume['name']}-{self.pods}")
        folder.mkdir(exist_ok=True)
        os.chown(folder, 0, group)
        folder.chmod(0o2777)
        if "secret" in volume:
            for key, text in self.secrets[volume["secret"]["secretName"]].items():
                (folder / key).write_text(text)
                os.chown(folder / key, 0, group)
                (folder / key).chmod(volume["secret"]["defaultMode"] | 0o440)
        return folder


class Pod:
    """Runs the pod's container."""

    def __init__(self, node, name, spec, environment=()):
        node.pods += 1
        self.name, self.spec = name, spec
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **dict(environment)}
        self.namespace = f"pod{node.pods}"
        self.address = f"10.244.0.{node.pods + 1}"
        self.output = node.folder / f"{self.namespace}-{name}.log"
        self.folders = {volume["name"]: node.volume(volume, spec["securityContext"]["fsGroup"])
                        for volume in spec["volumes"]}
        add_host(self.namespace, self.address)
        self.container, = spec["containers"]
        self.root = self._root(node)
        self.process = self.start()

    def _root(self, node):
        """This machine's system with the image's /usr/local, /data and hosts, the volumes, and nothing that can be
        written otherwise."""
        root = node.folder / f"{self.namespace}-root"
        root.mkdir()
        run("mount", "-t", "tmpfs", "tmpfs", root)
        for system in (Path("/") / name for name in ("bin", "dev", "etc", "lib", "lib64", "proc", "sbin", "usr")):
            if system.is_symlink():
                (root / system.name).symlink_to(os.readlink(system))
            elif system.exists():
                self._mount(root, system, system)
        self._mount(root, "/usr/local", node.image / "local")
        self._mount(root, "/data", node.image / "data")
        run("mount", "--bind", node.hosts, root / "etc/hosts")
        for mount in self.container["volumeMounts"]:
            self._mount(root, mount["mountPath"], self.folders[mount["name"]], mount.get("readOnly", False))
        assert self.container["securityContext"]["readOnlyRootFilesystem"]
        run("mount", "-o", "remount,ro", root)
        return root

    @staticmethod
    def _mount(root, at, folder, read_only=False):
        at = root / str(at).lstrip("/")
        at.mkdir(exist_ok=True, parents=True)
        run("mount", "--rbind", folder, at)
        if read_only:
            run("mount", "-o", "remount,bind,ro", at)

    def start(self, command=None, stdout=None):
        """Starts the container's command as process 1, or another one beside it."""
        words = command or self.container["command"] + self.container.get("args", [])
        words = [re.sub(r"\$\((\w+)\)", lambda name: self.environment[name[1]], word) for word in words]
        user = self.spec["securityContext"]
        assert self.container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        line = ["ip", "netns", "exec", self.namespace, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child",
                "sh", "-c", 'hostname "$1" && mount -t proc proc "$2/proc" && shift 2 && exec "$@"', "sh",
                self.name, str(self.root), "/usr/sbin/chroot", str(self.root),
                "setpriv", f"--reuid={user['runAsUser']}", f"--regid={user['runAsGroup']}",
                f"--groups={user['fsGroup']}", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *words]
        with open(self.output, "ab") as log:
            return subprocess.Popen(line, env=self.environment, stdout=stdout or log, stderr=log)

    def exec(self, *command):
        """What the command says, beside the container; nothing where it fails."""
        process = self.start(list(command), subprocess.PIPE)
        said = process.communicate(timeout=20)[0].decode()
        return said if process.returncode == 0 else ""

    def signal(self, number=signal.SIGTERM):
        """To process 1 of the container, as the kubelet does."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        os.kill(int(children[0]), number)

    def wait(self, seconds):
        """The container's exit code."""
        return self.process.wait(seconds)

    def said(self):
        return self.output.read_text(errors="replace")
