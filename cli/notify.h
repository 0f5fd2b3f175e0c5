// sd_notify(3) without the library: one datagram to $NOTIFY_SOCKET, if systemd gave one.
#pragma once
void notify_systemd(const char *text);
