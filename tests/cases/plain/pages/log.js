/* Reports what the user did to the server of the benchmark, one line each. */
function log(line) {
  fetch("log", {method: "POST", body: line, keepalive: true});
}
