# Tries to reach beyond a box, and prints what got through, one name a line. Every attempt is harmless where it succeeds.
# The arguments: the canary, a file that holds it, a directory in which a socket is searched.
import ctypes, os, socket, sys

libc = ctypes.CDLL(None, use_errno=True)
canary, canary_file, tree = sys.argv[1].encode(), sys.argv[2], sys.argv[3]
NULL, HERE, METADATA = 0, -100, ("169.254.169.254", 80)


def call(number, *args):
    """Makes a system call and returns its value; an error is an exception."""
    value = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if value < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return value


def attempt(name, f, *args):
    """Runs f in a child, whose success is the attack's: what it changes ends with it."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if f(*args) is not False else 1)
        except BaseException:
            os._exit(1)
    if os.waitpid(child, 0)[1] == 0:
        print(name, flush=True)


def family(number, kind=socket.SOCK_STREAM):
    socket.socket(number, kind).close()


def interfaces():
    return any(name != "lo" for _, name in socket.if_nameindex())


def holds(path):
    with open(path, "rb") as f:
        return canary in f.read(1 << 20)


def environments():
    found = False
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found = found or holds("/proc/" + pid + "/environ")
        except OSError:
            pass
    return found


def searched(accept):
    for at, dirs, files in os.walk(tree):
        if at == "/":
            dirs[:] = [d for d in dirs if d not in ["proc", "usr"]]  # /usr was declared
        for name in dirs + files:
            try:
                if accept(os.path.join(at, name)):
                    return True
            except OSError:
                pass
    return False


def is_socket(path):
    return os.lstat(path).st_mode & 0o170000 == 0o140000


def is_canary(path):
    return os.path.isfile(path) and not os.path.islink(path) and holds(path)


def opened(path, flags):
    os.close(os.open(path, flags))


def device(kind, major, minor):
    os.mknod("device", kind | 0o600, os.makedev(major, minor))
    opened("device", os.O_RDONLY)


def fork_traced():
    child = os.fork()
    if child == 0:
        import time
        time.sleep(10)
    try:
        call(101, 16, child, 0, 0)  # PTRACE_ATTACH
    finally:
        os.kill(child, 9)


def written(path, text):
    with open(path, "wb", buffering=0) as f:
        f.write(text)


def cgroup_files():
    for line in open("/proc/self/mountinfo"):
        if " - cgroup" in line:
            opened(line.split()[4] + "/cgroup.procs", os.O_WRONLY)
            return True
    return False


def other_processes():
    """Processes that are not this one, its children, or a first one that cannot be looked into."""
    seen = set(filter(str.isdigit, os.listdir("/proc"))) - {str(os.getpid()), str(os.getppid()), "1"}
    return any(os.path.exists("/proc/" + pid + "/exe") for pid in seen)


ATTEMPTS = [
    # families and what is behind them
    ("vsock", family, 40), ("alg", family, 38, socket.SOCK_SEQPACKET), ("packet", family, 17, socket.SOCK_RAW),
    ("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()), ("interfaces", interfaces),
    ("route", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(METADATA)),
    ("runtime socket", searched, is_socket),
    # what the host has
    ("canary", holds, canary_file), ("canary in the tree", searched, is_canary), ("environments", environments),
    ("host name", opened, "/etc/hostname", os.O_RDONLY), ("shadow", lambda: opened("/etc/shadow", os.O_RDONLY)),
    ("processes", other_processes), ("root of process 1", lambda: os.listdir("/proc/1/root/")),
    ("descriptors of process 1", lambda: os.listdir("/proc/1/fd")), ("memory of process 1", opened, "/proc/1/mem", os.O_RDWR),
    # the kernel's files
    ("core_pattern", opened, "/proc/sys/kernel/core_pattern", os.O_WRONLY),
    ("modprobe", opened, "/proc/sys/kernel/modprobe", os.O_WRONLY),
    ("ip_forward", opened, "/proc/sys/net/ipv4/ip_forward", os.O_WRONLY),
    ("sysrq", opened, "/proc/sysrq-trigger", os.O_WRONLY), ("kcore", opened, "/proc/kcore", os.O_RDONLY),
    ("irq", opened, "/proc/irq/default_smp_affinity", os.O_WRONLY),
    ("cgroup files", cgroup_files), ("sys", lambda: os.listdir("/sys/kernel")),
    ("oom score", written, "/proc/self/oom_score_adj", b"-1"),
    # devices
    ("memory device", device, 0o020000, 1, 1), ("kernel log device", device, 0o020000, 1, 11),
    ("kernel log", opened, "/dev/kmsg", os.O_RDONLY), ("kvm", opened, "/dev/kvm", os.O_RDWR),
    ("fuse", opened, "/dev/fuse", os.O_RDWR), ("terminal multiplexer", opened, "/dev/ptmx", os.O_RDWR),
    # namespaces, mounts and other ways around
    ("mount namespace", lambda: call(272, 0x20000)), ("user namespace", lambda: call(272, 0x10000000)),
    ("setns", lambda: call(308, os.open("/proc/self/ns/uts", os.O_RDONLY), 0)),
    ("chroot", os.chroot, "."), ("fsopen", lambda: call(430, b"tmpfs", 0)), ("open_tree", lambda: call(428, HERE, b"/", 1)),
    ("mount", lambda: (call(272, 0x20000), call(165, b"none", b"/tmp", b"tmpfs", 0, NULL))),
    ("trace", fork_traced), ("bpf", lambda: call(321, 0, (ctypes.c_uint32 * 18)(2, 4, 4, 1), 72)),
    ("perf", lambda: call(298, (ctypes.c_uint32 * 32)(1, 112), 0, -1, -1, 0)),
    ("userfaultfd", lambda: call(323, 0)), ("io_uring", lambda: call(425, 4, (ctypes.c_uint32 * 30)())),
    ("keys", lambda: call(248, b"user", b"containment", b"x", 1, -1)),
    ("file handle", lambda: call(303, HERE, b"/", (ctypes.c_uint32 * 34)(128), ctypes.byref(ctypes.c_int()), 0)),
    ("kernel messages", lambda: call(103, 10, NULL, 0)),
    ("become root", os.setresuid, 0, 0, 0),
]
print("begun")
for one in ATTEMPTS:
    attempt(*one)
print("done")
