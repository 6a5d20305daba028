# Behind drop.sh, on one node: takes the node program from stdin to the path $0, into a folder that is made
# now and that only this account can enter; what is at the path $1 goes.
drop "$1"
umask 077
mkdir -- "${0%/*}" && set -C && cat > "$0" && chmod 700 "$0"
