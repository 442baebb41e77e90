# Attacks process 1, which answers for the run: reads and changes it, signals it, and writes its records wherever something can be
# written. Prints what got through; the run then ends with status 7.
import os, resource, signal, struct, sys


def attempt(name, f, *args):
    try:
        f(*args)
    except OSError:
        return
    print("got through:", name, flush=True)


for name in ("mem", "environ", "maps", "auxv", "stack", "syscall", "fd/0", "fd/1", "root/etc/passwd", "cwd/x", "exe", "io"):
    attempt(name, lambda n: open("/proc/1/" + n, "rb").read(1), name)
for name in ("mem", "fd/0", "fd/1", "exe", "oom_score_adj", "comm"):
    attempt("write " + name, lambda n: os.close(os.open("/proc/1/" + n, os.O_WRONLY)), name)
attempt("fd", os.listdir, "/proc/1/fd")
attempt("task", os.listdir, "/proc/1/task/1/fd")
attempt("supervisor", os.listdir, "/.containment")
attempt("limit", resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))
attempt("affinity", os.sched_setaffinity, 1, {0})
attempt("priority", os.setpriority, os.PRIO_PROCESS, 1, 19)
attempt("scheduler", os.sched_setscheduler, 1, os.SCHED_BATCH, os.sched_param(0))
for number in range(1, 65):
    attempt("signal %d" % number, os.kill, 1, number)
attempt("group", os.killpg, 1, signal.SIGKILL)
attempt("pidfd", lambda: signal.pidfd_send_signal(os.pidfd_open(1), signal.SIGKILL))
attempt("program", lambda: os.close(os.open("/proc/self/exe", os.O_WRONLY)))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
attempt("everybody", os.kill, -1, signal.SIGTERM)

# A result, and an end with a nonce that was guessed, as records and as text.
forged = b"".join(struct.pack(order, kind, len(body)) + body for order in (">BI", "<BI")
                  for kind, body in ((71, b"\0" * 64), (67, b""), (73, b"n" * 16), (73, b"\0" * 32)))
os.write(2, forged)
for fd in os.listdir("/proc/self/fd"):
    for path in ("/proc/self/fd/" + fd, "/dev/fd/" + fd, "/dev/pts/" + fd):
        try:
            to = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            os.write(to, forged)
        except OSError:
            pass
if os.fork() == 0:  # and goes on with it after the leader's end
    os.setsid()
    while True:
        try:
            os.write(1, forged)
        except OSError:
            pass
sys.stdout.flush()
os._exit(7)
