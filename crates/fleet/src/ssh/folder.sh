# Runs on the host before handshake.sh and clean.sh: where the node program may lie, and whether such a folder is
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
# Follows the path $1 from / downwards as far as folders are there: gives them without links in a, and what is
# missing in rest. A link counts only if root or we made it and no other user could have put it there. If
# another user could exchange something on the way, why.
way() {
a=; rest=$1; hops=0;
while [ -n "$rest" ]; do
part=${rest%%/*};
case $part in
"") rest=${rest#/}; continue ;;
.) rest=${rest#.}; continue ;;
..) rest=${rest#..}; a=${a%/*}; continue ;;
esac;
if [ -L "$a/$part" ]; then
above "$a" || return 1;
set -- $(ls -ldn / | { read -r i l o z; echo $o; }) $(ls -ldn "$a/$part" | { read -r i l o z; echo $o $i; });
case $2 in 0|"$u"|"$1") ;; *) why="$a/$part is a link: it belongs to uid $2 and has mode $3"; return 1 ;; esac;
hops=$((hops+1));
[ $hops -le 40 ] || { why="there are too many links on the way"; return 1; };
rest=$(readlink "$a/$part")${rest#"$part"};
case $rest in /*) a= ;; esac;
elif [ -d "$a/$part" ]; then a=$a/$part; rest=${rest#"$part"};
else break; fi; done;
above "$a"; };
# Whether the candidate $1 can be used; with a second argument it is made first, and the folder above it, once
# those above that were found safe. Gives its path without links in d; if not, why.
private() {
e=; why=;
way "${1%/*}" || return 1;
if [ -n "$rest" ] && [ -n "$2" ]; then case ${1%/*} in
"$HOME/.cache") case $rest in */*) ;; *) e=$(mkdir "$a/$rest" 2>&1) ;; esac ;;
"$k"|"$XDG_CACHE_HOME") e=$(mkdir -p "$a/$rest" 2>&1) ;;
esac; way "${1%/*}" || return 1; fi;
[ -z "$rest" ] || { why=${e:-"there is no folder ${1%/*}"}; return 1; };
d=$a/${1##*/};
if [ -d "$d" ]; then :; elif [ -n "$2" ]; then why=$(mkdir "$d" 2>&1) || return 1; else why="it is no folder"; return 1; fi;
# Kind, mode and owner at one time. What is ours now stays ours: no other user may rename it.
set -- $(ls -ldn "$d" 2>/dev/null) none none none;
[ "$3" = "$u" ] || { why="it belongs to uid $3 and has mode $1"; return 1; };
case $1 in
l*) why="it is a link: it belongs to uid $3 and has mode $1"; return 1 ;;
drwx------*) ;;
d????-??-*) why=$(chmod 700 "$d" 2>&1) || return 1 ;;
*) why="others may write in it: it belongs to uid $3 and has mode $1"; return 1 ;;
esac; };
