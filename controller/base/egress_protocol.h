// What the bubblewrap driver's side, the net helper and `chat2shell-egress` agree on. One egress process a sandbox.
//
//   chat2shell-egress --control-fd N --proxy-fd N --connector-fd N [--deny NAME]… [--upstream URL]
//
// proxy-fd: a TCP socket listening on 127.0.0.1:GUEST_PROXY_PORT in the sandbox's network namespace, opened there by
// the net helper. Egress accepts on it: absolute-form HTTP/1.x requests and CONNECT.
//
// connector-fd: SOCK_SEQPACKET to the net helper. Request: struct egress_connect. Answer: struct egress_connected, with
// one connected TCP descriptor when errno_value is 0. At most 64 requests unanswered.
//
// control-fd: SOCK_SEQPACKET, one JSON object a message, at most EGRESS_MESSAGE_MAX_BYTES. Its end ends the process.
//   egress first sends {"op":"ready","version":1,"address_check":true|false} (false: an upstream proxy refused addresses);
//   the same message comes again when address_check turns false later (it is known only once the proxy has refused)
//   {"seq":n,"op":"publish","port":P} with one listening TCP descriptor of the host → {"seq":n,"ok":true}
//   {"seq":n,"op":"unpublish","port":P} → {"seq":n,"ok":true}     ends its connections too
//   {"seq":n,"op":"probe","port":P} → {"seq":n,"ok":true} | {"seq":n,"ok":false,"error":"nothing listens on port P"}
//   {"seq":n,"op":"connect","port":P} → {"seq":n,"ok":true} with a TCP descriptor that is connected to the port inside, or as probe
//   every failure: {"seq":n,"ok":false,"error":"sentence"}
// deny NAME denies the name and all its subdomains.
#pragma once
#include <stdint.h>

#define EGRESS_PROTOCOL_VERSION 1
#define EGRESS_MESSAGE_MAX_BYTES 4096
#define EGRESS_MAX_CONNECTIONS 512 // proxy and relay together
#define EGRESS_MAX_PUBLISHED 32

struct egress_connect {
    uint32_t seq;
    uint16_t port;
    uint16_t reserved; // 0
};
struct egress_connected {
    uint32_t seq;
    int32_t errno_value;
};
