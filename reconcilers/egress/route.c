#include "reconcilers/egress/route.h"
#include "controller/base/cleanup.h"
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

struct route_request {
    struct nlmsghdr head;
    struct rtmsg route;
    struct rtattr attribute;
    uint8_t address[16];
};

int route_open(struct error *err)
{
    CLEANUP_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
        return error_errno(err, errno, NULL, "cannot open a route socket");
    return TAKE_FD(fd);
}

static int send_request(int fd, const struct address *address, uint32_t seq)
{
    size_t len = address->family == AF_INET ? 4 : 16;
    struct route_request request = {
        .head = {.nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST, .nlmsg_seq = seq},
        .route = {.rtm_family = (unsigned char)address->family, .rtm_dst_len = (unsigned char)(len * 8)},
        .attribute = {.rta_type = RTA_DST, .rta_len = (unsigned short)RTA_LENGTH(len)},
    };
    request.head.nlmsg_len = (uint32_t)(offsetof(struct route_request, address) + len);
    memcpy(request.address, address->bytes, len);
    ssize_t sent = send(fd, &request, request.head.nlmsg_len, 0);
    return sent == (ssize_t)request.head.nlmsg_len ? 0 : -1;
}

static enum route_kind kind_of(const struct nlmsghdr *head)
{
    if (head->nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *failure = NLMSG_DATA(head);
        int code = head->nlmsg_len >= NLMSG_LENGTH(sizeof(*failure)) ? -failure->error : 0;
        bool is_unreachable = code == ENETUNREACH || code == EHOSTUNREACH || code == EACCES || code == EINVAL ||
                              code == EAFNOSUPPORT || code == EOPNOTSUPP;
        return is_unreachable ? ROUTE_NONE : ROUTE_UNKNOWN;
    }
    if (head->nlmsg_type != RTM_NEWROUTE || head->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
        return ROUTE_UNKNOWN;
    const struct rtmsg *route = NLMSG_DATA(head);
    switch (route->rtm_type) {
    case RTN_UNICAST:
        return ROUTE_OUTWARD;
    case RTN_BLACKHOLE:
    case RTN_UNREACHABLE:
    case RTN_PROHIBIT:
        return ROUTE_NONE;
    default:
        return ROUTE_OWN;
    }
}

enum route_kind route_ask(int netlink_fd, const struct address *address)
{
    static uint32_t last_seq;
    union {
        char bytes[4096];
        struct nlmsghdr head;
    } answer;
    uint32_t seq = ++last_seq;
    if (send_request(netlink_fd, address, seq) < 0)
        return ROUTE_UNKNOWN;
    // The kernel answers inside send, so that the answer is there already; older ones are skipped.
    for (int i = 0; i < 16; i++) {
        ssize_t len = recv(netlink_fd, answer.bytes, sizeof(answer.bytes), 0);
        if (len < (ssize_t)sizeof(answer.head) || !NLMSG_OK(&answer.head, (size_t)len))
            return ROUTE_UNKNOWN;
        if (answer.head.nlmsg_seq == seq)
            return kind_of(&answer.head);
    }
    return ROUTE_UNKNOWN;
}
