# Runs on the host before the node program, behind folder.sh, whose rules hold here too.
fail() { say fail "$*"; exit 70; };
n=${SSH_CONNECTION:-none none none none}; n=${n% *}; n=${n##* };
say host "$(uname -s)" "$(uname -m)" "$n";
read -r h s m || exit 70;
command -v sha256sum >/dev/null || fail tool sha256sum;
# The program is opened once, as 3. Owner and hash are those of what is open, and that is what runs.
o=/proc/$$/fd/3;
same() { [ -f "$1" ] && [ -r "$1" ] || return 1; exec 3<"$1"; [ -O "$o" ] && [ "$(sha256sum <"$o" 2>/dev/null | cut -c 1-64)" = "$h" ]; };
q=; if [ "$old" -gt 0 ]; then q=$(readlink "/proc/$old/exe"); q=${q%" (deleted)"}; fi;
f=;
for c in "$@"; do
if private "$c"; then
f=$d/linerate-node-$h;
if [ "$q" = "$f" ]; then kill -9 "$old" && say ended "$old"; q=; fi;
if same "$f" && [ -x "$o" ]; then break; fi;
fi;
f=; done;
if [ -n "$f" ]; then say have; else
# x is what is being written, y what has arrived in a folder where programs may not run.
x=; y=;
tidy() { rm -f "$x" "$y" 2>/dev/null; };
trap tidy EXIT; trap "exit 70" HUP INT TERM PIPE;
for c in "$@"; do
private "$c" make || { say no "$c: $why"; continue; };
# Homes may be shared by hosts.
x=$d/.new-$h-$(uname -n)-$$;
# Room for all of it is taken before anything is sent: what was sent cannot be sent to the next folder again.
if [ -n "$y" ]; then e=$( { cat "$y" >"$x"; } 2>&1 ); else e=$( { head -c "$s" /dev/zero >"$x"; } 2>&1 ); fi ||
{ say no "$c: $e; $(df -P "$d" 2>/dev/null | tail -n 1)"; rm -f "$x"; continue; };
if [ -z "$y" ]; then say send; e=$( { head -c "$s" >&4; } 2>&1 4<>"$x" ) || fail write "$e; $(df -P "$d" 2>/dev/null | tail -n 1)"; fi;
e=$(chmod 700 "$x" 2>&1) || fail write "$e";
same "$x" || fail hash "$d";
e=$( { "$o" --version >/dev/null </dev/null; } 2>&1 ); z=$?;
case $z$e in
0*) f=$d/linerate-node-$h; e=$(mv -f "$x" "$f" 2>&1) || fail write "$e"; x=; break ;;
126*enied*|126*permitted*)
v=$(df -P "$d" 2>/dev/null | tail -n 1); v=${v##* };
w="programs may not be run there"; case $(grep -F " $v " /proc/mounts) in *noexec*) w="$v is mounted noexec" ;; esac;
say no "$c: $w";
if [ -n "$y" ]; then rm -f "$x"; else y=$x; fi; x= ;;
*) fail start "$z $e" ;;
esac; done;
tidy;
[ -n "$f" ] || fail none;
say copied "$d"; fi;
# By the descriptor: the very file that was hashed.
if [ "$u" = 0 ]; then say run $$; exec /proc/self/fd/3; fi;
w="sudo was not wanted";
if [ "$m" = sudo ]; then
if command -v sudo >/dev/null 2>&1; then
# sudo closes descriptors, and its rules and its log are about paths. This path is as good: neither the folder
# nor one above it can be exchanged by another user, and only this account writes in the folder.
if sudo -n -- "$f" --version >/dev/null 2>&1 </dev/null; then say run 0; exec sudo -n -- "$f"; fi;
say password;
read -r a || exit 70;
w="sudo asks for a password";
if [ "$a" = typed ]; then
# Tried with an input that ends after the password: a wrong one must not make sudo take frames for the next
# try. The line goes from pipe to pipe and never through this shell, in some of which printf is a program with
# arguments. Without a cached credential (-k) sudo always reads the line, which the operator sends again
# before its first frame.
if head -n 1 | sudo -k -S -p "" -- "$f" --version >/dev/null 2>&1; then say root; exec sudo -k -S -p "" -- "$f"; fi;
w="sudo refused the password";
fi;
else w="there is no sudo"; fi;
fi;
say plain "$w";
say run $$; exec /proc/self/fd/3
