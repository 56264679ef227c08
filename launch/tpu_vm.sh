#!/usr/bin/env bash
# One experiment on all workers of a Cloud TPU VM, or of a slice of several.
#
#   launch/tpu_vm.sh install TPU ZONE
#   launch/tpu_vm.sh run TPU ZONE FILE[:variants] [--workdir=DIR] [--config.KEY=VALUE ...]
#
# `install` copies this repository to every worker and makes its .venv; `run` starts one
# process a worker. With --distributed=on JAX asks the VM's metadata (agent-worker-number
# and worker-network-endpoints) who the others are. With several workers DIR must be on
# storage that all of them have mounted. The same `run` continues an interrupted one.
#
# DRY_RUN=1 prints the commands instead. PYTHON names the workers' Python, 3.11 or newer.
set -euo pipefail

usage() {
  sed -n '4,5s/^# *//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

run() {
  if [[ -n ${DRY_RUN:-} ]]; then
    local line
    printf -v line '%q ' "$@"
    echo "${line% }"
  else
    "$@"
  fi
}

# The worker's shell reads the command anew, so each word is quoted for it.
on_workers() {
  run gcloud compute tpus tpu-vm ssh "$tpu" --zone="$zone" --worker=all --command="$1"
}

(($# >= 3)) || usage
action=$1 tpu=$2 zone=$3
shift 3
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

case $action in
  install)
    (($# == 0)) || usage
    packed=$(mktemp -d)/ebmjax.tar.gz
    trap 'rm -rf "$(dirname "$packed")"' EXIT
    run tar --exclude=./.venv --exclude=./runs -czf "$packed" -C "$root" .
    run gcloud compute tpus tpu-vm scp "$packed" "$tpu:ebmjax.tar.gz" \
      --zone="$zone" --worker=all
    printf -v make 'make --silent .venv/installed EXTRAS=tpu PYTHON=%q' "${PYTHON:-python3}"
    on_workers "mkdir -p ebmjax && tar -xzf ebmjax.tar.gz -C ebmjax && cd ebmjax && $make"
    ;;
  run)
    (($# >= 1)) || usage
    printf -v words ' %q' "--config=$1" "${@:2}"
    on_workers "cd ebmjax && .venv/bin/python -m ebmjax.main --distributed=on$words"
    ;;
  *) usage ;;
esac
