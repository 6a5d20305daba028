# The command of a job of our own: says which nodes it got, and ends, and the job with it, when the pipe from the operator closes.
echo "$SLURM_JOB_ID $SLURM_JOB_NODELIST"
read -r word || word=killed
# Whatever else is on the pipe says nothing more.
cat >/dev/null
if [ "$word" != done ]; then
# The operator went without a word. A copy of the node program that no step had begun to run yet may lie on nodes, or be on its way.
sleep 1
timeout 5 srun --quiet --overlap --ntasks-per-node=1 --nodes="$SLURM_JOB_NUM_NODES" sh -c 'for d in /tmp/linerate-node-"$SLURM_JOB_ID"-*; do [ -L "$d" ] || [ ! -O "$d" ] || { rm -f -- "$d/linerate-node"; rmdir -- "$d"; }; done' </dev/null >/dev/null 2>&1
fi
# salloc gives the job back when this ends, unless it was killed.
read -r pid name state parent rest </proc/$$/stat
[ "$parent" = "$PPID" ] || exec scancel --quiet "$SLURM_JOB_ID"
