# "leave" leaves everything that one box could find of another and waits; "find" prints what it found.
import ctypes, os, socket, sys, time

libc = ctypes.CDLL(None, use_errno=True)
key, key2, size = 0x5ea1, 0x5ea2, 4096
shared = ["/dev/shm/trace", "/tmp/trace", "/var/tmp/trace"]
abstract, port = "\0containment-trace", 47113


def leave():
    for path in shared:
        try:
            open(path, "w").close()
        except OSError:
            pass
    libc.shmget(key, size, 0o1666)
    libc.msgget(key2, 0o1666)
    listeners = [socket.socket(socket.AF_UNIX), socket.socket()]
    listeners[0].bind(abstract)
    listeners[1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listeners[1].bind(("127.0.0.1", port))
    for one in listeners:
        one.listen()
    for _ in range(int(sys.argv[2])):
        if os.fork() == 0:
            time.sleep(600)
    print("up", flush=True)
    time.sleep(600)


def find():
    for path in shared[:2]:
        if os.path.exists(path):
            print(path)
    if libc.shmget(key, size, 0) >= 0:
        print("shared memory")
    if libc.msgget(key2, 0) >= 0:
        print("message queue")
    for name, family, address in (("abstract socket", socket.AF_UNIX, abstract), ("port", socket.AF_INET, ("127.0.0.1", port))):
        try:
            socket.socket(family).connect(address)
            print(name)
        except OSError:
            pass
    for _ in range(int(sys.argv[2])):
        try:
            if os.fork() == 0:
                time.sleep(600)
        except OSError:
            print("no room for processes")
            break
    print("done", flush=True)


{"leave": leave, "find": find}[sys.argv[1]]()
