# Behind drop.sh and before take.sh, on a node of which the session was lost: ends what is left of the node
# program that ran from the path $1. Guardians go on: they undo. Several nodes of a cluster may be on one
# machine.
for p in /proc/[0-9]*; do
case $(readlink "$p/exe" 2>/dev/null) in "$1"|"$1 (deleted)") ;; *) continue ;; esac
grep -zqxs "SLURMD_NODENAME=$SLURMD_NODENAME" "$p/environ" || continue
grep -zqxs guard "$p/cmdline" || kill -9 "${p##*/}"
done
