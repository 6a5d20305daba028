# Becomes the sshd of one host: called in fresh network, mount and UTS namespaces. $1 lab folder, $2 number, $3 size of the home
# folder in KiB. Nothing outside the namespaces is touched.
set -eu
lab=$1 number=$2 home_kib=$3
hostname "h$number"
for folder in /run /var/lib; do
  mount -t tmpfs -o mode=755 tmpfs "$folder"
done
mkdir -m 755 /run/sshd /run/sudo /var/lib/sudo
mount -t tmpfs -o "size=${home_kib}k,mode=700" tmpfs /root
mount -t tmpfs -o mode=755 tmpfs /home
mkdir -m 700 /home/ops
mount -t tmpfs -o "size=${home_kib}k,mode=700,uid=61234,gid=61234" tmpfs /home/ops
mount -t sysfs sysfs /sys
for file in passwd group shadow sudoers; do
  [ ! -e "$lab/h$number/$file" ] || mount --bind "$lab/h$number/$file" "/etc/$file"
done
if [ -e "$lab/h$number/bashrc" ]; then
  cp "$lab/h$number/bashrc" /root/.bashrc
fi
ip link set lo up
exec /usr/sbin/sshd -D -f "$lab/h$number/sshd_config" -E "$lab/h$number/log"
