# Runs on the host before the node program. Lines that are meant for the operator begin with a word that the operator chose, so
# that whatever start-up files of the shell print is passed over. Nothing that is read here is ever run as a command.
# The lines are joined by spaces into one argument in single quotes, which every login shell understands, also csh and fish:
# so no single quote, no exclamation mark, no backslash but the one before n, and each line ends where a space may stand.
read -r t old || exit 70;
umask 077;
say() { printf "%s\n" "$t $*"; };
fail() { say fail "$*"; exit 70; };
n=${SSH_CONNECTION:-none none none none}; n=${n% *}; n=${n##* };
d=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/linerate;
say host "$(uname -s)" "$(uname -m)" "$n";
read -r h s m || exit 70;
f=$d/linerate-node-$h;
sum() { sha256sum <"$1" 2>/dev/null | cut -c 1-64; };
if [ "$old" -gt 0 ] && [ "$(readlink "/proc/$old/exe")" = "$f" ]; then kill -9 "$old" && say ended "$old"; fi;
if [ -f "$f" ] && [ -x "$f" ] && [ "$(sum "$f")" = "$h" ]; then say have; else
# The rights of the folder are set before anything is in it; a folder of somebody else is not used.
e=$( { mkdir -p "$d" && chmod 700 "$d"; } 2>&1 ) || fail folder "$e";
[ -O "$d" ] || fail folder "$d belongs to another user";
command -v sha256sum >/dev/null || fail tool sha256sum;
# Homes may be shared by hosts.
x=$d/.new-$h-$(uname -n)-$$;
tidy() { rm -f "$x"; };
trap tidy EXIT; trap "exit 70" HUP INT TERM PIPE;
say send;
e=$( { head -c "$s" >"$x"; } 2>&1 ) || fail write "$e; $(df -P "$d" 2>/dev/null | tail -n 1)";
[ "$(sum "$x")" = "$h" ] || fail hash "$d";
e=$( { chmod 700 "$x" && "$x" --version >/dev/null </dev/null; } 2>&1 ) || fail start "$? $e";
e=$(mv -f "$x" "$f" 2>&1) || fail write "$e";
say copied; fi;
if [ "$(id -u)" = 0 ]; then say run $$; exec "$f"; fi;
w="sudo was not wanted";
if [ "$m" = sudo ]; then
if command -v sudo >/dev/null 2>&1; then
if sudo -n -- "$f" --version >/dev/null 2>&1 </dev/null; then say run 0; exec sudo -n -- "$f"; fi;
say password;
IFS= read -r p || exit 70;
w="sudo asks for a password";
if [ -n "$p" ]; then
# Tried with an input that ends after the password: a wrong one must not make sudo take frames for the next try. Without a cached
# credential (-k) sudo always reads the line that the operator sends before its first frame.
if printf "%s\n" "$p" | sudo -k -S -p "" -- "$f" --version >/dev/null 2>&1; then p=; say root; exec sudo -k -S -p "" -- "$f"; fi;
p=; w="sudo refused the password";
fi;
else w="there is no sudo"; fi;
fi;
say plain "$w";
say run $$; exec "$f"
