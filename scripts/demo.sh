#!/usr/bin/env bash
# Runs the quickstart notebook without a browser and prints what it shows. Does all of its own set-up.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
prepare lab
exec "$venv_python" -m tensormagic demo "$@"
