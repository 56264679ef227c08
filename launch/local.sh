#!/usr/bin/env bash
# One machine, one process: installs into .venv where that is not done, then runs.
#
#   launch/local.sh FILE[:variants] [--workdir=DIR] [--config.KEY=VALUE ...]
#
# DRY_RUN=1 prints the commands instead. PYTHON names the Python that .venv is made of.
set -euo pipefail

if (($# == 0)); then
  echo "launch/local.sh: name an experiment, such as configs/splitmnist.py." >&2
  exit 2
fi

run() {
  if [[ -n ${DRY_RUN:-} ]]; then
    local line
    printf -v line '%q ' "$@"
    echo "${line% }"
  else
    "$@"
  fi
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Nothing happens here where .venv is complete and newer than pyproject.toml.
run make --silent --directory="$root" .venv/installed
# Paths stay those of the caller's folder.
run "$root/.venv/bin/python" -m ebmjax.main "--config=$1" "${@:2}"
