"""A Slurm of its own for a test: a controller and one node, both on this machine, with their files in one folder."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ["slurmctld", "slurmd", "srun", "sinfo", "unshare", "setpriv"]
LIMIT = 30  # seconds for the node to be there


def missing():
    """Why there can be no Slurm here; None if nothing stands against it."""
    for program in PROGRAMS:
        if find(program) is None:
            return f"{program} is not installed"
    return None if os.geteuid() == 0 else "slurmd needs root"


def find(program):
    """Daemons are often not in a user's path."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Slurm:
    def __init__(self, folder, tasks):
        self.folder = pathlib.Path(folder)
        self.daemons = []
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True)
        controller, node = map(os.path.realpath, (find("slurmctld"), find("slurmd")))
        # Its plugins and the helper of slurmd lie beside it: in the distribution, or wherever it was unpacked.
        prefix = pathlib.Path(controller).parents[1]
        plugins = next(prefix.glob("lib/**/cred_none.so")).parent
        helper = node.replace("slurmd", "slurmstepd")
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self.configure(plugins, tasks)
        self.start(controller, "-D", "-c")
        # In a namespace of processes that ends with it, the helpers and tasks that the node starts end too.
        self.start("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", node, "-D", "-c", "-d", helper)
        self.wait_for_node()

    def configure(self, plugins, tasks):
        host = socket.gethostname().split(".")[0]
        controller, node = free_ports(2)
        settings = {
            "ClusterName": "test", "SlurmctldHost": f"{host}(127.0.0.1)", "SlurmUser": "root", "SlurmdUser": "root",
            "SlurmctldPort": controller, "SlurmdPort": node, "AuthType": "auth/none", "CredType": "cred/none",
            "PluginDir": plugins, "StateSaveLocation": self.folder / "state", "SlurmdSpoolDir": self.folder / "spool",
            "SlurmctldPidFile": self.folder / "slurmctld.pid", "SlurmdPidFile": self.folder / "slurmd.pid",
            "SlurmctldLogFile": self.folder / "slurmctld.log", "SlurmdLogFile": self.folder / "slurmd.log",
            "ProctrackType": "proctrack/linuxproc", "TaskPlugin": "task/none", "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU", "ReturnToService": 2, "MailProg": "/bin/true", "MpiDefault": "none",
            "JobAcctGatherType": "jobacct_gather/none", "AccountingStorageType": "accounting_storage/none",
            # As many processors as tasks, whatever the machine has.
            "SlurmdParameters": "config_overrides",
        }
        lines = [f"{name}={setting}" for name, setting in settings.items()]
        lines.append(f"NodeName={host} NodeAddr=127.0.0.1 CPUs={tasks} State=UNKNOWN")
        lines.append("PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP")
        (self.folder / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        # By default in /tmp, by the number of the job, which is that of another test's too.
        (self.folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.folder}\n", encoding="utf-8")

    def start(self, *command):
        """Starts a daemon, which ends with this process, even where that is killed."""
        with open(self.folder / "output", "a", encoding="utf-8") as output:
            self.daemons.append(subprocess.Popen(["setpriv", "--pdeathsig", "KILL", *command],
                                                 env=os.environ | self.environment, stdin=subprocess.DEVNULL,
                                                 stdout=output, stderr=output, start_new_session=True))

    def wait_for_node(self):
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            state = subprocess.run([find("sinfo"), "--noheader", "--format=%T"], env=os.environ | self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
            if state.strip() == "idle":
                return
            time.sleep(0.1)
        self.end()
        raise AssertionError("Slurm has not started: " + (self.folder / "output").read_text(encoding="utf-8"))

    def end(self):
        """Ends the daemons, the node first."""
        for daemon in reversed(self.daemons):
            os.killpg(daemon.pid, signal.SIGTERM)
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(daemon.pid, signal.SIGKILL)
                daemon.wait()
