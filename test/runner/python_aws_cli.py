"""Has forks of one interpreter share what aws-cli loads and finds out anew for each command, for python-forks.py.

The program stays as it is: it gets the same results, sooner.
"""

import functools
import importlib
import inspect
import logging
import os
import sys
import types

# aws-cli 2, and late releases of aws-cli 1, have their own copies of botocore and s3transfer.
COPIES = ["", "awscli."]
# Commands that reach no server; between them they load most of what the commands of the tests need.
REHEARSED = [
    ["s3api", "head-object", "--bucket", "none", "--key", "none"],
    ["s3", "ls"],
    ["s3", "cp", "--dryrun", __file__, "s3://none/none"],
]
NOBODY = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
    "HOME": "/nonexistent",
}
# Contexts of TLS that a command makes, even for a server without TLS.
CONTEXTS = 4
# Classes of botocore that know the home of the user since they were loaded.
LOADERS = []


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


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
            hooks.accepts_kwargs = known_by_code(hooks.accepts_kwargs)
    distro = imported("distro")
    if distro is not None:
        for name in ["id", "version", "major_version"]:
            setattr(distro, name, functools.cache(getattr(distro, name)))
    rehearse(driver)
    # Made after the rehearsal, which would use them up.
    for copy in COPIES:
        sessions = imported(f"{copy}botocore.httpsession")
        if sessions is not None:
            sessions.create_urllib3_context = made_before(sessions.create_urllib3_context)


def rehearse(driver):
    """Runs commands, so that each fork finds loaded what they load, such as the table of all commands."""
    environment = {name: os.environ.get(name) for name in NOBODY}
    os.environ.update(NOBODY)
    streams = sys.stdout, sys.stderr
    # The logger of awscrt takes locks that a fork cannot free.
    crt = getattr(driver, "disable_crt_logging", None)
    driver.disable_crt_logging = lambda: None
    entry = getattr(driver, "AWSCLIEntryPoint", driver.create_clidriver)
    with open(os.devnull, "w") as nothing:
        sys.stdout = sys.stderr = nothing
        for args in REHEARSED:
            try:
                entry().main(["--endpoint-url", "http://127.0.0.1:1", *args])
            except SystemExit:
                pass
    sys.stdout, sys.stderr = streams
    driver.disable_crt_logging = crt
    for name, value in environment.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    for logger in logging.Logger.manager.loggerDict.values():
        if isinstance(logger, logging.Logger):
            # Those that a command adds write to the standard error of the rehearsal.
            logger.handlers = [handler for handler in logger.handlers if isinstance(handler, logging.NullHandler)]
            logger.setLevel(logging.NOTSET)


def made_before(create):
    """The function, with its first results made in advance."""
    made = [create() for _ in range(CONTEXTS)]

    @functools.wraps(create)
    def created(*args, **options):
        return create(*args, **options) if args or options or not made else made.pop()

    return created


def known_by_code(accepts_kwargs):
    """The function `accepts_kwargs`, faster for methods and functions; each command asks it of 400 handlers."""

    def answer(handler):
        function = getattr(handler, "__func__", handler)
        if type(function) is not types.FunctionType or hasattr(function, "__wrapped__"):
            return accepts_kwargs(handler)
        code = function.__code__
        if not code.co_flags & inspect.CO_VARKEYWORDS:
            return None
        named = code.co_argcount + code.co_kwonlyargcount
        return code.co_varnames[named + bool(code.co_flags & inspect.CO_VARARGS)]

    return answer


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
