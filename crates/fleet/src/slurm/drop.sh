# Removes the copy of the node program at the path $1 with its folder, if the folder is ours. /tmp is sticky:
# what is ours stays ours.
drop() {
d=${1%/*}
[ -L "$d" ] || [ ! -O "$d" ] || { rm -f -- "$1"; rmdir -- "$d"; } 2>/dev/null
}
