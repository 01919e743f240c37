#!/usr/bin/env python3
"""Shows a page with a form in Chromium, prints the values of the form when it is sent, and ends.

    plan_form.py PAGE.html

The program for the Chromium tasks of plan_tasks.py: prints `name=value|name=value` in the order of the form.
"""
import http.server
import os
import subprocess
import sys
import urllib.parse


class Page(http.server.BaseHTTPRequestHandler):
    sent = None

    def do_GET(self):
        address = urllib.parse.urlsplit(self.path)
        if address.path == "/sent":
            Page.sent = urllib.parse.parse_qsl(address.query, keep_blank_values=True)
        with open(sys.argv[1], "rb") as f:
            text = b"Thank you" if Page.sent is not None else f.read()
        self.send_response(200 if address.path in ("/", "/sent") else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def main():
    server = http.server.HTTPServer(("127.0.0.1", 0), Page)
    words = ["chromium", "--no-sandbox", "--no-first-run", "--disable-gpu", "--force-renderer-accessibility",
             f"--user-data-dir={os.getcwd()}/profile", f"http://127.0.0.1:{server.server_port}/"]
    browser = subprocess.Popen(words, stderr=subprocess.DEVNULL, env=dict(os.environ, ACCESSIBILITY_ENABLED="1"))
    server.timeout = 0.5
    while Page.sent is None and browser.poll() is None:
        server.handle_request()
    print("|".join(f"{name}={value}" for name, value in Page.sent or []), flush=True)
    browser.terminate()
    return 0 if Page.sent is not None else 1


if __name__ == "__main__":
    sys.exit(main())
