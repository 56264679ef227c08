#!/usr/bin/env bash
# One experiment on TPU slices of a GKE cluster, through XPK, which makes the JobSet.
#
#   launch/gke_xpk.sh CLUSTER WORKLOAD TPU_TYPE FILE[:variants] --workdir=DIR [flags]
#   launch/gke_xpk.sh my-cluster split v5litepod-16 configs/splitmnist.py --workdir=/data/a
#
# XPK builds an image of this repository on BASE_IMAGE (python:3.12) and starts one
# process a host. GKE tells each of them its place in TPU_WORKER_ID and
# TPU_WORKER_HOSTNAMES, which JAX reads. A preempted workload is started again up to
# RESTARTS (10) times and continues from DIR, which must be on storage that all hosts
# mount: attach it to the cluster with `xpk storage attach` beforehand.
#
# xpk takes project and zone from gcloud's configuration. DRY_RUN=1 prints the command.
set -euo pipefail

if (($# < 4)); then
  sed -n '4s/^# *//p' "${BASH_SOURCE[0]}" >&2
  exit 2
fi
cluster=$1 workload=$2 tpu_type=$3
shift 3

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# The container's shell reads the command anew, so each word is quoted for it.
printf -v words ' %q' "--config=$1" "${@:2}"
install='python3 -m pip install --quiet --editable ".[tpu]"'
command=(
  xpk workload create
  --cluster="$cluster"
  --workload="$workload"
  --tpu-type="$tpu_type"
  --base-docker-image="${BASE_IMAGE:-python:3.12}"
  --script-dir="$root"
  --max-restarts="${RESTARTS:-10}"
  --command="$install && python3 -m ebmjax.main$words"
)

if [[ -n ${DRY_RUN:-} ]]; then
  printf -v line '%q ' "${command[@]}"
  echo "${line% }"
else
  "${command[@]}"
fi
