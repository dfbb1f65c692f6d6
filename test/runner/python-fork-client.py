# Has python-forks.py run the program with the arguments, the environment, the working folder and the standard streams
# of this process, and ends with its exit code. The runner puts the path of the socket above. It imports as little as
# possible, because it starts once for each command.
import _socket
import os
import sys

parts = [os.getcwdb(), b"%d" % (len(sys.argv) - 1), *map(os.fsencode, sys.argv[1:])]
message = b"\0".join([*parts, *(name + b"=" + value for name, value in os.environb.items())])
server = _socket.socket(_socket.AF_UNIX)
server.connect(SOCKET)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in range(3))
sent = server.sendmsg(
    [len(message).to_bytes(4, "little") + message], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)]
)
rest = message[max(0, sent - 4) :]
# Also sending nothing fails once the program has ended and closed the connection.
if rest:
    server.sendall(rest)
status = server.recv(1)
os._exit(status[0] if status else 255)
