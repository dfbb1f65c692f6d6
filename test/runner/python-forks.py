"""Runs a Python program in forks of one interpreter that has loaded its modules: a tenth of the cost of a fresh start.

Usage: python python-forks.py <script> <socket>. python-fork-client.py, which tests run instead of the script, sends its
arguments, environment, working folder and standard streams to the socket. It loads the program for the first client, and
ends with its standard input.
"""

import ast
import functools
import gc
import importlib
import os
import select
import signal
import socket
import sys
import types

SCRIPT, SOCKET = sys.argv[1:]
# aws-cli 2, and late releases of aws-cli 1, have their own copies of botocore and s3transfer.
COPIES = ["", "awscli."]
MODELS = ["service-2", "paginators-1", "waiters-2", "endpoint-rule-set-1"]


# Classes of botocore that know the home of the user since they were loaded.
LOADERS = []


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


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


def load_aws_cli(driver):
    imported("awscli.customizations.s3.subcommands")
    for copy in COPIES:
        for name in ["s3transfer.manager", "botocore.httpsession"]:
            imported(f"{copy}{name}")
        loaders = imported(f"{copy}botocore.loaders")
        if loaders is not None:
            LOADERS.append(loaders.Loader)
            loaders.JSONFileLoader.load_file = once(loaders.JSONFileLoader.load_file)
            loaders.Loader.list_available_services = once(loaders.Loader.list_available_services)
        hooks = imported(f"{copy}botocore.hooks")
        if hooks is not None:
            keep_names(hooks)
            hooks.accepts_kwargs = once_for_code(hooks.accepts_kwargs)
    distro = imported("distro")
    if distro is not None:
        for name in ["id", "version", "major_version"]:
            setattr(distro, name, functools.cache(getattr(distro, name)))
    session = driver.create_clidriver().session
    # It looks into the folder of each of 400 services.
    session.get_available_services()
    for model in MODELS:
        session.get_component("data_loader").load_service_model("s3", model)
    session.create_client("s3", region_name="us-east-1", aws_access_key_id="none", aws_secret_access_key="none")


def keep_names(hooks):
    """Has all EventAliaser objects with the usual aliases share the names of events that they have found."""
    usual = getattr(hooks, "EVENT_ALIASES", None)
    aliaser = getattr(hooks, "EventAliaser", None)
    if aliaser is None or usual is None:
        return
    create = aliaser.__init__
    names = {}

    @functools.wraps(create)
    def create_with_names(self, *args, **options):
        create(self, *args, **options)
        if hasattr(self, "_alias_name_cache") and self._event_aliases == usual:
            self._alias_name_cache = names

    aliaser.__init__ = create_with_names


def once(method):
    """The method, with each result kept. A fork may change a result, because it has a copy of all memory."""
    results = {}

    @functools.wraps(method)
    def known(self, *args, **options):
        # Loaders differ in the folders that they search. A client may have models of its own at home.
        folders = tuple(filter(os.path.isdir, getattr(self, "search_paths", ())))
        key = (folders, args, tuple(options.items()))
        if key not in results:
            results[key] = method(self, *args, **options)
        return results[key]

    return known


def once_for_code(accepts):
    """What a function accepts, asked once: each command asks it of 400 handlers, of which it makes a part anew."""
    results = {}

    @functools.wraps(accepts)
    def known(function):
        code = getattr(getattr(function, "__func__", function), "__code__", function)
        if code not in results:
            results[code] = accepts(function)
        return results[code]

    return known


def share_environment():
    """Has all commands of aws-cli 2 share one copy of the environment: it makes one for each of 97."""
    factory = getattr(sys.modules.get("awscli.utils"), "OutputStreamFactory", None)
    if factory is None or "environ" not in factory.__init__.__code__.co_varnames:
        return
    create = factory.__init__
    copy = os.environ.copy()
    factory.__init__ = lambda self, *args, **options: create(self, *args, **{"environ": copy, **options})


def receive(connection):
    """Returns the working folder, the arguments and the environment, and makes the streams of the client our own."""
    message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    length = int.from_bytes(message[:4], "little")
    while len(message) < 4 + length:
        message += connection.recv(1 << 20)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    folder, count, *rest = [os.fsdecode(part) for part in message[4:].split(b"\0")]
    return folder, rest[: int(count)], dict(entry.split("=", 1) for entry in rest[int(count) :] if "=" in entry)


def serve(connection, code, set_by_modules):
    """Runs the program for one client and ends.

    set_by_modules: variables of the environment that modules of the program set as they are loaded
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    folder, args, env = receive(connection)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({**set_by_modules, **env})
    share_environment()
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
        connection.send(bytes([status & 255]))
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
