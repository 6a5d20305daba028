# Runs on the host and removes what was copied there. The same rules as in greet.sh.
read -r t old || exit 70;
say() { printf "%s\n" "$t $*"; };
d=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/linerate;
if [ -d "$d" ]; then
for f in "$d"/linerate-node-* "$d"/.new-*; do
if [ -f "$f" ] || [ -L "$f" ]; then
s=$(wc -c <"$f");
e=$(rm -f "$f" 2>&1) && say removed "$s" "$f" || say kept "$e";
fi; done;
e=$(rmdir "$d" 2>&1) && say removed 0 "$d" || say kept "$e";
fi;
say done
