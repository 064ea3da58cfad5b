"""Starts several processes with mpirun, and ends them whatever happens."""
import os
import signal
import subprocess
import tempfile
import threading
import time

MPIEXEC = os.environ.get("PURINE_MPIEXEC", "")
LIMIT = 150  # seconds; what takes longer hangs

# More ranks than cores, none bound to a core, as root as well.
ENVIRONMENT = {
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}
# MPI itself leaves memory behind when it ends, and takes its locks in several orders; a test may load a library ahead of
# the sanitizer's.
for variable, setting in (("ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0"), ("TSAN_OPTIONS", "detect_deadlocks=0")):
    ENVIRONMENT[variable] = ":".join(filter(None, [os.environ.get(variable), setting]))
TCP = {"OMPI_MCA_btl": "tcp,self"}  # what carries messages between hosts


class Run:
    """A command while it runs."""

    def __init__(self, command, environment, folder=None):
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.error = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.begin = time.monotonic()
        # In a session of its own: everything that mpirun starts can be ended with it.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.error, cwd=folder,
                                        env=os.environ | ENVIRONMENT | environment, start_new_session=True)
        self.timer = threading.Timer(LIMIT, self.kill)
        self.timer.start()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def text(self, file):
        # The ranks write at the end of the same file, which reading must not move.
        return os.pread(file.fileno(), 1 << 24, 0).decode(errors="replace")

    def wait(self):
        """Waits for the end: status, standard output, standard error and seconds since the start."""
        status = self.process.wait()
        self.timer.cancel()
        result = status, self.text(self.output), self.text(self.error), time.monotonic() - self.begin
        self.kill()
        return result
