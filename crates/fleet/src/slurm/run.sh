# Behind drop.sh: runs the node program at the path $0, whose SHA-256 is $1. It is opened once, as 3; what is
# open has to be ours and has to have that hash, and that runs. Nothing is left of it in /tmp from then on,
# however things end. Slurm kills what is left of a step when this shell ends: guardians of the program, which
# undo, have a moment.
h=$1
shift
trap : TERM INT HUP
o=/proc/$$/fd/3
[ -f "$0" ] || { echo "linerate: the node program is not at $0" >&2; exit 70; }
exec 3<"$0"
[ -O "$o" ] || { echo "linerate: $0 belongs to another user" >&2; exit 70; }
command -v sha256sum >/dev/null || { drop "$0"; echo "linerate: no program sha256sum; install coreutils on the node" >&2; exit 70; }
[ "$(sha256sum <"$o" | cut -c 1-64)" = "$h" ] || { drop "$0"; echo "linerate: $0 is not what was copied there" >&2; exit 70; }
drop "$0"
"$o" "$@"
code=$?
guarded() {
for p in $(grep -lzxs guard /proc/[0-9]*/cmdline); do
case $(readlink "${p%cmdline}exe") in "$0"*) grep -zqxs "SLURMD_NODENAME=$SLURMD_NODENAME" "${p%cmdline}environ" && return 0 ;; esac
done
return 1
}
n=0
while [ $n -lt 50 ] && guarded; do n=$((n+1)); sleep 0.2; done
exit $code
