# Runs on the host behind folder.sh, whose rules hold here too, and removes what was copied there from every
# folder that is ours.
for c in "$@"; do
if [ -d "$c" ]; then
if private "$c"; then
for f in "$d"/linerate-node-* "$d"/.new-*; do
if [ -f "$f" ] || [ -L "$f" ]; then
s=$(wc -c <"$f");
e=$(rm -f "$f" 2>&1) && say removed "$s" "$f" || say kept "$e";
fi; done;
e=$(rmdir "$d" 2>&1) && say removed 0 "$d" || say kept "$e";
else
# That of another user is none of ours.
case $why in "it belongs to"*) ;; *) say kept "$c: $why" ;; esac;
fi; fi; done;
say done
