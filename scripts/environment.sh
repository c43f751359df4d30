# Sourced by demo.sh and test.sh: a virtual environment `.venv` in the checkout, with the package installed in it.
# Nothing outside the checkout is changed. A second run with the same pyproject.toml installs nothing.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv_python="$PWD/.venv/bin/python"
unset PYTHONDONTWRITEBYTECODE # where it is set, each of the many processes compiles the package's sources anew

find_python() { # the interpreter to build on: $PYTHON if set, else the first one of a supported version
  local candidate
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  echo "tensormagic needs Python 3.11, 3.12, 3.13 or 3.14; none was found (set PYTHON to its path)." >&2
  return 1
}

install_with_pip() { # Debian keeps venv's own pip in a package apart; its python3-pip can serve the environment as well
  if "$venv_python" -m pip --version >/dev/null 2>&1; then
    "$venv_python" -m pip install "$@"
  elif "$base_python" -m pip --version >/dev/null 2>&1; then
    "$base_python" -m pip --python "$venv_python" install "$@"
  else
    echo "pip is missing: install it first (Debian: apt-get install python3-pip)." >&2
    return 1
  fi
}

dots() { # a dot for each package of pip's output, and when the last of them is there: minutes without a word look like a fault
  local line
  while IFS= read -r line; do
    case $line in
      Collecting*) printf . ;;
      "Installing collected packages"*) printf ' unpacking …' ;;
    esac
  done
  echo
}

prepare() { # prepare EXTRA: .venv exists and holds tensormagic[EXTRA]
  local extra=$1 stamp wanted
  stamp="$PWD/.venv/.tensormagic-$extra"
  if ! "$venv_python" -c '' 2>/dev/null; then
    base_python=$(find_python) || return
    echo "Making .venv with $("$base_python" --version) …"
    "$base_python" -m venv --clear .venv >/dev/null 2>&1 || "$base_python" -m venv --clear --without-pip .venv || return
  fi
  base_python=${base_python:-$(find_python)} || return
  wanted=$("$venv_python" --version; printf '%s\n' "$PWD"; cksum <pyproject.toml) # an environment does not survive a move
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "Installing tensormagic[$extra] into .venv (a few minutes the first time; a dot for each package) …"
    install_with_pip --disable-pip-version-check --editable ".[$extra]" | dots || return
    printf '%s\n' "$wanted" >"$stamp"
  fi
}
