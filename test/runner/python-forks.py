"""Runs a Python program in forks of one interpreter that has loaded its modules: a tenth of the cost of a fresh start.

Usage: python python-forks.py <script> <socket>. python-fork-client.py, which tests run instead of the script, sends its
arguments, environment, working folder and standard streams to the socket. A client that sends no streams
(test/support/programs/python-forks.ts) gets the output when the program has ended. The server loads the program for the
first client, and ends with its standard input.
"""

import ast
import gc
import os
import select
import signal
import socket
import sys
import types

# No folder of compiled code beside the sources.
sys.dont_write_bytecode = True
from python_aws_cli import LOADERS, imported, load_aws_cli

sys.dont_write_bytecode = False
SCRIPT, SOCKET = sys.argv[1:]


def load(script):
    """Returns the code of the script, with the modules loaded that it imports."""
    imported("encodings.idna")
    with open(script, "rb") as file:
        source = file.read()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                imported(alias.name)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imported(node.module)
    return compile(source, script, "exec")


def receive(connection):
    """Returns the working folder, the arguments, the environment, and files of the output if the client has no streams.

    Makes the streams of the client, or the files, our own.
    """
    message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[:4], "little"):
        more = connection.recv(1 << 20)
        if not more:
            os._exit(0)
        message += more
    outputs = []
    if not streams:
        connection.sendall(os.getpid().to_bytes(4, "little"))
        outputs = [os.memfd_create(name) for name in ["stdout", "stderr"]]
        streams = [os.open(os.devnull, os.O_RDONLY), *map(os.dup, outputs)]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    folder, count, *rest = [os.fsdecode(part) for part in message[4:].split(b"\0")]
    env = dict(entry.split("=", 1) for entry in rest[int(count) :] if "=" in entry)
    return folder, rest[: int(count)], env, outputs


def answer(connection, status, outputs):
    """Sends the exit code, and the outputs with the length of the first."""
    sizes = [os.fstat(output).st_size for output in outputs]
    connection.sendall(bytes([status & 255]) + b"".join(size.to_bytes(4, "little") for size in sizes[:1]))
    for output, size in zip(outputs, sizes):
        sent = 0
        while sent < size:
            sent += os.sendfile(connection.fileno(), output, sent, size - sent)


def serve(connection, code, set_by_modules):
    """Runs the program for one client and ends.

    set_by_modules: variables of the environment that modules of the program set as they are loaded
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    folder, args, env, outputs = receive(connection)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({**set_by_modules, **env})
    for loader in LOADERS:
        loader.CUSTOMER_DATA_PATH = os.path.expanduser("~/.aws/models")
    sys.argv = [SCRIPT, *args]
    main = types.ModuleType("__main__")
    main.__file__ = SCRIPT
    sys.modules["__main__"] = main
    status = 1
    try:
        exec(code, main.__dict__)
        status = 0
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        answer(connection, status, outputs)
        os._exit(0)


def reap(*_):
    """Takes the ends of forks, so that their CPU time counts as that of a child."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def prepare():
    """Loads the program, for all forks."""
    inherited = set(os.environ)
    code = load(SCRIPT)
    clidriver = sys.modules.get("awscli.clidriver")
    if clidriver is not None:
        load_aws_cli(clidriver)
    # Collections in a fork would copy the memory that it shares.
    gc.collect()
    gc.freeze()
    gc.disable()
    return code, {name: value for name, value in os.environ.items() if name not in inherited}


sys.path[0] = os.path.dirname(SCRIPT)
program = None
signal.signal(signal.SIGCHLD, reap)
with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(SOCKET)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        readable, _, _ = select.select([listener, 0], [], [])
        if 0 in readable:
            break
        connection, _ = listener.accept()
        program = program or prepare()
        if os.fork() == 0:
            listener.close()
            serve(connection, *program)
        connection.close()
