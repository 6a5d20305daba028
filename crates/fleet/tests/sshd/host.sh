# Becomes the sshd of one host: called in fresh network, mount and UTS namespaces. $1 lab folder, $2 number,
# $3 size of the home folder, $4 of that with the journals of changes and $5 of those that all users share in
# KiB, $6 mount options of the homes. Nothing outside the namespaces is touched.
set -eu
lab=$1 number=$2 home_kib=$3 state_kib=$4 shared_kib=$5 home=$6
hostname "h$number"
for folder in /run /var/lib /var/log; do
  mount -t tmpfs -o mode=755 tmpfs "$folder"
done
for folder in /dev/shm /var/tmp; do
  mount -t tmpfs -o "size=${shared_kib}k,mode=1777" tmpfs "$folder"
done
mkdir -m 755 /run/sshd /run/sudo /var/lib/sudo /var/lib/linerate
mount -t tmpfs -o "size=${state_kib}k,mode=755" tmpfs /var/lib/linerate
# A /tmp of its own, in which the folder of the lab stays where it is.
mkdir /run/lab
mount --bind "$lab" /run/lab
mount -t tmpfs -o mode=1777 tmpfs /tmp
mkdir -p "$lab"
mount --move /run/lab "$lab"
rmdir /run/lab
mount -t tmpfs -o "size=${home_kib}k,mode=700,$home" tmpfs /root
mount -t tmpfs -o mode=755 tmpfs /home
mkdir -m 700 /home/ops
mount -t tmpfs -o "size=${home_kib}k,mode=700,uid=61234,gid=61234,$home" tmpfs /home/ops
mount -t sysfs sysfs /sys
for file in passwd group shadow sudoers hosts; do
  [ ! -e "$lab/h$number/$file" ] || mount --bind "$lab/h$number/$file" "/etc/$file"
done
if [ -e "$lab/h$number/bashrc" ]; then
  cp "$lab/h$number/bashrc" /root/.bashrc
fi
ip link set lo up
exec /usr/sbin/sshd -D -f "$lab/h$number/sshd_config" -E "$lab/h$number/log"
