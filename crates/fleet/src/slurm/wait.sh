# Behind drop.sh, on each node of a step for all, before the node program is there. Its stdin is
# the same on all nodes: a line when the copy is there, then the order for the program. While it waits it is
# bounded in time, because the end of a killed srun is not seen.
trap 'drop "$0"; exit 143' TERM INT HUP
echo "up $SLURMD_NODENAME $SLURM_STEP_ID"
timeout 180 sh -c "read -r go" || { drop "$0"; exit 1; }
