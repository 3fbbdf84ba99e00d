#!/usr/bin/env bash
# Debian's Slurm for tests/cluster, unless it is there. The tests bring up daemons of their own.
set -euo pipefail
PATH=$PATH:/usr/sbin
packages=(slurmctld slurmd slurm-client munge)
missing=()
for program in slurmctld slurmd sbatch munged; do
    command -v "$program" > /dev/null || missing+=("$program")
done
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get > /dev/null; then
    echo "Slurm is not complete (no ${missing[*]}): let root run apt-get install ${packages[*]}" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
timeout 600 apt-get update --quiet
timeout 1800 apt-get install --quiet --yes --no-install-recommends -o DPkg::Lock::Timeout=300 "${packages[@]}"
