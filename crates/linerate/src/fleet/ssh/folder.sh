# Runs on the host before greet.sh and clean.sh: where the node program may lie, and whether such a folder is
# ours alone. Lines that are meant for the operator begin with a word that the operator chose, so that
# whatever start-up files of the shell print is passed over. Nothing that is read here is ever run as a
# command. The lines are joined by spaces into one argument in single quotes, which every login shell
# understands, also csh and fish: so no single quote, no exclamation mark, no backslash but the one before n,
# and each line ends where a space may stand. Only what dash, bash, mksh and busybox have in common.
read -r t old || exit 70;
# The folder that the inventory names, or an empty line.
IFS= read -r k || exit 70;
umask 077;
# Words of the system are compared below.
LC_ALL=C; export LC_ALL;
say() { printf "%s\n" "$t $*"; };
u=$(id -u);
# The candidates, in the order in which they are tried. Where others have folders too, ours has the number of
# the user in its name.
set --;
if [ -n "$k" ]; then set -- "$k/linerate-$u"; else
case $XDG_CACHE_HOME in /*) set -- "$XDG_CACHE_HOME/linerate" ;; esac;
case $HOME in /*) [ "$XDG_CACHE_HOME" = "$HOME/.cache" ] || set -- "$@" "$HOME/.cache/linerate" ;; esac;
set -- "$@" "/run/user/$u/linerate" "/dev/shm/linerate-$u" "/var/tmp/linerate-$u";
fi;
# Whether another user could exchange something on the path $1, which has no links in it: each folder belongs
# to root, to us or to the owner of / (which is root, also where a user namespace shows another number), and
# others may write in it only if it is sticky. Asked from / downwards in one call, so that what was found safe
# stays safe. If not, why.
above() {
b=${1%/};
set --;
while [ -n "$b" ]; do set -- "$b" "$@"; b=${b%/*}; done;
v=$(ls -ldn / "$@" 2>/dev/null | { n=0; r=; while read -r i l o g z a b c j; do r=${r:-$o}; s=no;
case $i in d????-??-*|d????????[tT]*) case $o in 0|"$u"|"$r") s=yes ;; esac ;; esac;
[ $s = yes ] || { echo "others can exchange it: $j belongs to uid $o and has mode $i"; exit; };
n=$((n+1)); done; echo $n; });
[ "$v" = $(($#+1)) ] && return 0;
why=$v; return 1; };
# Whether the candidate $1 can be used; with a second argument it is made first. Gives its path without links
# in d; if not, why.
private() {
b=${1%/*}; e=; why=;
if [ -n "$2" ]; then case $b in
"$HOME/.cache") [ -d "$b" ] || e=$(mkdir "$b" 2>&1) ;;
"$k"|"$XDG_CACHE_HOME") e=$(mkdir -p "$b" 2>&1) ;;
esac; fi;
[ -d "$b" ] || { why=${e:-"there is no folder $b"}; return 1; };
a=$(cd -P -- "$b" 2>&1 && pwd -P) || { why=${e:-$a}; return 1; };
d=${1##*/};
above "$a" || return 1;
d=${a%/}/$d;
if [ -d "$d" ]; then :; elif [ -n "$2" ]; then why=$(mkdir "$d" 2>&1) || return 1; else why="it is no folder"; return 1; fi;
# Kind, mode and owner at one time. What is ours now stays ours: no other user may rename it.
set -- $(ls -ldn "$d" 2>/dev/null) none none none;
[ "$3" = "$u" ] || { why="it belongs to uid $3 and has mode $1"; return 1; };
case $1 in
l*) why="it is a link"; return 1 ;;
drwx------*) ;;
d????-??-*) why=$(chmod 700 "$d" 2>&1) || return 1 ;;
*) why="others may write in it: it belongs to uid $3 and has mode $1"; return 1 ;;
esac; };
