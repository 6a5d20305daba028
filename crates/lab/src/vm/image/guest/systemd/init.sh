#!/bin/busybox sh
# Before systemd: the root file system is on vda, which no guest writes; what it writes instead is on sda, the first drive of the lab's file.
b=/bin/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs devtmpfs /dev
for module in /mod/*; do $b insmod "$module"; done
echo "0 0 0" >/sys/class/scsi_host/host0/scan
$b mkdir /root /own /new
$b mount -t ext4 -o ro /dev/vda /root
# The drive is waited for, at most 20 s.
i=0
while [ ! -b /dev/sda ] && [ $i -lt 2000 ]; do $b usleep 10000; i=$((i + 1)); done
if ! $b mount -t ext4 /dev/sda /own 2>/dev/null; then
  $b mount --bind /dev /root/dev
  $b chroot /root /usr/sbin/mke2fs -q -t ext4 /dev/sda
  $b umount /root/dev
  $b mount -t ext4 /dev/sda /own
  $b mkdir -p /own/files /own/work
fi
$b mount -t overlay -o lowerdir=/root,upperdir=/own/files,workdir=/own/work overlay /new
of() { for word in $($b cat /proc/cmdline); do case $word in linerate.$1=*) echo "${word#*=}" ;; esac; done; }
of name >/new/etc/hostname
{
  echo "127.0.0.1 localhost"
  for pair in $(of hosts | $b tr , ' '); do echo "${pair#*:} ${pair%%:*}"; done
} >/new/etc/hosts
$b mkdir -p /new/root/.ssh /new/etc/dropbear
$b chmod 700 /new/root /new/root/.ssh
echo "ssh-ed25519 $(of key) lab" >/new/root/.ssh/authorized_keys
$b chmod 600 /new/root/.ssh/authorized_keys
for mount in dev proc sys; do $b mount --move /$mount /new/$mount; done
exec $b switch_root /new /usr/lib/systemd/systemd
