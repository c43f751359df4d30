#!/usr/bin/env bash
# Runs every check: ruff, pyright, pytest, the notebooks, the browser. Does all of its own set-up.
# Arguments go to pytest: bash scripts/test.sh -k softmax
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"

find_chromium() {
  local candidate
  for candidate in ${CHROMIUM:+"$CHROMIUM"} chromium chromium-browser google-chrome; do
    command -v "$candidate" && return
  done
  return 1
}

install_chromium() { # Debian's own, with a font to draw with
  local sudo=()
  if [ "$(id -u)" != 0 ]; then sudo=(sudo); fi
  echo "Installing Debian's chromium for the browser tests …"
  "${sudo[@]}" apt-get update -qq &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
}

find_chromium >/dev/null || install_chromium ||
  echo "Chromium could not be installed: install it by hand, or set CHROMIUM to its path. The browser tests will fail." >&2
CHROMIUM=$(find_chromium || true)
export CHROMIUM TENSORMAGIC_REQUIRE_BROWSER=1 # without a browser its tests are errors here, not skipped
export PYRIGHT_PYTHON_IGNORE_WARNINGS=1       # no look at the registry for a newer pyright
prepare test
PYTHONPATH="$PWD/tests/absent${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH

failed=()
check() {
  echo "== $1"
  "${@:2}" || failed+=("$1")
}

pyright_log=$(mktemp)
"$venv_python" -m pyright --pythonpath "$venv_python" >"$pyright_log" 2>&1 & # it uses one core, and the tests leave some of theirs
pyright=$!
trap 'kill "$pyright" 2>/dev/null || true; rm -f "$pyright_log"' EXIT
pyright_says() {
  local status=0
  wait "$pyright" || status=$?
  cat "$pyright_log"
  return "$status"
}
check "ruff check" "$venv_python" -m ruff check --output-format concise .
check "ruff format" "$venv_python" -m ruff format --check --output-format concise .
processes=$(($("$venv_python" -c 'import os; print(os.cpu_count())') + 1)) # one more than cores: kernels, browsers and pauses are waited for
check "pytest" "$venv_python" -m pytest --numprocesses "$processes" --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
  -p nbval.plugin --nbval --nbval-current-env --nbval-cell-timeout=120 --nbval-sanitize-with tests/nbval-sanitize.cfg "$@"
check "pyright" pyright_says

if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[@]}" >&2
  exit 1
fi
