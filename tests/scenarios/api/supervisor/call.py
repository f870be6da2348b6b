"""One call of XML-RPC at a unix socket, made by Python's own client: its result, or the fault."""

import http.client
import json
import pprint
import socket
import sys
import xmlrpc.client

path, method, params = sys.argv[1:]


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)


class Transport(xmlrpc.client.Transport):
    def make_connection(self, host):
        return Connection(host)


proxy = xmlrpc.client.ServerProxy("http://localhost/RPC2", transport=Transport())
try:
    result = getattr(proxy, method)(*json.loads(params))
    if isinstance(result, list) and all(isinstance(it, dict) and "name" in it for it in result):
        # Of several processes, told in the order in which they came to an end.
        result.sort(key=lambda it: it["name"])
    pprint.pprint(result, width=60)
except xmlrpc.client.Fault as fault:
    print(f"fault {fault.faultCode}: {fault.faultString}")
